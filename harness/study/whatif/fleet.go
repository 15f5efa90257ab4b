package whatif

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/trace/flat"
	"github.com/vramyard/vramyard/internal/units"
)

// FleetSchema is the schema of a [Fleet] in JSON.
const FleetSchema = "vramyard-fleet/1"

// Fleet is the searches of several ranks: processes of one run, each with a card of its own.
type Fleet struct {
	Schema     string           `json:"schema"`     // the constant FleetSchema
	Provenance provenance.Build `json:"provenance"` // the program

	Text    []string    `json:"text"`              // sentences: which rank decides the card, and why
	Decides string      `json:"deciding_rank"`     // name of the rank that needs most; empty: unknown
	Median  device.Size `json:"median_need_bytes"` // of the ranks; 0: unknown
	Uneven  Uneven      `json:"uneven,omitempty"`  // why the deciding rank needs more; empty: it does not
	All     *Result     `json:"all_ranks"`         // one answer for all ranks, see [FleetOf]
	Ranks   []Rank      `json:"ranks"`             // by name, see [NaturalOrder]
}

// Uneven is the larger part of the difference between the deciding rank and the median.
type Uneven string

// The causes.
const (
	UnevenLive Uneven = "live"          // its live bytes
	UnevenRest Uneven = "fragmentation" // rounding and fragmentation: its need beyond the live bytes
)

// Rank is the search of one rank.
type Rank struct {
	Name    string `json:"rank"`              // name of its file, and of the part of it
	Setting string `json:"setting,omitempty"` // of Need and Fails: "with the recorded settings"; empty: none is known
	// Need is the smallest capacity known to suffice with the setting; 0: none.
	Need    device.Size `json:"need_bytes"`
	Fails   device.Size `json:"fails_at_bytes"` // the highest capacity known to fail; 0: none
	Carried *bool       `json:"carried"`        // it completes on the card; null: unknown
	Result  *Result     `json:"result"`         // of its search
}

// Live returns the live bytes at the peak, the least that the rank may need.
func (r *Rank) Live() device.Size { return r.Result.LowerBound }

// Rest returns the need beyond the live bytes: rounding and fragmentation.
func (r *Rank) Rest() device.Size { return r.Need - min(r.Need, r.Live()) }

// evenShare is the inverse of the share of the need by which ranks may differ and still be called
// even: 1 %.
const evenShare = 100

// FleetOf combines the searches of the ranks of one run, whose names differ. All searches have the
// same grid and the same options. pools reports whether a trace assigns requests to private pools.
//
// The result for all ranks takes each figure of a setting from the rank that needs most with it. A
// setting completes on the card if every rank does. Ranks that cannot be answered are left out.
func FleetOf(ranks []Rank, grid []setting.Setup, pools bool) *Fleet {
	ranks = slices.Clone(ranks)
	slices.SortFunc(ranks, func(a, b Rank) int { return NaturalOrder(a.Name, b.Name) })
	f := &Fleet{Schema: FleetSchema, Provenance: provenance.Read(), Ranks: ranks}
	m := merger{ranks: slices.DeleteFunc(slices.Clone(ranks), func(r Rank) bool { return r.Result.Cannot != "" })}
	switch len(m.ranks) {
	case 0:
		f.All = ranks[0].Result
	case 1:
		f.All = m.ranks[0].Result
	default:
		f.All = m.merge(grid)
		f.All.Answer = m.answer(pools)
	}
	f.needs()
	f.describe()
	return f
}

// merger combines the results of ranks that have an answer.
type merger struct {
	ranks  []Rank
	points []map[string]int // by rank: index of the point that stands for the decisions of a setup
	all    *Result
}

// merge returns the result for all ranks, without its answer.
func (m *merger) merge(grid []setting.Setup) *Result {
	for _, r := range m.ranks {
		m.points = append(m.points, r.Result.index())
	}
	base := slices.MinFunc(m.ranks, func(a, b Rank) int { return compareRanks(&a, &b) }).Result
	all := *base
	m.all = &all
	all.Explained, all.Offline, all.Final, all.Pools = nil, nil, nil, nil
	all.LowerBound, all.Budget, all.Replayed = 0, 0, 0
	for _, r := range m.ranks {
		all.LowerBound = max(all.LowerBound, r.Result.LowerBound)
		all.Budget += r.Result.Budget
		all.Replayed += r.Result.Replayed
	}
	m.mergeRecorded()
	if slices.ContainsFunc(m.ranks, func(r Rank) bool { return len(r.Result.Runs) == 0 }) {
		all.Runs = []Point{}
		return m.all
	}
	all.Runs = points(all.Recorded.Framework, grid, all.Recorded.Setup, m.key)
	for i := range all.Runs {
		p := &all.Runs[i]
		m.fill(p, func(rank int) *Point { return m.point(rank, p.setup) })
	}
	if p := m.own(); all.Recorded.Setup.Name == "" && p != nil {
		all.Runs = append([]Point{*p}, all.Runs...)
	}
	slices.SortStableFunc(all.Runs, byNeed)
	all.decide(all.Permit.needs, slices.ContainsFunc(m.ranks, func(r Rank) bool {
		return slices.Contains(r.Result.Permit.Shown, showsPools)
	}))
	return m.all
}

