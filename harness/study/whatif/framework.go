package whatif

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/internal/torchenv"
)

// The names of the frameworks in [setting.Export].
const (
	pytorch    = torchenv.Framework
	tensorflow = "TensorFlow"
	jax        = "JAX"
)

// frameworkOf returns the framework and version in a header, or "".
func frameworkOf(h trace.Header) (name, version string) {
	name, _ = h.Get(trace.FrameworkKey)
	version, isTorch := h.Get(trace.TorchKey)
	_, settings := h.Get(torch.KeyConfig) // older conversions of snapshots lack the name of the framework
	if isTorch || settings {
		name = cmp.Or(name, pytorch)
	}
	for _, known := range []string{pytorch, tensorflow, jax} {
		if strings.EqualFold(name, known) {
			name = known
		}
	}
	return name, version
}

// exportFor returns how users of a framework choose a setup. If they cannot, it returns the setting
// of another framework, unless the strategy is a baseline; nil if there is none.
func exportFor(framework string, s setting.Setup) *setting.Export {
	exports := s.Exports()
	i := slices.IndexFunc(exports, func(e setting.Export) bool { return e.Framework == framework })
	switch {
	case i >= 0:
		return &exports[i]
	case len(exports) == 0 || s.Baseline:
		return nil
	}
	return &exports[0]
}

// ForFramework returns the setups of a grid to try on a recording of a framework. It leaves out
// setups that only set variables of other frameworks.
func ForFramework(framework string, grid []setting.Setup) []setting.Setup {
	return slices.DeleteFunc(slices.Clone(grid), func(s setting.Setup) bool {
		e := exportFor(framework, s)
		return e != nil && e.Framework != framework && len(e.Environment)+len(e.Options) > 0
	})
}

// ours reports whether users of the recorded framework and version can select a point; false for an
// unknown framework.
func (r *Result) ours(p *Point) bool {
	rec := &r.Recorded
	return p.Export != nil && p.Export.Framework == rec.Framework &&
		(rec.Version == "" || !torchenv.Older(rec.Version, p.Export.From))
}

// lacks reports whether a point is a setting of the recorded framework that its release does not
// have. No answer names it: under another name it would need that setting too.
func (r *Result) lacks(p *Point) bool {
	return p.Export != nil && p.Export.Framework == r.Recorded.Framework && !r.ours(p)
}

// use returns a sentence that says how users of the recorded framework, or of PyTorch if it is
// unknown, load a strategy; "" for a setting of their framework.
func (t *answerWriter) use(p *Point) string {
	framework := t.Recorded.Framework
	switch {
	case t.ours(p) || framework == "" && p.Export != nil:
		return ""
	case framework != "" && framework != pytorch:
		return framework + " has no way to load it."
	case t.pools:
		return "A program with private pools cannot load it (docs/pytorch.md)."
	}
	argument := strconv.Quote(p.Strategy)
	if fields := t.given(p); len(fields) > 0 {
		config, _ := json.Marshal(fields) // sorted; the parts are valid JSON
		argument += ", config='" + string(config) + "'"
	}
	return "To use it: vramyard.torch.use(" + argument + ") before the first tensor on the GPU (docs/pytorch.md)."
}

// given returns the fields of a configuration that its name does not stand for.
func (r *Result) given(p *Point) map[string]json.RawMessage {
	named, _ := r.names.Lookup(p.setup.Name, nil) // all fields are given for an unknown name
	usual, fields := fieldsOf(named), map[string]json.RawMessage{}
	for name, value := range fieldsOf(p.setup) {
		if !bytes.Equal(value, usual[name]) {
			fields[name] = value
		}
	}
	return fields
}

// candidate reports whether a point may be the first answer: users can select it, or the framework
// is unknown, and the deployment permits it.
func (r *Result) candidate(p *Point) bool {
	return (r.Recorded.Framework == "" || r.ours(p)) && p.Permitted()
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

// baseline names a baseline, by the settings of the recorded framework too if it has them.
func (t *answerWriter) baseline(p *Point) string {
	if t.ours(p) {
		return p.Label + " (" + t.name(p) + ")"
	}
	return p.Label
}

// butBaseline names the setting of the recorded framework that is a baseline and that f accepts.
func (t *answerWriter) butBaseline(f func(*Point) bool) string {
	for i := range t.Runs {
		if p := &t.Runs[i]; p.Baseline && t.ours(p) && p.Permitted() && f(p) {
			return ", except " + t.name(p) + ", which requests every block from the device,"
		}
	}
	return ""
}
