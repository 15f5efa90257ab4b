package torch

import "github.com/vramyard/vramyard/harness/trace"

// Gap returns why a replay of a trace differs from the recorded run, or "". Either the trace has
// no history (empty, see [trace.Coverage.Empty]), or its oldest entries were lost, for the reason
// of [KeyWrapped].
func Gap(empty bool, wrapped string) string {
	switch {
	case empty:
		return "it has no history of requests, only the blocks that were live when it was written"
	case wrapped != "":
		return "its history has lost its oldest entries: " + wrapped
	}
	return ""
}

// GapOf is [Gap] for a trace in memory.
func GapOf(t *trace.Trace) string {
	var covered trace.Coverage
	for i := range t.Events {
		covered.Step(&t.Events[i])
	}
	wrapped, _ := t.Header.Get(KeyWrapped)
	return Gap(covered.Empty(), wrapped)
}
