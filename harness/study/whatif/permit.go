package whatif

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/nearest"
	"github.com/vramyard/vramyard/internal/units"
)

// Needs are the features that the settings of a deployment must work with.
type Needs struct {
	Features []string // names of features; nil: the ones in the file, unless Serving is given
	Serving  string   // name of a profile; "": none
	Torch    string   // version of PyTorch; "": the one in the file
}

// NoFeatures is the text for no feature at all, not even the ones in the file.
const NoFeatures = "none"

// errNotAlone refuses [NoFeatures] beside features.
var errNotAlone = errors.New(`"` + NoFeatures + `" stands alone: want it or features`)

// ParseFeatures reads names of features, separated by commas. "" returns nil.
func ParseFeatures(text string) ([]string, error) {
	switch text {
	case "":
		return nil, nil
	case NoFeatures:
		return []string{}, nil
	}
	known := Compatibility().FeatureNames()
	var names []string
	for name := range strings.SplitSeq(text, ",") {
		switch name = strings.TrimSpace(name); {
		case name == NoFeatures:
			return nil, fmt.Errorf("%q: %w", text, errNotAlone)
		case !slices.Contains(known, name):
			return nil, fmt.Errorf("unknown feature %q: %s", name, nearest.Want(name, append(known, NoFeatures)))
		}
		names = append(names, name)
	}
	return names, nil
}

// ParseServing reads the name of a profile. "" means no profile.
func ParseServing(name string) (string, error) {
	t := Compatibility()
	if name != "" && t.profile(name) == nil {
		return "", fmt.Errorf("unknown profile %q: %s", name, nearest.Want(name, t.ProfileNames()))
	}
	return name, nil
}

var (
	torchVersion    = regexp.MustCompile(`^[0-9]{1,4}\.[0-9]{1,4}([.+a-z-][0-9A-Za-z.+-]*)?$`)
	errTorchVersion = errors.New("want a version of PyTorch, such as 2.9.1")
)

// ParseTorch reads a version of PyTorch. "" is unknown.
func ParseTorch(text string) (string, error) {
	if text != "" && !torchVersion.MatchString(text) {
		return "", fmt.Errorf("%q: %w", text, errTorchVersion)
	}
	return text, nil
}

// Check returns an error if the version of PyTorch is given for another framework: the one of the
// profile or, without a profile, of the recording. "" is an unknown framework.
func (n Needs) Check(framework string) error {
	if p := Compatibility().profile(n.Serving); p != nil {
		framework = p.Framework
	}
	if n.Torch == "" || framework == "" || framework == pytorch {
		return nil
	}
	return fmt.Errorf("%q is a version of PyTorch, and the program is of %s: want one of them", n.Torch, framework)
}

// Permit has the needs of the deployment, and the rules that follow.
type Permit struct {
	Features []Needed `json:"features"`          // by their place in the table
	Serving  string   `json:"serving,omitempty"` // name of the profile
	Shown    []string `json:"shown,omitempty"`   // parts of the file that say something about the deployment
	Rules    []Rule   `json:"rules,omitempty"`   // that concern a setting which was tried

	given bool  // by flags
	needs Needs // as given
}

// Needed is a feature that the deployment needs.
type Needed struct {
	Feature
	Why string `json:"why"` // "--permit", "--serving" or the part of the file that shows it
}

// Parts of files that say something about the deployment.
const (
	showsPools      = "private pools"
	showsExpandable = "expandable segments"
)

// Deploy sets the framework and the version of a deployment, if its needs name them.
func (r *Recorded) Deploy(n Needs) {
	r.Version = cmp.Or(n.Torch, r.Version)
	if p := Compatibility().profile(n.Serving); p != nil {
		if r.Framework = p.Framework; p.Framework != pytorch {
			r.Version = ""
		}
	} else if n.Torch != "" {
		r.Framework = pytorch
	}
}

