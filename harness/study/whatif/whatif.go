package whatif

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/cell"
	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/study/offline"
	"github.com/vramyard/vramyard/harness/study/postmortem"
	"github.com/vramyard/vramyard/harness/trace"
)

// Schema is the schema of a [Result] in JSON.
const Schema = "vramyard-whatif/1"

// Options configure a search. The zero value is ready to use.
type Options struct {
	Device  sim.Config    // the device; its capacity is ignored; policy "": as recorded
	Card    device.Size   // capacity of the card; 0: the recorded one, if known
	Context device.Size   // bytes of CUDA's context and libraries that Card excludes; 0: it may include them
	FreeAt  replay.FreeAt // when a strategy without streams learns of a delayed free
	Full    bool          // search each minimum completely, ignoring the budget
	Workers int           // concurrent replays; 0: one per core
	Memory  device.Size   // limit of the memory of concurrent replays; 0: none. One replay always runs
	Needs   Needs         // of the deployment
	Cells   *cell.Cells   // replays that are computed only once; nil: everything is computed
	Beside  *Beside       // a sleeping program on the same card, of which Card is the rest; nil: none
	// Catalogue has the configurations of the names: an answer states the other fields of a strategy.
	Catalogue setting.Catalogue
	// Progress is called, never concurrently, with the events replayed and an estimate of their
	// total; may be nil. Both are equal at the end.
	Progress func(done, total uint64)
}

// Result is the result of a search.
type Result struct {
	Schema     string           `json:"schema"`     // the constant Schema
	Provenance provenance.Build `json:"provenance"` // the program
	Device     replay.Target    `json:"device"`     // the device, with the card's capacity; 0: unknown
	FreeAt     replay.FreeAt    `json:"free_at"`    // when strategies without streams learned of delayed frees
	Card       device.Size      `json:"card_bytes"` // capacity of the card; 0: unknown
	// bytes of CUDA's context and libraries that the card excludes; absent: it may include them
	Context device.Size `json:"context_bytes,omitempty"`

	Beside *Beside `json:"beside,omitempty"` // a sleeping program on the same card; absent: none

	Answer   Answer   `json:"answer"`   // as text
	Recorded Recorded `json:"recorded"` // the recorded run
	Permit   *Permit  `json:"permit"`   // needs of the deployment, and the rules that follow

	// the failed request; absent: none failed, or the card is unknown
	Explained *Explained `json:"failure,omitempty"`

	// Releases are the outcomes under the rules of each range of releases; nil: not compared.
	Releases []ReleaseResult `json:"releases,omitempty"`

	Cannot string            `json:"cannot_answer,omitempty"` // why there is no answer; empty: there is one
	Final  *postmortem.Final `json:"final_heap,omitempty"`    // if there is no answer: the heap when the file was written

	// Offline is the capacity sufficient with all requests known in advance; absent for long
	// traces.
	Offline *offline.Summary `json:"offline,omitempty"`

	// Pools compares other private pools than the recorded ones; absent without any, and for long
	// traces.
	Pools *Pools `json:"pools,omitempty"`

	LowerBound device.Size `json:"lower_bound_bytes"` // peak of the live bytes, refused requests included
	Budget     uint64      `json:"event_budget"`      // most events to replay; 0: no limit
	// events replayed; explaining a failure counts as four replays for each setting
	Replayed uint64 `json:"replayed_event_count"`
	Points   int    `json:"point_count"` // settings requested
	// events of replays that were not made, because their outcome was known; the budget counts them
	Spared uint64  `json:"-"`
	Runs   []Point `json:"runs"` // without redundant ones, by minimum capacity
	names  setting.Catalogue
	mixed  bool // the ranks of a fleet have different recorded settings, so that Recorded has none
}