// compareRanks orders ranks by need with the recorded settings, the largest first, then by live
// bytes.
func compareRanks(a, b *Rank) int {
	need := func(r *Rank) device.Size {
		if p := r.Result.recorded(); p != nil {
			return p.Need() - 1 // 0 becomes the largest value
		}
		return 0
	}
	return cmp.Or(cmp.Compare(need(b), need(a)), cmp.Compare(b.Live(), a.Live()))
}

// index returns the index of the point that stands for each decisions of a setup.
func (r *Result) index() map[string]int {
	index := map[string]int{}
	for i := range r.Runs {
		p := &r.Runs[i]
		index[decisions(p.setup)] = i
		for k := range p.alike {
			index[decisions(p.alike[k].setup)] = i
		}
	}
	return index
}

// point returns the point that stands for a setup of the grid in the search of a rank.
func (m *merger) point(rank int, s setting.Setup) *Point {
	return &m.ranks[rank].Result.Runs[m.points[rank][decisions(s)]]
}

// key returns the same text for setups that make the same decisions in every rank.
func (m *merger) key(s setting.Setup) string {
	var b strings.Builder
	for rank := range m.ranks {
		fmt.Fprintf(&b, "%d ", m.points[rank][decisions(s)])
	}
	return b.String()
}

// own returns the point of recorded settings that differ between ranks: each rank with its own. It
// returns nil if a rank has none.
func (m *merger) own() *Point {
	for i := range m.ranks {
		if m.ranks[i].Result.recorded() == nil {
			return nil
		}
	}
	p := &Point{setup: m.ranks[0].Result.recorded().setup, Label: "as recorded in each rank", Recorded: true}
	for i := range m.ranks {
		p.ranks = append(p.ranks, m.ranks[i].Result.recorded())
	}
	m.fill(p, func(rank int) *Point { return m.ranks[rank].Result.recorded() })
	return p
}

// fill copies the figures of a point from the rank that needs most. The outcome on the card and the
// bounds of the minimum are for all ranks.
func (m *merger) fill(p *Point, of func(rank int) *Point) {
	all := make([]*Point, len(m.ranks))
	for rank := range m.ranks {
		all[rank] = of(rank)
	}
	name, baseline := p.Strategy, p.Baseline
	p.Run = slices.MaxFunc(all, byFailure).Run
	if name != "" {
		p.Strategy, p.Baseline = name, baseline
	}
	largest := slices.MaxFunc(all, func(a, b *Point) int { return cmp.Compare(a.Need()-1, b.Need()-1) })
	p.CompletesAt, p.MinCapacity, p.SafeFrom = largest.CompletesAt, largest.MinCapacity, largest.SafeFrom
	known, carried := true, true
	for _, q := range all {
		known = known && q.Carried != nil
		carried = carried && q.Carried != nil && *q.Carried
		if q.FailsAt != nil && (p.FailsAt == nil || *q.FailsAt > *p.FailsAt) {
			p.FailsAt = q.FailsAt
		}
		if p.SafeFrom != nil && (q.SafeFrom == nil || *q.SafeFrom > *p.SafeFrom) {
			p.SafeFrom = q.SafeFrom
		}
	}
	if known {
		p.Carried = &carried
	}
}

// byFailure orders ranks with the same setting: failures on the card come last, among them the
// unknown or largest need.
func byFailure(a, b *Point) int {
	return cmp.Or(failedLast(a, b), cmp.Compare(a.Need()-1, b.Need()-1), cmp.Compare(a.PeakReserved, b.PeakReserved))
}

