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
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/study/offline"
	"github.com/vramyard/vramyard/harness/study/postmortem"
	"github.com/vramyard/vramyard/harness/trace"
)

// Schema names the form of [Result] in JSON.
const Schema = "vramyard-whatif/1"

// Options of a search. The zero value is useful.
type Options struct {
	Device  sim.Config    // the device but for its capacity
	Card    device.Size   // capacity in bytes of the card in question; 0: that of the recording, if it is known
	FreeAt  replay.FreeAt // when a strategy that knows no streams is told of a delayed free
	Full    bool          // each minimum is searched to its end, whatever that costs
	Workers int           // replays at once; 0 is one for each core
	Memory  device.Size   // bytes that replays at once may take; 0 is without bound. One replay always runs
	Version string        // of the program, kept in the result
	// Progress is called with the events that were replayed and about how many there will be in all,
	// one call at a time; nil for none. The two are equal in the end.
	Progress func(done, total uint64)
}

// Result is the outcome of a search.
type Result struct {
	Schema  string        `json:"schema"`     // the constant Schema
	Version string        `json:"version"`    // of the program
	Device  replay.Target `json:"device"`     // the device; its capacity is that of the card, 0 if that is not known
	FreeAt  replay.FreeAt `json:"free_at"`    // when strategies that know no streams were told of delayed frees
	Card    device.Size   `json:"card_bytes"` // capacity of the card in question; 0: not known

	Answer   Answer   `json:"answer"`   // in words
	Recorded Recorded `json:"recorded"` // what the file says of the run

	// the request that found no memory; absent: none did, or no card is known
	Explained *Explained `json:"failure,omitempty"`

	Cannot string            `json:"cannot_answer,omitempty"` // why the file has no answer; empty: it has one
	Final  *postmortem.Final `json:"final_heap,omitempty"`    // of a file without an answer: the heap when it was written

	// Offline is how little would do if everything were known before; absent where the trace is too
	// long.
	Offline *offline.Summary `json:"offline,omitempty"`

	LowerBound device.Size `json:"lower_bound_bytes"` // peak of the live bytes, refused requests among them
	Budget     uint64      `json:"event_budget"`      // most events to replay; 0: no bound
	// events that were replayed; what explains a failure is counted as four replays of each setting
	Replayed uint64  `json:"replayed_event_count"`
	Points   int     `json:"point_count"` // settings that were asked for
	Runs     []Point `json:"runs"`        // of those that may differ, by minimum capacity
}

// Point is one setting of one strategy, and what became of it.
type Point struct {
	compare.Run
	// short name: the setting, or strategy and what differs from its preset
	Label    string          `json:"label"`
	Export   *setting.Export `json:"export,omitempty" flat:"-"`  // how users of a framework choose it; absent: they cannot
	Changes  int             `json:"change_count"`               // settings that differ from the recorded ones
	Recorded bool            `json:"is_recorded"`                // as the recorded program had it
	Same     []string        `json:"same_as,omitempty" flat:"-"` // labels of settings that decide alike on this trace
	Carried  *bool           `json:"carried"`                    // the trace completes on the card; null: no card is known
	// highest capacity that failed below CompletesAt; null: none did
	FailsAt *device.Size `json:"fails_at_bytes"`
	// CompletesAt is the lowest capacity that was seen to complete; null: none was.
	CompletesAt *device.Size `json:"completes_at_bytes"`

	// AtFailure is what became of the request that found no memory; null: it was not looked at.
	AtFailure *Moment `json:"at_failure" flat:"-"`

	setup setting.Setup
	alike []Point // the settings of Same, which were not replayed
}

// Setup returns the setting, on a device of so many bytes.
func (p *Point) Setup(n device.Size) setting.Setup { return p.setup.ForCapacity(n) }

// Fails reports whether the trace does not complete on the card, or on the device of its figures.
func (p *Point) Fails() bool { return !p.Completed() || p.Carried != nil && !*p.Carried }

// Need returns the capacity in bytes that is known to be enough, 0 if none is.
func (p *Point) Need() device.Size {
	if p.CompletesAt == nil {
		return 0
	}
	return *p.CompletesAt
}

// mostLive is the most live bytes that are replayed: ten times what the largest card has. What a
// program asks for by mistake may be any number, and strategies that map pages take each of them
// apart.
const mostLive = 2 * device.TiB