// Point is a setting of a strategy with its outcome.
type Point struct {
	compare.Run
	// short name: the setting, or the strategy and the fields that differ from its preset
	Label    string          `json:"label"`
	Export   *setting.Export `json:"export,omitempty" flat:"-"` // variables that select it; absent: not selectable
	Changes  int             `json:"change_count"`              // number of settings that differ from the recorded ones
	Recorded bool            `json:"is_recorded"`               // the recorded setting
	// with the smallest share of the card that completes, in hundredths
	LeastShare bool     `json:"is_least_share,omitempty" flat:"-"`
	Same       []string `json:"same_as,omitempty" flat:"-"`  // labels of equivalent settings on this trace
	Carried    *bool    `json:"carried"`                     // the trace completes on the card; null: no card is known
	Permit     RuleKind `json:"permit,omitempty"`            // worst kind of the rules that concern it; absent: none do
	RuleIDs    []string `json:"rule_ids,omitempty" flat:"-"` // the rules that concern it
	// highest capacity below CompletesAt that failed; null: none
	FailsAt *device.Size `json:"fails_at_bytes"`
	// CompletesAt is the lowest capacity that completed; null: none.
	CompletesAt *device.Size `json:"completes_at_bytes"`

	// AtFailure is the outcome of the failed request; null: not tested.
	AtFailure *Moment `json:"at_failure" flat:"-"`

	setup setting.Setup
	alike []Point  // the settings in Same, not replayed
	ranks []*Point // of a fleet, the recorded settings of each rank; nil for any other point
}

// Setup returns the setting for a device of n bytes.
func (p *Point) Setup(n device.Size) setting.Setup { return p.setup.ForCapacity(n) }

// family returns the name of the strategy without its preset.
func (p *Point) family() string {
	name, _, _ := strings.Cut(p.Strategy, ":")
	return name
}

// Fails reports whether the trace fails on the card, or on the device of its figures.
func (p *Point) Fails() bool { return !p.Completed() || p.Carried != nil && !*p.Carried }

// Need returns a capacity that is known to suffice, or 0.
func (p *Point) Need() device.Size {
	if p.CompletesAt == nil {
		return 0
	}
	return *p.CompletesAt
}

// mostLive is the most live bytes that are replayed: ten times the largest card. A program's bug
// may request any size, and strategies that map pages handle each page.
const mostLive = 2 * device.TiB

// Search replays a trace through every setting of a grid and through the recorded settings, if
// known. If ctx ends, it returns its error, and the settings tried so far, or nil.
func Search(ctx context.Context, w *SurveyedTrace, rec Recorded, grid []setting.Setup, o Options) (*Result, error) {
	prepared, err := replay.Prepare(ctx, w)
	if err != nil {
		return nil, err
	}
	if prepared.LowerBound() == 0 {
		return nil, fmt.Errorf("%s: the trace has no allocations", w.Head().Header.Name)
	}
	rec.Deploy(o.Needs)
	card := cmp.Or(o.Card, rec.Capacity)
	o.Device.Policy = cmp.Or(o.Device.Policy, rec.Policy)
	r := &Result{
		Schema: Schema, Provenance: provenance.Read(), Device: replay.SimTarget(o.Device).Used(card),
		FreeAt: cmp.Or(o.FreeAt, replay.AtCompleted),
		Card:   card, Context: o.Context, Beside: o.Beside,
		Recorded: rec, LowerBound: prepared.LowerBound(), Points: len(grid), names: o.Catalogue,
	}
	if rec.Setup.Name != "" {
		r.Points++
	}
	why := rec.gap()
	switch {
	case why != "":
		r.cannot(why)
	case r.LowerBound > mostLive:
		r.Runs = []Point{}
	}
	if r.Runs != nil {
		r.decide(o.Needs, w.Demand.Pools)
		r.Answer = AnswerOf(r, w.Demand.Pools)
		return r, nil
	}
	r.Runs = points(rec.Framework, grid, rec.Setup, keyOn(w.Demand))
	r.decide(o.Needs, w.Demand.Pools)
	s := &search{Result: r, ctx: ctx, trace: prepared, demand: w.Demand, o: o, pool: compare.NewPool(o.Workers, o.Memory)}
	s.explains = card != 0 && w.Refusals.Count > 0
	if err = s.run(); err == nil && r.Cannot == "" {
		err = s.leastShare()
		r.decide(o.Needs, w.Demand.Pools) // also of the point that it adds
	}
	if err == nil && r.Cannot == "" {
		err = s.explain(w)
	}
	if err == nil {
		s.enter(phaseExplain, 0)
		s.showProgress()
	}
	if err == nil && r.Cannot == "" {
		r.Offline, err = packed(ctx, w, r.FreeAt, o.Full)
	}
	if err != nil && (!errors.Is(err, ctx.Err()) || !s.partial()) {
		return nil, err
	}
	if err == nil && r.Cannot == "" {
		r.Pools, err = s.repool(w)
	}
	for _, t := range s.trials {
		r.Spared += t.Recalled()
	}
	r.Replayed = s.done.Load() - r.Spared
	slices.SortStableFunc(r.Runs, byNeed)
	r.Answer = AnswerOf(r, w.Demand.Pools)
	return r, err
}

