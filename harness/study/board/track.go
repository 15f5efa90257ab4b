package board

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/stats"
	"github.com/vramyard/vramyard/internal/units"
)

// Kind is the kind of the inputs of a track, with the words for its figures.
type Kind struct {
	Input string // a trace or a log
	Bytes string // name of the first figure, before it is divided by the lower bound
	Cost  string // name of the second figure
	Axis  string // the second figure with its unit
	// Format formats the second figure in a table.
	Format func(cost float64) string

	// Front says who is on the Pareto front, in a sentence.
	Front string

	takes, less string // sentence and comparative of the second figure
	said        func(cost float64) string
	missing     string // why a track has no results if the board has no inputs of the kind
}

// The kinds of inputs.
var (
	OnTraces = &Kind{Input: "trace", Bytes: "minimum capacity", Cost: "device calls", Axis: "device calls",
		Format: func(n float64) string { return units.Count(uint64(math.Round(n))) },
		Front:  "Pareto front: no other strategy has at most these bytes and at most these calls.",
		takes:  "Where memory is ample it makes %s", less: "fewer",
		said:    func(n float64) string { return units.Several(uint64(math.Round(n)), "device call") },
		missing: "there are no results of traces: a study with the key traces has"}
	OnLogs = &Kind{Input: "log", Bytes: "smallest budget", Cost: "time", Axis: "time / time without recomputation",
		Format: Times,
		Front: "Pareto front: no other strategy completes within at most these bytes in at most this time, neither within " +
			"its own smallest budgets nor within the budgets here.",
		takes: "It takes %s without recomputation", less: "less",
		said:    func(x float64) string { return Times(x) + " times the time" },
		missing: "there are no results of op logs: a study with the key logs has, see docs/sweep.md"}
)

// Track is the strategies that keep to a constraint.
type Track struct {
	ID    string // part of file names
	Kind  *Kind  // of its inputs
	Title string // for people
	Rule  string // who belongs to the track, and how that is found out, in a sentence
	Why   string // the need for the constraint, in a sentence
	// Limit is the most that the second figure may be, in words after a verb; empty: anything.
	Limit string
	// Lines are the listed entries, the best first and references last.
	Lines  []*Line
	Answer string  // the result in words, with how sure it is
	Near   []*Line // lines of other places that the inputs do not distinguish from the first
	Same   string  // title of an earlier track with the same entries; empty: no track has
}

// Line is the result of an entry in a track.
type Line struct {
	Entry *Entry // the strategy
	// Rank is among the entries that are not a reference; Place is 0 for a reference.
	stats.Rank
	Cost  *float64 // geometric mean of the second figure over the inputs; nil: one is unknown
	Front bool     // no other ranked line dominates it
	// Profile is, by input, the bytes as a multiple of the track's least on that input; infinity is a
	// failure.
	Profile []float64
}

// rule selects the entries of a track.
type rule struct {
	kind                 *Kind
	id, title, rule, why string
	empty                string // why a track may have no results
	takes                func(e *Entry) bool
}