// decide finds the needs of the deployment, and applies the rules to the points.
func (r *Result) decide(n Needs, pools bool) {
	t := Compatibility()
	profile := t.profile(n.Serving)
	rec := &r.Recorded
	r.Permit = &Permit{Features: []Needed{}, Serving: n.Serving, given: n.Features != nil || profile != nil, needs: n}
	if pools || rec.Pools > 0 {
		r.Permit.Shown = append(r.Permit.Shown, showsPools)
	}
	if p := newPoint(pytorch, rec.Setup, rec.Setup); slices.Contains(itemsOf(&p, pytorch), "expandable_segments:True") {
		r.Permit.Shown = append(r.Permit.Shown, showsExpandable)
	}
	why := func(name string) string {
		switch {
		case slices.Contains(n.Features, name):
			return "--permit"
		case profile != nil && slices.Contains(profile.Features, name):
			return "--serving"
		case n.Features == nil && profile == nil && name == "graphs" && slices.Contains(r.Permit.Shown, showsPools):
			return showsPools
		}
		return ""
	}
	for _, f := range t.Features {
		if w := why(f.Name); w != "" {
			r.Permit.Features = append(r.Permit.Features, Needed{f, w})
		}
	}
	rules := t.applying(r.Permit.names(), rec.Version, profile)
	concerned := map[string]bool{}
	for i := range r.Runs {
		p := &r.Runs[i]
		for j := range p.alike {
			p.alike[j].obey(rules, rec.Framework)
		}
		p.obey(rules, rec.Framework)
		for _, id := range p.RuleIDs {
			concerned[id] = true
		}
	}
	r.Permit.Rules = slices.DeleteFunc(rules, func(r Rule) bool { return !concerned[r.ID] })
}

func (p *Permit) names() (names []string) {
	for _, f := range p.Features {
		names = append(names, f.Name)
	}
	return names
}

// obey stores the rules that concern a point, and the worst of their kinds.
func (p *Point) obey(rules []Rule, framework string) {
	p.Permit, p.RuleIDs = "", nil
	for _, r := range rules {
		if r.concerns(p, framework) {
			p.RuleIDs = append(p.RuleIDs, r.ID)
			p.Permit = worse(p.Permit, r.Kind)
		}
	}
}

// worse returns the worse of two kinds.
func worse(a, b RuleKind) RuleKind {
	for _, k := range []RuleKind{Fails, Ignored, Slow} {
		if a == k || b == k {
			return k
		}
	}
	return ""
}

// Note describes the worst kind of the rules that concern a point, and their features, such as
// "not permitted with rdma, ipc"; "" if none concerns it.
func (p *Permit) Note(of *Point) string {
	note := map[RuleKind]string{Fails: "not permitted", Ignored: "ignored", Slow: "at a cost"}[of.Permit]
	var features []string
	for _, r := range p.Rules {
		if r.Kind == of.Permit && r.Feature != "" && slices.Contains(of.RuleIDs, r.ID) &&
			!slices.Contains(features, r.Feature) {
			features = append(features, r.Feature)
		}
	}
	if len(features) > 0 {
		note += " with " + strings.Join(features, ", ")
	}
	return note
}

// Permitted reports whether a point may be recommended.
func (p *Point) Permitted() bool { return p.Permit == "" || p.Permit == Slow }

// Constrained is the answer for a deployment with a common constraint.
type Constrained struct {
	Features    []string    `json:"features"`              // names of the needed features
	Label       string      `json:"label,omitempty"`       // of the best permitted setting; empty: none
	Environment []string    `json:"environment,omitempty"` // variables to export for it
	Need        device.Size `json:"need_bytes,omitempty"`  // a sufficient capacity
	Text        string      `json:"text"`                  // sentence
}

// constraints are the common constraints: memory that other processes and network adapters address,
// sleep mode, and CUDA graphs of torch.compile. docs/whatif.md gives the reasons.
func constraints() [][]string {
	return [][]string{{"rdma", "ipc"}, {"sleep", "mempool"}, {"graph-trees"}}
}

// constrain answers for each common constraint under which the answer would be another one, if no
// flag gives the needs of the deployment.
func (t *answerWriter) constrain(first func(func(*Point) bool) func(*Point) bool) {
	if t.Permit == nil || t.Permit.given {
		return
	}
	label := t.a.Label
	switch t.a.Verdict {
	case Setting, Strategy:
	case Carried, NoCard:
		if label == "" && t.recorded != nil {
			label = t.recorded.Label
		}
	default:
		return
	}
	answer, chosen := t.a, t.chosen
	defer func() { t.allowed = (*Point).Permitted }()
	for _, features := range constraints() {
		rules := Compatibility().applying(append(t.Permit.names(), features...), t.Recorded.Version, nil)
		t.allowed = func(p *Point) bool {
			q := *p
			q.obey(rules, t.Recorded.Framework)
			return q.Permitted()
		}
		if answer.Label == "" && t.recorded != nil && t.allowed(t.recorded) {
			continue // the answer names no other setting, and the recorded ones are permitted
		}
		c := t.constrained(features, first)
		if t.a, t.chosen = answer, chosen; c.Label != label {
			answer.Constraints = append(answer.Constraints, c)
		}
	}
	t.a = answer
}

// constrained returns the answer for points that t.allowed accepts.
func (t *answerWriter) constrained(features []string, first func(func(*Point) bool) func(*Point) bool) Constrained {
	enough := func(p *Point) bool { return p.Need() != 0 && (t.Card == 0 || p.Carried != nil && *p.Carried) }
	best, pools, text := t.best(first(enough)), t.bestPools(enough), "none."
	switch verdict := t.a.Verdict; {
	case best == nil && pools != nil:
		t.choosePools(pools)
		text = t.Pools.gerund(pools.way) + " " + needs(&pools.Point) + "."
	case best == nil:
		if best = t.best(enough); best == nil {
			t.a.Label, t.a.Environment, t.a.Need = "", nil, 0
			break
		}
		fallthrough
	default:
		if verdict == Setting {
			best = t.shrunk(best)
		}
		t.choose(best)
		text = strings.TrimSpace(t.name(best) + " " + needs(best) + ". " + t.use(best))
	}
	return Constrained{
		Features: features, Label: t.a.Label, Environment: t.a.Environment, Need: t.a.Need,
		Text: fmt.Sprintf("%s (--permit %s): %s", strings.Join(features, ", "), strings.Join(features, ","), text),
	}
}

// tried describes the settings that an answer is about, if the deployment permits all of them.
const tried = "tried"

// scope describes the settings that an answer is about.
func (t *answerWriter) scope() string {
	if slices.ContainsFunc(t.Runs, func(p Point) bool { return !p.Permitted() }) {
		return "permitted"
	}
	return tried
}

// permits describes the needs of the deployment, and the settings that they rule out or make slow.
func (t *answerWriter) permits() {
	if t.Permit == nil {
		return
	}
	say := func(format string, args ...any) { t.a.Permits = append(t.a.Permits, fmt.Sprintf(format, args...)) }
	if len(t.Permit.Shown) > 0 {
		say("The file shows %s.", strings.Join(t.Permit.Shown, " and "))
	}
	var needed []string
	for _, f := range t.Permit.Features {
		needed = append(needed, fmt.Sprintf("%s (%s)", f.Name, f.Why))
	}
	if len(needed) > 0 {
		say("The settings must work with %s.", strings.Join(needed, ", "))
	}
	if t.recorded != nil && !t.recorded.Permitted() {
		say("The recorded settings do not.")
	}
	if t.Recorded.Version == "" && slices.ContainsFunc(t.Permit.Rules,
		func(r Rule) bool { return r.Program == "" && r.From+r.Below != "" }) {
		say("The release of PyTorch is unknown, so the rules of all releases apply: --torch names it.")
	}
	t.a.Permits = append(t.a.Permits, t.reasons()...)
}

// mostNamed is the most settings that are named together. A grid may have thousands.
const mostNamed = 20

// reasons names the settings that rules leave out or make slow. Each text has settings with the
// same rules, and the rules on a line each.
func (t *answerWriter) reasons() (texts []string) {
	var heads []string // of texts, with all settings
	for _, r := range t.Permit.Rules {
		var labels []string
		for i := range t.Runs {
			if p := &t.Runs[i]; slices.Contains(p.RuleIDs, r.ID) &&
				(r.Kind != Slow || p.Permitted() && !p.Baseline) {
				labels = append(labels, p.Label)
			}
		}
		if len(labels) == 0 {
			continue // other rules forbid them, or they are baselines, whose cost is by design
		}
		head := "Left out: "
		if r.Kind == Slow {
			head = "Permitted at a cost: "
		}
		all := head + strings.Join(labels, "; ")
		if n := len(labels) - mostNamed; n > 0 {
			labels = append(labels[:mostNamed], fmt.Sprintf("%s more, which the table marks", units.Count(uint64(n))))
		}
		i := slices.Index(heads, all)
		if i < 0 {
			i, heads, texts = len(heads), append(heads, all), append(texts, head+strings.Join(labels, "; "))
		}
		with := "always"
		if r.Feature != "" {
			with = "with " + r.Feature
		}
		if r.Kind == Ignored {
			with += ", without effect"
		}
		texts[i] += fmt.Sprintf("\n%s: %s (%s) %s", with, r.Says, r.Versions(), r.Source)
	}
	return texts
}