// The limits of packing offline: a fraction of a second, or a few seconds with the full grid.
const (
	packedEvents     = 60_000
	packedSteps      = 20_000_000
	packedFullEvents = 400_000
)

// packed packs the trace offline, with all requests known in advance.
func packed(ctx context.Context, w *SurveyedTrace, at replay.FreeAt, full bool) (*offline.Summary, error) {
	most, limits := packedEvents, offline.Limits{Steps: packedSteps}
	if full {
		most, limits.Steps = packedFullEvents, offline.DefaultSteps
	}
	if w.Head().Events > most {
		return nil, nil
	}
	p, err := offline.Of(w, offline.Options{FreeAt: at})
	if err != nil {
		return nil, err
	}
	s, sum := offline.Best(ctx, p, limits)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := p.Validate(s); err != nil {
		return nil, fmt.Errorf("%s: packed offline: %w", w.Head().Header.Name, err)
	}
	sum.Trace, sum.Hash = w.Head().Header.Name, w.Head().Header.Hash
	return sum, nil
}

// byNeed orders points by minimum capacity, or by the sufficient end of an interval; points without
// bounds follow, and failed runs come last.
func byNeed(a, b Point) int {
	rank := func(p *Point) device.Size {
		if p.CompletesAt != nil && p.MinCapacity == nil && !p.setup.Preallocates && p.Completed() {
			return min(*p.CompletesAt, p.PeakReserved)
		}
		return p.Need() - 1 // 0 becomes the largest value
	}
	return cmp.Or(failedLast(&a, &b), cmp.Compare(rank(&a), rank(&b)), cmp.Compare(a.PeakReserved, b.PeakReserved))
}

// failedLast orders points that fail after the others.
func failedLast(a, b *Point) int {
	switch {
	case a.Fails() == b.Fails():
		return 0
	case a.Fails():
		return 1
	}
	return -1
}

// keyOn returns a function with equal keys for settings that are equivalent on a demand. Settings
// that are equivalent for lack of polls only have two keys, and one point follows the other; see
// [search.followed].
func keyOn(d setting.Demand) func(setting.Setup) string {
	d.Polls = true
	return func(s setting.Setup) string { return decisions(s.Reduced(d)) }
}

// points returns the settings whose keys differ, the recorded ones first. Equivalent settings are
// represented by the recorded one, or by the one with the fewest changes.
func points(framework string, grid []setting.Setup, recorded setting.Setup, key func(setting.Setup) string) []Point {
	var all []Point
	if recorded.Name != "" {
		p := newPoint(framework, recorded, recorded)
		p.Recorded = true
		all = append(all, p)
	}
	for _, s := range grid {
		all = append(all, newPoint(framework, s, recorded))
	}
	disambiguate(all)
	var kept []Point
	places := map[string]int{} // by key
	for _, p := range all {
		k := key(p.setup)
		i, found := places[k]
		switch {
		case !found:
			places[k] = len(kept)
			kept = append(kept, p)
		case p.setup.Name == kept[i].setup.Name && decisions(p.setup) == decisions(kept[i].setup): // duplicate
		case simpler(&p, &kept[i]):
			p.alike = append([]Point{kept[i]}, kept[i].alike...)
			kept[i] = p
		default:
			kept[i].alike = append(kept[i].alike, p)
		}
	}
	for i := range kept {
		for _, p := range kept[i].alike {
			kept[i].Same = append(kept[i].Same, p.Label)
		}
	}
	return kept
}