var rules = []rule{
	{OnTraces, "plain", "Plain device memory",
		"the probes make no call of virtual memory or of the driver's pools, no rule of whatif says that the strategy " +
			"fails with the features legacy-ipc, tcc or vgpu, and there is no earlier run to plan by",
		"runs on every driver and device, under every way of sharing a GPU, and with libraries that share " +
			"memory between processes",
		"every strategy of the results manages virtual memory or plans by an earlier run",
		func(e *Entry) bool {
			return !e.Learned && len(e.calls(remaps)) == 0 && !e.forbidden("legacy-ipc", "tcc", "vgpu")
		}},
	{OnTraces, "virtual-memory", "Virtual memory allowed",
		"every strategy without an earlier run to plan by; the probes show which calls of virtual memory each makes",
		"the least memory where the driver's virtual memory may be used",
		"every strategy of the results plans by an earlier run",
		func(e *Entry) bool { return !e.Learned }},
	{OnTraces, "fixed", "Fixed addresses",
		"the probes make no call that returns memory to the device (" + strings.Join(names(returns), ", ") +
			"), so an address has the same memory for the whole run, no rule of whatif says that the strategy fails with the " +
			"feature rdma, and there is no earlier run to plan by",
		"registrations for RDMA and addresses in CUDA graphs stay valid without the allocator's help",
		"every strategy of the results returns memory to the device or plans by an earlier run",
		func(e *Entry) bool {
			return !e.Learned && len(e.calls(returns)) == 0 && !e.forbidden("rdma")
		}},
	{OnTraces, "offline", "Offline plans",
		"the results have the trace of an earlier run that the strategy planned by (column learn); if that is the trace of " +
			"the row, the plan comes from the very run that is then replayed, and a plan from another run is less exact",
		"a program whose requests are known in advance can plan its places; a plan is no bound, and a strategy of another " +
			"track may need less memory",
		"no result has an earlier run to plan by: a study with the key learn has",
		func(e *Entry) bool { return e.Learned }},
	{OnLogs, "rematerialization", "Rematerialization",
		"the results are of op logs of training steps, run within budgets; an entry is a strategy with a heuristic that " +
			"chooses the tensors to compute again, and a ladder, which says whether blocks may move",
		"a training step fits into less memory than its peak, for more time",
		"no strategy with results of logs is listed",
		func(*Entry) bool { return true }},
}

// names returns the kinds of device calls with a property.
func names(is func(device.Call) bool) (all []string) {
	for kind := range device.NumCalls {
		if is(kind) {
			all = append(all, kind.String())
		}
	}
	return all
}

// Rank sets the tracks. The seed is of the bootstrap.
func (b *Board) Rank(seed uint64) {
	b.Tracks, b.Seed = nil, seed
	for _, r := range rules {
		t := &Track{ID: r.id, Kind: r.kind, Title: r.title, Rule: r.rule, Why: r.why}
		if r.kind == OnLogs {
			t.Limit = fmt.Sprintf(" with at most %v times the operators' time", b.Settings.Limit)
		}
		for _, e := range b.Entries {
			if e.Unlisted == "" && e.Kind == r.kind && r.takes(e) {
				t.Lines = append(t.Lines, &Line{Entry: e})
			}
		}
		b.rank(t, seed)
		for _, other := range b.Tracks {
			if t.Same == "" && len(t.Lines) > 0 && slices.EqualFunc(t.Lines, other.Lines,
				func(x, y *Line) bool { return x.Entry == y.Entry }) {
				t.Same = other.Title
			}
		}
		t.setNear()
		if t.Answer = t.answer(len(b.Inputs(t.Kind))); t.Answer == "" {
			t.Answer = "No result: " + r.empty + "."
		}
		b.Tracks = append(b.Tracks, t)
	}
}

// Inputs returns the inputs of a kind.
func (b *Board) Inputs(k *Kind) []Input {
	if k == OnLogs {
		return b.Logs
	}
	return b.Traces
}

// rank sets the figures of a track and sorts its lines.
func (b *Board) rank(t *Track, seed uint64) {
	over := b.Inputs(t.Kind)
	var compared []*Line
	var figures [][]float64
	for _, l := range t.Lines {
		of := make([]float64, len(over))
		for i := range over {
			of[i] = l.Entry.Multiple(i, over[i].LowerBound)
		}
		l.Cost = l.Entry.cost()
		if l.Entry.Reference() {
			l.Rank = stats.Ranks([][]float64{of}, seed)[0]
			l.Place, l.Low, l.High = 0, 0, 0
			continue
		}
		compared, figures = append(compared, l), append(figures, of)
	}
	for i, r := range stats.Ranks(figures, seed) {
		compared[i].Rank = r
	}
	profiles(compared, figures)
	for _, l := range t.Lines {
		l.Front = l.onFront(t.Lines)
	}
	slices.SortStableFunc(t.Lines, func(x, y *Line) int {
		if (x.Place == 0) != (y.Place == 0) {
			return y.Place - x.Place
		}
		return cmp.Or(cmp.Compare(x.Place, y.Place), cmp.Compare(x.Entry.Name(), y.Entry.Name()))
	})
}