// mergeRecorded combines the recorded facts: settings that all ranks have, and sums of counts.
func (m *merger) mergeRecorded() {
	rec := &m.all.Recorded
	same := func(differs func(other *Recorded) bool) bool {
		return !slices.ContainsFunc(m.ranks, func(r Rank) bool { return differs(&r.Result.Recorded) })
	}
	if !same(func(o *Recorded) bool { return decisions(o.Setup) != decisions(rec.Setup) }) {
		rec.Setup, rec.Config, m.all.mixed = setting.Setup{}, nil, true
	}
	if !same(func(o *Recorded) bool { return o.Framework != rec.Framework }) {
		rec.Framework = ""
	}
	if !same(func(o *Recorded) bool { return o.Version != rec.Version }) {
		rec.Version = ""
	}
	rec.Predicted, rec.Allocs, rec.Entries, rec.Opening, rec.Inconsistencies = 0, 0, 0, 0, 0
	rec.Capacity, rec.Unknown = 0, nil
	for i := range m.ranks {
		o := &m.ranks[i].Result.Recorded
		rec.Predicted += o.Predicted
		rec.Allocs += o.Allocs
		rec.Entries += o.Entries
		rec.Opening += o.Opening
		rec.Inconsistencies += o.Inconsistencies
		rec.Pools, rec.Streams = max(rec.Pools, o.Pools), max(rec.Streams, o.Streams)
		rec.Rounded = rec.Rounded || o.Rounded
		rec.Stopped = cmp.Or(rec.Stopped, o.Stopped)
		if o.Capacity != 0 && (rec.Capacity == 0 || o.Capacity < rec.Capacity) {
			rec.Capacity = o.Capacity
		}
		if rec.Failure == nil {
			rec.Failure = o.Failure
		}
		for _, u := range o.Unknown {
			if !slices.Contains(rec.Unknown, u) {
				rec.Unknown = append(rec.Unknown, u)
			}
		}
	}
}

// answer returns the answer for all ranks.
func (m *merger) answer(pools bool) Answer {
	a := AnswerOf(m.all, pools)
	for i, s := range a.Sure {
		a.Sure[i] = strings.NewReplacer("of this file", "of these files", "The file ", "A file ").Replace(s)
	}
	return a
}

// needs sets the needs of the ranks under the recorded settings, or else under the setting of the
// answer, and the rank that decides.
func (f *Fleet) needs() {
	var all []device.Size
	known := true
	for i := range f.Ranks {
		r := &f.Ranks[i]
		p := r.Result.recorded()
		r.Setting = "with " + r.Result.Recorded.Settings()
		if p == nil && r.Result.Cannot == "" {
			p, r.Setting = f.chosen(r)
		}
		if p == nil {
			r.Setting = ""
			known = known && r.Result.Cannot != ""
			continue
		}
		r.Need, r.Carried = p.Need(), p.Carried
		if p.FailsAt != nil {
			r.Fails = *p.FailsAt
		}
		known = known && r.Need != 0
		all = append(all, r.Need)
	}
	if !known || len(all) == 0 {
		return
	}
	slices.Sort(all)
	f.Median = middle(all)
	for i := range f.Ranks {
		if r := &f.Ranks[i]; r.Need == all[len(all)-1] {
			f.Decides = r.Name
			f.Uneven = f.cause(r)
			break
		}
	}
}

// chosen returns the point of a rank for the setting of the answer, and that setting as the end of
// a sentence. It returns nil if the answer names none.
func (f *Fleet) chosen(r *Rank) (p *Point, with string) {
	a := &f.All.Answer
	i := slices.IndexFunc(f.All.Runs, func(p Point) bool { return p.Label == a.Label })
	if i < 0 {
		return nil, ""
	}
	chosen := &f.All.Runs[i]
	switch {
	case len(a.Environment) > 0:
		with = "with " + strings.Join(a.Environment, " ")
	case f.All.ours(chosen) && len(a.Python) == 0:
		with = "without any setting"
	default:
		with = "with the strategy " + chosen.Label
	}
	k, ok := r.Result.index()[decisions(chosen.setup)]
	if !ok {
		return nil, ""
	}
	return &r.Result.Runs[k], with
}

// middle returns the median of sorted sizes.
func middle(sorted []device.Size) device.Size {
	low, high := sorted[(len(sorted)-1)/2], sorted[len(sorted)/2]
	return low + (high-low)/2
}

// above returns by how much a figure of a rank exceeds the median of the ranks with a need.
func (f *Fleet) above(r *Rank, figure func(*Rank) device.Size) int64 {
	var all []device.Size
	for i := range f.Ranks {
		if o := &f.Ranks[i]; o.Need != 0 {
			all = append(all, figure(o))
		}
	}
	slices.Sort(all)
	return int64(figure(r)) - int64(middle(all))
}

// cause returns why a rank needs more than the median, "" if it needs about as much.
func (f *Fleet) cause(r *Rank) Uneven {
	switch {
	case r.Need-f.Median <= f.Median/evenShare:
		return ""
	case f.above(r, (*Rank).Live) >= f.above(r, (*Rank).Rest):
		return UnevenLive
	}
	return UnevenRest
}

