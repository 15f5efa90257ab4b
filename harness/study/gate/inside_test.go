package gate

import "github.com/vramyard/vramyard/harness/trace"

// Events returns the events that are replayed in a state.
func (w *Work) Events(s State) []trace.Event { return w.states[s].Events }