// Search replays a trace through every setting of a grid and says which of them would have carried
// it. The recorded settings, if they are known, are one more. If ctx ends before, the error is that
// of ctx, and the result has the settings that were tried, and what is known of them; nil if there
// is none.
func Search(ctx context.Context, w *Wanted, rec Recorded, grid []setting.Setup, o Options) (*Result, error) {
	prepared, err := replay.Prepare(ctx, w)
	if err != nil {
		return nil, err
	}
	if prepared.LowerBound() == 0 {
		return nil, fmt.Errorf("%s: the trace allocates nothing", w.Head().Header.Name)
	}
	card := cmp.Or(o.Card, rec.Capacity)
	r := &Result{
		Schema: Schema, Version: o.Version, Device: replay.SimTarget(o.Device).Used(card),
		FreeAt: cmp.Or(o.FreeAt, replay.AtCompleted),
		Card:   card, Recorded: rec, LowerBound: prepared.LowerBound(), Points: len(grid),
	}
	if rec.Setup.Name != "" {
		r.Points++
	}
	why := rec.lacks()
	switch {
	case why != "":
		r.cannot(why)
	case r.LowerBound > mostLive:
		r.Runs = []Point{}
	}
	if r.Runs != nil {
		r.Answer = Tell(r, w.Demand.Pools)
		return r, nil
	}
	r.Runs = points(grid, rec.Setup, w.Demand)
	s := &search{Result: r, ctx: ctx, trace: prepared, o: o, pool: compare.NewPool(o.Workers, o.Memory)}
	s.explains = card != 0 && w.Refusals.Count > 0
	if err = s.run(); err == nil && r.Cannot == "" {
		err = s.explain(w)
	}
	if err == nil {
		s.enter(phaseExplain, 0)
		s.tell()
	}
	if err == nil && r.Cannot == "" {
		r.Offline, err = packed(ctx, w, r.FreeAt, o.Full)
	}
	if err != nil && (!errors.Is(err, ctx.Err()) || !s.partial()) {
		return nil, err
	}
	r.Replayed = s.done.Load()
	slices.SortStableFunc(r.Runs, byNeed)
	r.Answer = Tell(r, w.Demand.Pools)
	return r, err
}

// What is packed offline, and for how long: a fraction of a second, or with the full grid a few.
const (
	packedEvents     = 60_000
	packedSteps      = 20_000_000
	packedFullEvents = 400_000
)

// packed places all that a trace asks for as somebody would who had known it before.
func packed(ctx context.Context, w *Wanted, at replay.FreeAt, full bool) (*offline.Summary, error) {
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

// byNeed orders points by their minimum capacity, or where only a bracket is known by what is
// probably enough; points without any bound come last. Runs that failed stand behind all others.
func byNeed(a, b Point) int {
	rank := func(p *Point) device.Size {
		if p.CompletesAt != nil && p.MinCapacity == nil && !p.setup.Preallocates && p.Completed() {
			return min(*p.CompletesAt, p.PeakReserved)
		}
		return p.Need() - 1 // 0 becomes the largest
	}
	failed := func(p *Point) int {
		if p.Fails() {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(failed(&a), failed(&b)), cmp.Compare(rank(&a), rank(&b)),
		cmp.Compare(a.PeakReserved, b.PeakReserved))
}

// points returns the settings that may differ in a demand, the recorded ones first. Of those that
// decide alike one stands for all: the recorded ones, or those with the fewest changes.
func points(grid []setting.Setup, recorded setting.Setup, d setting.Demand) []Point {
	var all []Point
	if recorded.Name != "" {
		p := newPoint(recorded, recorded)
		p.Recorded = true
		all = append(all, p)
	}
	for _, s := range grid {
		all = append(all, newPoint(s, recorded))
	}
	tellApart(all)
	var kept []Point
	places := map[string]int{} // by what is decided
	for _, p := range all {
		key := decisions(p.setup.Reduced(d))
		i, found := places[key]
		switch {
		case !found:
			places[key] = len(kept)
			kept = append(kept, p)
		case p.setup.Name == kept[i].setup.Name && decisions(p.setup) == decisions(kept[i].setup): // it is the same
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

// simpler reports whether one of two settings that decide alike is easier to choose.
func simpler(a, b *Point) bool {
	if (a.Export == nil) != (b.Export == nil) {
		return a.Export != nil && !b.Recorded
	}
	return a.Changes < b.Changes && !b.Recorded
}

// decisions names what a setup decides: the strategy without its preset, and the configuration.
func decisions(s setting.Setup) string {
	name, _, _ := strings.Cut(s.Name, ":")
	text, _ := json.Marshal(s.Config) // a replay will say what is wrong with it
	return name + string(text)
}

func newPoint(s, recorded setting.Setup) Point {
	p := Point{setup: s, Label: s.Name}
	p.Strategy, p.Baseline = s.Name, s.Baseline
	e, ok := s.Export()
	if !ok {
		p.Changes = 1
		return p
	}
	p.Export = &e
	from, known := recorded.Export()
	if !known || from.Framework != e.Framework {
		from = setting.Export{}
	}
	p.Changes = changes(from.Environment, e.Environment)
	return p
}

// changes counts what has to be set or unset to come from one environment to another. A variable
// may hold several settings, with commas between them.
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

// settingsOf cuts an environment into its settings. Commas inside brackets are part of one.
func settingsOf(environment []string) (all []string) {
	for _, e := range environment {
		_, value, _ := strings.Cut(e, "=")
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
	}
	return all
}

// tellApart adds to the labels of points with one name the fields of their configurations in which
// they differ. A single one that is a text stands for itself.
func tellApart(all []Point) {
	for i := range all {
		p := &all[i]
		mine := fieldsOf(p.setup)
		differ := map[string]json.RawMessage{}
		for j := range all {
			if all[j].setup.Name != p.setup.Name {
				continue
			}
			for name, value := range fieldsOf(all[j].setup) {
				if !bytes.Equal(value, mine[name]) {
					differ[name] = mine[name]
				}
			}
		}
		p.Label = strings.TrimSpace(p.setup.Name + " " + fieldText(differ))
	}
}

func fieldText(fields map[string]json.RawMessage) string {
	if len(fields) == 0 {
		return ""
	}
	raw, _ := json.Marshal(fields) // by name; its parts are JSON
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
		return nil // a replay will say what is wrong with it
	}
	return fields
}

var _ trace.Source = (*Wanted)(nil)
