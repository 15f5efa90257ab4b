package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/nearest"
	"github.com/vramyard/vramyard/strategies/bfc"
)

// framework describes the allocators of a framework whose files have no settings, so that lines of
// the header name them.
type framework struct {
	name     string
	grid     string // embedded grid of its settings
	variable string // variable that selects an allocator
	// strategies that model the allocators, by the values of the variable; "" for the default.
	// Those without a strategy have no model.
	strategies [][2]string
}

// tensorFlow is the name of TensorFlow.
const tensorFlow = "TensorFlow"

var frameworks = []framework{
	{"JAX", "jax", "XLA_PYTHON_CLIENT_ALLOCATOR", [][2]string{
		{"", "bfc:jax"}, {"default", "bfc:jax"}, {"bfc", "bfc:jax"}, {"cuda_async", "async:keep"}, {"platform", "direct"},
		{"vmm", ""},
	}},
	{tensorFlow, "tensorflow", "TF_GPU_ALLOCATOR", [][2]string{
		{"", "bfc:tensorflow"}, {"cuda_malloc_async", "async:tensorflow"}, {"cuda_malloc", "direct"}, {"memory_guard", ""},
	}},
}

// frameworkOf returns the framework of a recording, and false for PyTorch and unknown ones.
func frameworkOf(rec *whatif.Recorded) (framework, bool) {
	i := slices.IndexFunc(frameworks, func(f framework) bool { return f.name == rec.Framework })
	if i < 0 {
		return framework{}, false
	}
	return frameworks[i], true
}