// describe writes the sentences about several ranks.
func (f *Fleet) describe() {
	f.Text = []string{}
	if len(f.Ranks) == 1 {
		return
	}
	say := func(format string, args ...any) { f.Text = append(f.Text, fmt.Sprintf(format, args...)) }
	var answered []*Rank
	var without, frameworks []string
	for i := range f.Ranks {
		r := &f.Ranks[i]
		if r.Result.Cannot == "" {
			answered = append(answered, r)
		} else {
			without = append(without, r.Name)
		}
		name := cmp.Or(r.Result.Recorded.Framework, "an unknown framework")
		if !slices.Contains(frameworks, name) {
			frameworks = append(frameworks, name)
		}
	}
	if len(answered) > 1 {
		f.compare(answered, say)
	}
	if len(without) > 0 {
		say("%d of %d ranks cannot answer and are left out: %s.", len(without), len(f.Ranks), strings.Join(without, ", "))
	}
	if list := recordedSettings(answered); len(list) > 1 {
		say("The recorded settings differ: %s.", strings.Join(list, "; "))
	}
	if len(frameworks) > 1 {
		say("The ranks are recorded by %s, so no setting of a framework is named for all.", strings.Join(frameworks, " and "))
	}
}

// recordedSettings lists the settings of ranks, each once, with the names of the ranks.
func recordedSettings(ranks []*Rank) (list []string) {
	names := map[string][]string{}
	for _, r := range ranks {
		text := "none that is known"
		if p := r.Result.recorded(); p != nil {
			switch e := p.Export; {
			case e != nil && len(e.Environment) > 0:
				text = strings.Join(e.Environment, " ")
			case r.Result.ours(p):
				text = "the defaults of " + r.Result.Recorded.Framework
			default:
				text = p.Label
			}
		}
		if names[text] == nil {
			list = append(list, text)
		}
		names[text] = append(names[text], r.Name)
	}
	for i, text := range list {
		list[i] = text + " in " + strings.Join(names[text], ", ")
	}
	return list
}

// compare adds the sentences about the deciding rank and its difference from the median.
func (f *Fleet) compare(ranks []*Rank, say func(format string, args ...any)) {
	i := slices.IndexFunc(ranks, func(r *Rank) bool { return r.Name == f.Decides })
	if i < 0 {
		say("Which of %d ranks decides the card is unknown: not every need was found.", len(ranks))
		return
	}
	r := ranks[i]
	if f.Uneven == "" {
		say("No rank stands out: of %d ranks %s needs the most %s, %s, and the median is %s.", len(ranks), r.Name, r.Setting,
			units.Bytes(r.Need), units.Bytes(f.Median))
		return
	}
	more := r.Need - f.Median
	say("%s decides the card: it needs %s %s, %s (%s) more than the median of %d ranks.", r.Name, units.Bytes(r.Need),
		r.Setting, units.Bytes(more), units.Percent(float64(more)/float64(f.Median)), len(ranks))
	what := map[Uneven]string{UnevenLive: "The live bytes are", UnevenRest: "Fragmentation is"}[f.Uneven]
	say("%s uneven: this rank has %s live than the median, and %s rounding and fragmentation.", what,
		signed(f.above(r, (*Rank).Live)), signed(f.above(r, (*Rank).Rest)))
}

// signed formats a difference.
func signed(n int64) string {
	if n < 0 {
		return units.Bytes(device.Size(-n)) + " less"
	}
	return units.Bytes(device.Size(n)) + " more"
}

// FleetTable returns a row for every rank and setting.
func FleetTable(f *Fleet) *flat.Table {
	type row struct {
		Rank string `json:"rank"`
		tableRow
	}
	var rows []row
	for i := range f.Ranks {
		for _, t := range tableRows(f.Ranks[i].Result) {
			rows = append(rows, row{f.Ranks[i].Name, t})
		}
	}
	return flat.Of(rows)
}

// NaturalOrder compares names with their numbers by value: run_2 comes before run_10.
func NaturalOrder(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		m, n := leadingDigits(x), leadingDigits(y)
		if m > 0 && n > 0 {
			p, _ := strconv.ParseUint(x[:m], 10, 64) // too large: the largest value
			q, _ := strconv.ParseUint(y[:n], 10, 64)
			if c := cmp.Compare(p, q); c != 0 {
				return c
			}
			x, y = x[m:], y[n:]
			continue
		}
		if x[0] != y[0] {
			return cmp.Compare(x[0], y[0])
		}
		x, y = x[1:], y[1:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(a, b))
}

func leadingDigits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }
