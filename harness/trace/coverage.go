package trace

// Coverage finds out whether a trace has a history of requests, or only the blocks of one moment.
// Every command decides with it. The zero value has seen no event.
type Coverage struct{ requests bool }

// Step takes the next event of the trace.
func (c *Coverage) Step(e *Event) {
	c.requests = c.requests || e.Kind == Alloc || e.Kind == Refused
}

// Empty reports whether the events request nothing: all blocks were live at the start.
func (c *Coverage) Empty() bool { return !c.requests }