// modelFramework finds the strategy of the allocator that TensorFlow or JAX had according to lines
// of the header, such as XLA_PYTHON_CLIENT_MEM_FRACTION=0.9. Without such lines it takes the
// defaults. path is the file for messages, and capability the compute capability for bfc.
func modelFramework(c setting.Catalogue, rec *whatif.Recorded, head trace.Head, path string, capability int) error {
	f, ok := frameworkOf(rec)
	h := head.Header
	for i, p := range h.Meta {
		if err := f.check(p, rec.Framework); err != nil {
			return fmt.Errorf("%s: %w", head.PairPlace(i, path), err)
		}
	}
	if !ok || rec.Setup.Name != "" {
		return nil
	}
	strategy := f.strategies[0][1]
	if value, given := h.Get(f.variable); given {
		rec.Environment = append(rec.Environment, f.variable+"="+value)
		strategy, _ = f.strategyOf(value) // checked above
	}
	var conf []string
	for _, name := range bfc.ConfNames(f.name) {
		if value, ok := h.Get(name); ok {
			conf = append(conf, name+"="+value)
		}
	}
	rec.Environment = append(rec.Environment, conf...)
	text := strings.Join(conf, " ")
	if _, err := (bfc.Config{Conf: text}).WithDefaults(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	base, _, _ := strings.Cut(strategy, ":")
	if _, known := c.Spec(base); !known {
		return nil // another catalogue, or an allocator without a model
	}
	var fields []byte
	if base == "bfc" {
		fields, _ = json.Marshal(map[string]any{"conf": text, "compute_capability": capability}) // it can be encoded
	}
	var err error
	if rec.Setup, err = c.Lookup(strategy, fields); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	rec.Presumed = len(rec.Environment) == 0
	return nil
}

// settings returns the names of the framework's settings.
func (f framework) settings() []string { return append([]string{f.variable}, bfc.ConfNames(f.name)...) }

// frameworkSettings returns the names of the settings of all frameworks.
func frameworkSettings() (names []string) {
	for _, f := range frameworks {
		names = append(names, f.settings()...)
	}
	return names
}

// check refuses a pair of a header that is a setting of another framework than the recorded one, or
// that has a wrong value. The zero framework is PyTorch or unknown.
func (f framework) check(p trace.Pair, recorded string) error {
	for _, other := range frameworks {
		switch {
		case other.name == f.name || !slices.Contains(other.settings(), p.Key):
		case f.name != "":
			return f.errOther(p.Key, other.name)
		case recorded == "":
			return fmt.Errorf("%s: %s reads it: want the line %s=%s too", p.Key, other.name, trace.FrameworkKey, other.name)
		default:
			return fmt.Errorf("%s: %s does not read it, %s does", p.Key, recorded, other.name)
		}
	}
	switch {
	case p.Key == f.variable && f.variable != "":
		_, err := f.strategyOf(p.Value)
		return err
	case f.name != "" && slices.Contains(bfc.ConfNames(f.name), p.Key):
		_, err := (bfc.Config{Conf: p.Key + "=" + p.Value}).WithDefaults()
		return err
	}
	return nil
}

// errOther returns the error for a key that another framework reads.
func (f framework) errOther(key, other string) error {
	return fmt.Errorf("%s: %s does not read it, %s does: want one of %s", key, f.name, other,
		strings.Join(f.settings(), ", "))
}

// strategyOf returns the strategy of the allocator that a value of the variable selects; "" if it
// has no model.
func (f framework) strategyOf(value string) (string, error) {
	var known []string
	for _, s := range f.strategies {
		switch s[0] {
		case "": // the default, which no value selects
		case value:
			return s[1], nil
		default:
			known = append(known, s[0])
		}
	}
	return "", fmt.Errorf("%s=%s: %s", f.variable, value, nearest.Want(value, known))
}

// ownGrid reports whether the grid is a file of the user.
func (f *whatifFlags) ownGrid() bool { return f.grid != gridQuick && f.grid != gridFull }

// withFramework fits a grid to the recorded framework: TensorFlow and JAX have their own settings,
// PyTorch the rules of its release, of --torch if that is given. A grid of the user only gets
// rules, for settings that state none.
func (f *whatifFlags) withFramework(rec *whatif.Recorded, grid []setting.Setup) ([]setting.Setup, error) {
	of, ok := frameworkOf(rec)
	rules := recordedRules(rec, f.torch)
	switch {
	case !ok && f.ownGrid() && rules != "":
		setups, err := whatif.ReadGridUnder(bytes.NewReader(f.text), f.catalogue, rules)
		if err != nil {
			err = fmt.Errorf("%s: under the rules %s of PyTorch: %w", f.grid, rules, err)
		}
		return setups, flagError("grid", err)
	case f.ownGrid():
		return grid, nil
	case !ok:
		return underRules(f.catalogue, grid, rules)
	}
	var texts []io.Reader
	for _, name := range []string{of.grid, f.grid} {
		text, err := grids.ReadFile("grids/" + name + ".yaml")
		if err != nil {
			return nil, err
		}
		texts = append(texts, bytes.NewReader(text))
	}
	setups, err := whatif.FitGrid(io.MultiReader(texts...), f.catalogue)
	if err != nil {
		return nil, err
	}
	return withCapability(f.catalogue, whatif.ForFramework(rec.Framework, setups), f.capability(rec))
}

// capability returns the major compute capability of the card, by which TensorFlow leaves memory to
// the libraries of CUDA: the newest one if the card is unknown. It returns 0 for other frameworks,
// and for the capacity of a recording, which the allocator had.
func (f *whatifFlags) capability(rec *whatif.Recorded) (newest int) {
	_, card, _ := f.shape() // the error was returned before
	if rec.Framework != tensorFlow || card == 0 && rec.Capacity != 0 {
		return 0
	}
	for _, c := range sim.Cards() {
		if newest = max(newest, c.Capability); c.Memory == card {
			return c.Capability
		}
	}
	return newest
}

// withCapability returns setups with a compute capability for the setups of bfc.
func withCapability(c setting.Catalogue, setups []setting.Setup, capability int) ([]setting.Setup, error) {
	for i, s := range setups {
		config, ok := s.Config.(bfc.Config)
		if !ok || capability == 0 {
			continue
		}
		config.ComputeCapability = capability
		text, err := json.Marshal(config)
		if err != nil {
			return nil, err
		}
		if setups[i], err = c.Lookup(s.Name, text); err != nil {
			return nil, err
		}
	}
	return setups, nil
}
