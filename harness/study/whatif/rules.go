package whatif

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"github.com/vramyard/vramyard/internal/strictyaml"
	"github.com/vramyard/vramyard/internal/torchenv"
)

// rulesFile is the table of compatibility.
//
//go:embed rules.yaml
var rulesFile []byte

// mostRulesBytes bounds the table when it is read.
const mostRulesBytes = 1 << 20

// Rules is the table of compatibility.
type Rules struct {
	Features []Feature `yaml:"features"` // possible needs of a deployment
	Profiles []Profile `yaml:"profiles"` // common programs
	Rules    []Rule    `yaml:"rules"`    // by ID
}

// Feature is something that a deployment may need, with which some settings do not work.
type Feature struct {
	Name  string `yaml:"name" json:"name"` // such as "rdma"
	About string `yaml:"about" json:"-"`   // description
}

// Profile is a common program.
type Profile struct {
	Name      string   `yaml:"name"`      // such as "vllm-sleep"
	Framework string   `yaml:"framework"` // whose settings are recommended
	Program   string   `yaml:"program"`   // its name in rules; rules of the programs of other profiles do not apply
	Features  []string `yaml:"features"`  // names of the features that it needs
	About     string   `yaml:"about"`     // description
	Source    string   `yaml:"source"`    // link
}

// RuleKind is the effect of a rule.
type RuleKind string

// The kinds of rules, the worst first. A setting that fails or is ignored is not recommended.
const (
	Fails   RuleKind = "error"   // fails, hangs or corrupts data
	Ignored RuleKind = "ignored" // without effect
	Slow    RuleKind = "slow"    // works at a cost: time, addresses, part of the effect, or a clear error
)

// Rule is an entry of the table: settings that do not work with a feature.
type Rule struct {
	ID       string   `yaml:"id" json:"id"`             // unique name
	Settings []string `yaml:"settings" json:"settings"` // any of them; see the head of the table
	// name of the feature; empty: the rule always holds
	Feature  string   `yaml:"feature" json:"feature,omitempty"`
	Program  string   `yaml:"program" json:"program,omitempty"`   // whose versions the bounds are; empty: PyTorch
	From     string   `yaml:"from" json:"from,omitempty"`         // first version; empty: every earlier one
	Below    string   `yaml:"below" json:"below,omitempty"`       // first version without it; empty: every later one
	Unstated bool     `yaml:"unstated" json:"unstated,omitempty"` // the source does not give all bounds
	Kind     RuleKind `yaml:"kind" json:"kind"`                   // effect
	Says     string   `yaml:"says" json:"says"`                   // sentence
	Source   string   `yaml:"source" json:"source"`               // link
	Checked  string   `yaml:"checked" json:"checked"`             // date on which the source was read
}

// Compatibility returns the table of compatibility, which is part of the program.
var Compatibility = sync.OnceValue(func() *Rules {
	limits := strictyaml.Limits{Bytes: mostRulesBytes, Depth: mostGridDepth}
	root, err := strictyaml.Read(bytes.NewReader(rulesFile), limits)
	var t Rules
	if err == nil {
		err = root.Load(&t, yaml.WithKnownFields())
	}
	if err != nil {
		panic(fmt.Sprintf("whatif: the table of compatibility is malformed: %v", err))
	}
	return &t
})

// FeatureNames returns the names of all features.
func (t *Rules) FeatureNames() (names []string) {
	for _, f := range t.Features {
		names = append(names, f.Name)
	}
	return names
}

// ProfileNames returns the names of all profiles.
func (t *Rules) ProfileNames() (names []string) {
	for _, p := range t.Profiles {
		names = append(names, p.Name)
	}
	return names
}

// profile returns the profile of a name, or nil.
func (t *Rules) profile(name string) *Profile {
	i := slices.IndexFunc(t.Profiles, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &t.Profiles[i]
}

// applying returns the rules for features and a version of PyTorch, "" if it is unknown. With a
// profile, rules of the programs of other profiles do not apply. Versions of other programs are
// unknown, so their rules apply regardless of the bounds.
func (t *Rules) applying(features []string, version string, with *Profile) (all []Rule) {
	for _, r := range t.Rules {
		switch {
		case r.Feature != "" && !slices.Contains(features, r.Feature):
		case r.Program == "" && !r.covers(version):
		case with != nil && r.Program != with.Program && slices.ContainsFunc(t.Profiles,
			func(p Profile) bool { return p.Program == r.Program }):
		default:
			all = append(all, r)
		}
	}
	return all
}

// covers reports whether the bounds of a rule include a version of PyTorch. An unknown version, "",
// counts as included.
func (r *Rule) covers(version string) bool {
	return version == "" || !torchenv.Older(version, r.From) && (r.Below == "" || torchenv.Older(version, r.Below))
}

// concerns reports whether a rule is about a point, for a user of a framework.
func (r *Rule) concerns(p *Point, framework string) bool {
	if len(p.ranks) > 0 {
		return slices.ContainsFunc(p.ranks, func(own *Point) bool { return r.concerns(own, framework) })
	}
	items := itemsOf(p, framework)
	return slices.ContainsFunc(r.Settings, func(text string) bool {
		for part := range strings.SplitSeq(text, ",") {
			if !slices.ContainsFunc(items, func(item string) bool {
				return item == part || strings.HasPrefix(item, part+":") || strings.HasPrefix(item, part+"=")
			}) {
				return false
			}
		}
		return true
	})
}

// pluggable is the item of strategies that PyTorch loads as a CUDAPluggableAllocator.
const pluggable = "pluggable"

// itemsOf returns the parts of a point that rules name: its strategy, its environment variables and
// their settings, the settings of its calls, and whether it replaces PyTorch's allocator.
func itemsOf(p *Point, framework string) []string {
	name, _, _ := strings.Cut(p.Strategy, ":")
	items := append([]string{"strategy:" + name}, p.environment()...)
	items = append(items, settingsOf(p.environment())...)
	if p.Export != nil {
		for _, c := range p.Export.Calls {
			items = append(items, settingsIn(c.Conf)...)
		}
	}
	if framework == pytorch && (p.Export == nil || p.Export.Framework != pytorch) {
		items = append(items, pluggable)
	}
	return items
}

// Versions describes the program of a rule and its bounds, such as "vLLM" or "PyTorch before 2.5".
func (r *Rule) Versions() string {
	text := cmp.Or(r.Program, pytorch)
	if r.From != "" {
		text += " from " + r.From
	}
	if r.Below != "" {
		text += " before " + r.Below
	}
	return text
}