// profiles sets the profiles of lines with these figures.
func profiles(lines []*Line, figures [][]float64) {
	for i, l := range lines {
		l.Profile = slices.Clone(figures[i])
		for input := range l.Profile {
			least := math.Inf(1)
			for _, of := range figures {
				least = min(least, of[input])
			}
			if !math.IsInf(l.Profile[input], 1) {
				l.Profile[input] /= least
			}
		}
	}
}

// Within returns the share of the inputs on which the line is within a factor of the least.
func (l *Line) Within(factor float64) float64 {
	n := 0
	for _, x := range l.Profile {
		if x <= factor {
			n++
		}
	}
	return float64(n) / float64(max(len(l.Profile), 1))
}

// cost returns the geometric mean of the second figure; nil if one is unknown.
func (e *Entry) cost() *float64 {
	var costs []*float64
	for _, f := range e.Figures {
		costs = append(costs, f.Cost)
	}
	return meanCost(costs)
}

// costWithin returns the geometric mean of the least times within the smallest budgets of another
// entry on logs; nil if one is unknown.
func (e *Entry) costWithin(other *Entry) *float64 {
	costs := make([]*float64, len(e.Runs))
	for i, runs := range e.Runs {
		for _, r := range runs {
			time := r.TotalOverhead
			if r.Completed() && r.Budget <= other.Figures[i].Bytes && (costs[i] == nil || time != nil && *time < *costs[i]) {
				costs[i] = time
			}
		}
	}
	return meanCost(costs)
}

// meanCost returns the geometric mean of second figures, where a replay without a device call
// counts as one with one; nil if one is unknown or there are none.
func meanCost(costs []*float64) *float64 {
	sum := 0.0
	for _, x := range costs {
		if x == nil {
			return nil
		}
		sum += math.Log(max(*x, 1))
	}
	if len(costs) == 0 {
		return nil
	}
	const digits = 1e6 // the last bits differ between processors
	return new(math.Round(math.Exp(sum/float64(len(costs)))*digits) / digits)
}

// Drawn reports whether a line has both figures on every input.
func (l *Line) Drawn() bool { return l.Cost != nil && l.Mean != nil && l.Failures == 0 }

// onFront reports whether a line is ranked and no other ranked line dominates it.
func (l *Line) onFront(lines []*Line) bool {
	return l.Place > 0 && l.Drawn() && !slices.ContainsFunc(lines, func(o *Line) bool {
		return o.Place > 0 && o.Drawn() && o.dominates(l)
	})
}

// dominates reports whether a line is better than another one in bytes or cost and not worse in the
// other. The cost of a log is within its own smallest budgets or within the other's.
func (l *Line) dominates(o *Line) bool {
	if *l.Mean > *o.Mean {
		return false
	}
	return slices.ContainsFunc([]*float64{l.Cost, l.Entry.costWithin(o.Entry)}, func(cost *float64) bool {
		return cost != nil && *cost <= *o.Cost && (*l.Mean < *o.Mean || *cost < *o.Cost)
	})
}

// Times formats a multiple.
func Times(x float64) string { return units.Fixed(x, 3) }

// answer returns the result of a track over n inputs in words, "" if no entry belongs to it.
func (t *Track) answer(n int) string {
	first, rest := t.leaders()
	switch {
	case n == 0:
		return "No result: " + t.Kind.missing + "."
	case len(t.Lines) == 0:
		return ""
	case len(first) == 0:
		return "No strategy to rank: " + t.Lines[0].Entry.Name() + " is a reference only."
	}
	best := first[0]
	var text strings.Builder
	over := units.Several(n, t.Kind.Input)
	if best.Failures > 0 {
		fmt.Fprintf(&text, "No strategy completes every one of %s%s; %s fails on the fewest, %d.", over, t.Limit,
			list(first), best.Failures)
	} else {
		verb := "needs"
		if len(first) > 1 {
			verb = "tie for"
		}
		fmt.Fprintf(&text, "%s %s the least memory%s: %s times the lower bound by the geometric mean over %s", list(first),
			verb, t.Limit, Times(*best.Mean), over)
		if best.MeanLow != nil {
			fmt.Fprintf(&text, " (95 %% interval %s to %s)", Times(*best.MeanLow), Times(*best.MeanHigh))
		}
		text.WriteString(".")
	}
	text.WriteString(t.sureness(best, rest))
	text.WriteString(best.cheaper(t))
	return text.String()
}

