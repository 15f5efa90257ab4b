package trace

// Coverage detects whether a trace has a history of requests, or only the blocks that were live at
// one moment. The zero value is ready for use.
type Coverage struct{ requests bool }

// Step processes the next event of the trace.
func (c *Coverage) Step(e *Event) {
	c.requests = c.requests || e.Kind == Alloc || e.Kind == Refused
}

// Empty reports whether the trace has no requests: all blocks were live at the start.
func (c *Coverage) Empty() bool { return !c.requests }
