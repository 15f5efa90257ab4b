package whatif

import (
	"cmp"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/internal/torchenv"
)

// pytorch is the name of PyTorch in [setting.Export].
const pytorch = "PyTorch"

// frameworkOf returns the framework and version in a header, or "".
func frameworkOf(h trace.Header) (name, version string) {
	name, _ = h.Get(trace.FrameworkKey)
	version, isTorch := h.Get(trace.TorchKey)
	_, settings := h.Get(torch.KeyConfig) // older conversions of snapshots lack the name of the framework
	if isTorch || settings {
		name = cmp.Or(name, pytorch)
	}
	return name, version
}

// ours reports whether users of the recorded framework and version can select a point; false for an
// unknown framework.
func (r *Result) ours(p *Point) bool {
	rec := &r.Recorded
	return p.Export != nil && p.Export.Framework == rec.Framework &&
		(rec.Version == "" || !torchenv.Older(rec.Version, p.Export.From))
}

// candidate reports whether a point may be the first answer: users can select it, or the framework
// is unknown.
func (r *Result) candidate(p *Point) bool {
	return r.Recorded.Framework == "" || r.ours(p)
}

// exported returns the variables for the recorded version. If the version is unknown they are the
// newest ones, and before is for releases before Since.
func (r *Recorded) exported(e *setting.Export) (environment, before []string) {
	switch {
	case e.Since == "" || r.Framework != e.Framework:
		return e.Environment, nil
	case r.Version == "":
		return e.Environment, e.Before
	case torchenv.Older(r.Version, e.Since):
		return e.Before, nil
	}
	return e.Environment, nil
}