// cheaper names the lines of the Pareto front with less of the second figure.
func (l *Line) cheaper(t *Track) string {
	if !l.Drawn() {
		return ""
	}
	var others []string
	for _, o := range t.Lines {
		if o.Front && o.Place > 0 && *o.Cost < *l.Cost {
			others = append(others, fmt.Sprintf("%s (%s times the bound, %s)", o.Entry.Name(), Times(*o.Mean),
				t.Kind.said(*o.Cost)))
		}
	}
	text := " " + fmt.Sprintf(t.Kind.takes, t.Kind.said(*l.Cost))
	if len(others) == 0 {
		return fmt.Sprintf("%s, and no strategy with %s is on the Pareto front.", text, t.Kind.less)
	}
	return fmt.Sprintf("%s; with %s, on the Pareto front: %s.", text, t.Kind.less, Joined(others))
}

// leaders returns the lines at place 1 and the others that are ranked.
func (t *Track) leaders() (first, rest []*Line) {
	for _, l := range t.Lines {
		switch {
		case l.Place == 1:
			first = append(first, l)
		case l.Place > 1:
			rest = append(rest, l)
		}
	}
	return first, rest
}

// setNear sets the lines that the inputs do not distinguish from the first.
func (t *Track) setNear() {
	first, rest := t.leaders()
	for _, l := range rest {
		if first[0].Overlaps(&l.Rank) {
			t.Near = append(t.Near, l)
		}
	}
}

// sureness says how sure the first place is.
func (t *Track) sureness(best *Line, rest []*Line) string {
	if len(rest) == 0 {
		return ""
	}
	if best.Low == 0 {
		return fmt.Sprintf(" Fewer than %d %ss have no interval: the order may be chance.", stats.LeastTraces, t.Kind.Input)
	}
	if len(t.Near) == 0 {
		return fmt.Sprintf(" The %ss distinguish it from all others: no interval of a place overlaps with its own.",
			t.Kind.Input)
	}
	if len(t.Near) == len(rest) && len(rest) > 1 {
		return fmt.Sprintf(" Not distinguishable from it: all other %d, because the 95 %% intervals of the places overlap.",
			len(rest))
	}
	return fmt.Sprintf(" Not distinguishable from it, because the 95 %% intervals of the places overlap: %s.",
		list(t.Near))
}

// list joins the names of lines.
func list(lines []*Line) string {
	var names []string
	for _, l := range lines {
		names = append(names, l.Entry.Name())
	}
	return JoinedFew(names)
}

// JoinedFew joins names as in a sentence and cuts a long list.
func JoinedFew(names []string) string {
	const most = 8
	if n := len(names) - most; n > 0 {
		names = append(slices.Clone(names[:most]), fmt.Sprintf("%d more", n))
	}
	return Joined(names)
}

// Short returns the first place in a few words, with how sure it is; "" without a first place.
func (t *Track) Short() string {
	first, rest := t.leaders()
	if len(first) == 0 {
		return ""
	}
	sure := "distinguished from all others"
	switch {
	case len(rest) == 0:
		sure = "the only place"
	case len(t.Near) > 0:
		sure = "not distinguishable from " + units.Several(len(t.Near), "other")
	}
	return fmt.Sprintf("%s for %q (%s)", list(first), t.Title, sure)
}

// Joined joins names as in a sentence.
func Joined(names []string) string {
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}
