package torch

import "github.com/vramyard/vramyard/harness/trace"

// Gap returns why a replay of a trace differs from the recorded run, or "" if it does not. empty is
// [trace.Coverage.Empty]: the trace has no history. wrapped is the value of [KeyWrapped]: why the
// oldest entries of the history are probably lost, or "".
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
	var coverage trace.Coverage
	for i := range t.Events {
		coverage.Step(&t.Events[i])
	}
	wrapped, _ := t.Header.Get(KeyWrapped)
	return Gap(coverage.Empty(), wrapped)
}
