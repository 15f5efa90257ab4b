package caching

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// The rule sets.
const (
	Rules26  = "2.6"  // PyTorch 2.6.0
	Rules211 = "2.11" // PyTorch 2.10 and 2.11; the default
	Rules212 = "2.12" // PyTorch 2.12
	Rules213 = "2.13" // PyTorch 2.13 to 2.15
)

// Config describes the allocator of one PyTorch program. The zero value is PyTorch 2.11 without any
// setting.
type Config struct {
	// Conf is the value of PYTORCH_CUDA_ALLOC_CONF; the package comment lists its keys.
	Conf string `json:"conf" doc:"value of PYTORCH_CUDA_ALLOC_CONF, such as max_split_size_mb:128,garbage_collection_threshold:0.8; KEY:VALUE@FROM..TO holds between two marks of the trace" grid:",expandable_segments:True,max_split_size_mb:64,roundup_power2_divisions:8,garbage_collection_threshold:0.8"`
	// Rules selects the version: Rules26, Rules211, Rules212 or Rules213.
	Rules string `json:"rules" doc:"release to follow: 2.6 (PyTorch 2.4 to 2.9), 2.11 (2.10 and 2.11), 2.12, or 2.13 (to 2.15)" grid:"2.6,2.11"`
	// MemoryFraction is the share of the device's memory that may be held; 0 for no bound.
	MemoryFraction float64 `json:"memory_fraction" doc:"share of the device that may be held, as torch.cuda.set_per_process_memory_fraction sets it; 0 for no bound" grid:"0,0.9"`
	// Mended repairs known defects of the original; the package comment lists them.
	Mended bool `json:"mended" doc:"repair known defects of the original instead of reproducing them" grid:"false,true"`
}

// WithDefaults returns c with every default filled in. It fails with an error that names
// the first bad field.
func (c Config) WithDefaults() (Config, error) {
	c.Rules = cmp.Or(c.Rules, Rules211)
	_, err := c.settings()
	return c, err
}

// settings returns the parameters of the algorithm at the start of a run; see [Config.plan].
func (c Config) settings() (settings, error) {
	p, err := c.plan()
	if err != nil {
		return settings{}, err
	}
	return p.present(c.Rules)
}

// plan returns the parameters of the algorithm for a run. It fails with an error that names the
// first bad field.
//
// The string is parsed each time, by WithDefaults, New and Promises, because a configuration holds
// only the user's text.
//
// Precondition: the defaults of c are filled in, or WithDefaults is checking it.
func (c Config) plan() (p planned, err error) {
	switch {
	case !slices.ContainsFunc(ruleSets, func(r RuleSet) bool { return r.Name == c.Rules }):
		var names []string
		for _, r := range ruleSets {
			names = append(names, r.Name)
		}
		return p, fmt.Errorf("caching: rules %q: want one of %s", c.Rules, strings.Join(names, ", "))
	case !(c.MemoryFraction >= 0 && c.MemoryFraction <= 1): // NaN is neither
		return p, fmt.Errorf("caching: memory_fraction %v: want 0 for no bound, or a share up to 1",
			c.MemoryFraction)
	}
	text, ph, err := splitConf(c.Conf)
	if err == nil {
		p.phase = ph
		p.base, err = parseConf(text, c.Rules)
	}
	s := &p.base
	switch {
	case err != nil:
		return p, fmt.Errorf("caching: conf: %w", err)
	case c.MemoryFraction == 0:
	case s.fractionSet && s.fraction != c.MemoryFraction:
		return p, fmt.Errorf("caching: memory_fraction %v: conf says %s:%v", c.MemoryFraction, keyFraction, s.fraction)
	default:
		s.bound(c.MemoryFraction, c.Rules)
	}
	if len(ph.items) > 0 {
		p.active = true
		during, err := p.present(c.Rules)
		if err != nil {
			return p, fmt.Errorf("caching: conf: %w", err)
		}
		p.active = ph.from == ""
		s.grew = during.grew // after the phase some segments may grow
	}
	return p, nil
}