// simpler reports whether one of two equivalent settings is easier to select.
func simpler(a, b *Point) bool {
	if (a.Export == nil) != (b.Export == nil) {
		return a.Export != nil && !b.Recorded
	}
	return a.Changes < b.Changes && !b.Recorded
}

// decisions is the identity of a setup: the strategy without preset, and the configuration.
func decisions(s setting.Setup) string {
	name, _, _ := strings.Cut(s.Name, ":")
	text, _ := json.Marshal(s.Config) // a replay will report an error
	return name + string(text)
}

func newPoint(framework string, s, recorded setting.Setup) Point {
	p := Point{setup: s, Label: s.Name}
	p.Strategy, p.Baseline = s.Name, s.Baseline
	p.Export = exportFor(framework, s)
	if p.Export == nil {
		p.Changes = 1
		return p
	}
	from := exportFor(p.Export.Framework, recorded)
	if from == nil || from.Framework != p.Export.Framework {
		from = &setting.Export{}
	}
	// Each call is another change, because the program must be edited.
	p.Changes = changes(from.Environment, p.Export.Environment) + changes(from.Options, p.Export.Options) +
		len(p.Export.Calls)
	return p
}

// changes counts the settings to add or remove between two environments. A variable may hold
// several settings, separated by commas.
func changes(from, to []string) int {
	a, b := settingsOf(from), settingsOf(to)
	n := 0
	for _, s := range a {
		if !slices.Contains(b, s) {
			n++
		}
	}
	for _, s := range b {
		if !slices.Contains(a, s) {
			n++
		}
	}
	return n
}

// settingsOf splits the values of an environment into settings.
func settingsOf(environment []string) (all []string) {
	for _, e := range environment {
		_, value, _ := strings.Cut(e, "=")
		all = append(all, settingsIn(value)...)
	}
	return all
}

// settingsIn splits a value into settings. Commas inside brackets do not separate.
func settingsIn(value string) (all []string) {
	depth, start := 0, 0
	for i, c := range value + "," {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == ',' && depth <= 0:
			if part := strings.TrimSpace(value[start:i]); part != "" {
				all = append(all, part)
			}
			start = i + 1
		}
	}
	return all
}

// disambiguate extends equal labels by the configuration fields that differ.
func disambiguate(all []Point) {
	for i := range all {
		all[i].Label = labelAmong(all, all[i].setup)
	}
}

// rulesField is the field with the rules of releases of PyTorch.
const rulesField = "rules"

// labelAmong returns the name of a setup, and the fields in which it differs from points of that
// name. A single string field is shown without its name.
func labelAmong(all []Point, s setting.Setup) string {
	mine := fieldsOf(s)
	differ := map[string]json.RawMessage{}
	for j := range all {
		if all[j].setup.Name != s.Name {
			continue
		}
		other := fieldsOf(all[j].setup)
		for name, value := range mine { // a field that is left out is zero
			// --torch replays all settings except the recorded ones under the rules of another release.
			if !bytes.Equal(value, other[name]) && !(all[j].Recorded && name == rulesField) {
				differ[name] = value
			}
		}
	}
	return strings.TrimSpace(s.Name + " " + fieldText(differ))
}

func fieldText(fields map[string]json.RawMessage) string {
	if len(fields) == 0 {
		return ""
	}
	raw, _ := json.Marshal(fields) // sorted; the parts are valid JSON
	var texts map[string]string
	if len(fields) == 1 && json.Unmarshal(raw, &texts) == nil {
		for _, text := range texts {
			return text
		}
	}
	return string(raw)
}

func fieldsOf(s setting.Setup) (fields map[string]json.RawMessage) {
	text, err := json.Marshal(s.Config)
	if err != nil || json.Unmarshal(text, &fields) != nil {
		return nil // a replay will report the error
	}
	return fields
}

var _ trace.Source = (*SurveyedTrace)(nil)
