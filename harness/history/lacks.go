package history

import "github.com/vramyard/vramyard/harness/trace"

// Coverage finds out which part of a recorded run is in its trace. The zero value has seen no event.
type Coverage struct{ requests bool }

// Step takes the next event of the trace.
func (c *Coverage) Step(e *trace.Event) {
	c.requests = c.requests || e.Kind == trace.Alloc || e.Kind == trace.Refused
}

// Empty reports whether the events request nothing: all blocks were live at the start.
func (c *Coverage) Empty() bool { return !c.requests }

// Lacks returns why a replay of a trace is not a replay of the recorded run: the trace has no history
// (empty, see [Coverage.Empty]), or the history was wrapped, for the reason of [KeyWrapped]. It
// returns "" for a trace without such a gap.
func Lacks(empty bool, wrapped string) string {
	switch {
	case empty:
		return "it has no history of requests, only the blocks that were live when it was written"
	case wrapped != "":
		return "its history has lost its oldest entries: " + wrapped
	}
	return ""
}
