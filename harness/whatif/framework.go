package whatif

import (
	"cmp"

	"github.com/vramyard/vramyard/harness/history"
	"github.com/vramyard/vramyard/harness/trace"
)

// pytorch is the name of PyTorch in [alloc.Export].
const pytorch = "PyTorch"

// frameworkOf returns the framework that a trace was recorded of and its version, "" for what the header does not
// have.
func frameworkOf(h trace.Header) (name, version string) {
	name, _ = h.Get(trace.FrameworkKey)
	version, torch := h.Get(trace.TorchKey)
	_, settings := h.Get(history.KeyConfig) // an older conversion of a snapshot has no name of the framework
	if torch || settings {
		name = cmp.Or(name, pytorch)
	}
	return name, version
}
