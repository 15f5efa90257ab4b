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

// Track is the strategies that keep to a constraint.
type Track struct {
	ID    string // part of file names
	Title string // for people
	Rule  string // who belongs to the track, and how that is found out, in a sentence
	Why   string // the need for the constraint, in a sentence
	// Lines are the listed entries, the best first and references last.
	Lines  []*Line
	Answer string  // the result in words, with how sure it is
	Near   []*Line // lines of other places that the traces do not distinguish from the first
	Same   string  // title of an earlier track with the same entries; empty: no track has
}

// Line is the result of an entry in a track.
type Line struct {
	Entry *Entry // the strategy
	// Rank is among the entries that are not a reference; Place is 0 for a reference.
	stats.Rank
	Calls *float64 // geometric mean of the device calls over the traces; nil: a replay did not complete
	Front bool     // no other line has at most its bytes and its calls
	// Profile is, by trace, the minimum capacity as a multiple of the track's least on that trace;
	// infinity is a failure.
	Profile []float64
}

// rule selects the entries of a track.
type rule struct {
	id, title, rule, why string
	empty                string // why a track may have no results
	takes                func(e *Entry) bool
}

var rules = []rule{
	{"plain", "Plain device memory",
		"the probes make no call of virtual memory or of the driver's pools, no rule of whatif says that the strategy " +
			"fails with the features legacy-ipc, tcc or vgpu, and there is no earlier run to plan by",
		"runs on every driver and device, under every way of sharing a GPU, and with libraries that share " +
			"memory between processes",
		"every strategy of the results manages virtual memory or plans by an earlier run",
		func(e *Entry) bool {
			return !e.Learned && len(e.calls(remaps)) == 0 && !e.forbidden("legacy-ipc", "tcc", "vgpu")
		}},
	{"virtual-memory", "Virtual memory allowed",
		"every strategy without an earlier run to plan by; the probes show which calls of virtual memory each makes",
		"the least memory where the driver's virtual memory may be used",
		"every strategy of the results plans by an earlier run",
		func(e *Entry) bool { return !e.Learned }},
	{"fixed", "Fixed addresses",
		"the probes make no call that returns memory to the device (" + strings.Join(names(returns), ", ") +
			"), so an address has the same memory for the whole run, no rule of whatif says that the strategy fails with the " +
			"feature rdma, and there is no earlier run to plan by",
		"registrations for RDMA and addresses in CUDA graphs stay valid without the allocator's help",
		"every strategy of the results returns memory to the device or plans by an earlier run",
		func(e *Entry) bool {
			return !e.Learned && len(e.calls(returns)) == 0 && !e.forbidden("rdma")
		}},
	{"offline", "Offline plans",
		"the results have the trace of an earlier run that the strategy planned by (column learn)",
		"the memory that is possible for a program whose requests are known in advance",
		"no result has an earlier run to plan by: a study with the key learn has",
		func(e *Entry) bool { return e.Learned }},
	{"rematerialization", "Rematerialization",
		"results of vramyard remat, which computes tensors again to save memory",
		"the time that a smaller memory costs",
		"results of a sweep have no recomputation; vramyard remat compares such strategies, and its tables are not read here",
		func(*Entry) bool { return false }},
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
	b.Tracks = nil
	for _, r := range rules {
		t := &Track{ID: r.id, Title: r.title, Rule: r.rule, Why: r.why}
		for _, e := range b.Entries {
			if e.Unlisted == "" && r.takes(e) {
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
		t.Answer = b.answer(t, r.empty)
		b.Tracks = append(b.Tracks, t)
	}
}

// rank sets the figures of a track and sorts its lines.
func (b *Board) rank(t *Track, seed uint64) {
	var compared []*Line
	var figures [][]float64
	for _, l := range t.Lines {
		of := make([]float64, len(b.Traces))
		for i := range b.Traces {
			of[i] = l.Entry.Multiple(i, b.Traces[i].LowerBound)
		}
		l.Calls = l.Entry.meanCalls()
		if l.Entry.Setup.Baseline {
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
		return cmp.Or(cmp.Compare(x.Place, y.Place), cmp.Compare(x.Entry.Setup.Name, y.Entry.Setup.Name))
	})
}

// profiles sets the profiles of lines with these figures.
func profiles(lines []*Line, figures [][]float64) {
	for i, l := range lines {
		l.Profile = slices.Clone(figures[i])
		for trace := range l.Profile {
			least := math.Inf(1)
			for _, of := range figures {
				least = min(least, of[trace])
			}
			if !math.IsInf(l.Profile[trace], 1) {
				l.Profile[trace] /= least
			}
		}
	}
}

// Within returns the share of the traces on which the line is within a factor of the least.
func (l *Line) Within(factor float64) float64 {
	n := 0
	for _, x := range l.Profile {
		if x <= factor {
			n++
		}
	}
	return float64(n) / float64(max(len(l.Profile), 1))
}

// meanCalls returns the geometric mean of the device calls, where a replay without a call counts as
// one with one; nil if a replay did not complete.
func (e *Entry) meanCalls() *float64 {
	sum := 0.0
	for i := range e.Cells {
		n, ok := e.DeviceCalls(i)
		if !ok {
			return nil
		}
		sum += math.Log(float64(max(n, 1)))
	}
	const digits = 1e6 // the last bits differ between processors
	return new(math.Round(math.Exp(sum/float64(len(e.Cells)))*digits) / digits)
}

// Drawn reports whether a line has bytes and calls on every trace.
func (l *Line) Drawn() bool { return l.Calls != nil && l.Mean != nil && l.Failures == 0 }

// onFront reports whether no other line is better in bytes or calls and not worse in the other.
func (l *Line) onFront(lines []*Line) bool {
	return l.Drawn() && !slices.ContainsFunc(lines, func(o *Line) bool {
		return o.Drawn() && *o.Mean <= *l.Mean && *o.Calls <= *l.Calls && (*o.Mean < *l.Mean || *o.Calls < *l.Calls)
	})
}

// Times formats a multiple.
func Times(x float64) string { return units.Fixed(x, 3) }

// answer returns the result of a track in words.
func (b *Board) answer(t *Track, empty string) string {
	first, rest := t.leaders()
	if len(first) == 0 {
		if len(t.Lines) == 0 {
			return "No result: " + empty + "."
		}
		return "No strategy to rank: " + t.Lines[0].Entry.Setup.Name + " is a reference only."
	}
	best, n := first[0], len(b.Traces)
	var text strings.Builder
	over := units.Several(n, "trace")
	if best.Failures > 0 {
		fmt.Fprintf(&text, "No strategy completes every one of %s; %s fails on the fewest, %d.", over, list(first),
			best.Failures)
	} else {
		verb := "needs the least memory"
		if len(first) > 1 {
			verb = "tie for the least memory"
		}
		fmt.Fprintf(&text, "%s %s: %s times the lower bound by the geometric mean over %s", list(first), verb,
			Times(*best.Mean), over)
		if best.MeanLow != nil {
			fmt.Fprintf(&text, " (95 %% interval %s to %s)", Times(*best.MeanLow), Times(*best.MeanHigh))
		}
		text.WriteString(".")
	}
	text.WriteString(t.sureness(best, rest))
	text.WriteString(best.fewerCalls(t.Lines))
	return text.String()
}

// fewerCalls names the lines of the Pareto front that make fewer device calls.
func (l *Line) fewerCalls(lines []*Line) string {
	if !l.Drawn() {
		return ""
	}
	var others []string
	for _, o := range lines {
		if o.Front && o.Place > 0 && *o.Calls < *l.Calls {
			others = append(others, fmt.Sprintf("%s (%s times the bound, %s)", o.Entry.Setup.Name, Times(*o.Mean),
				calls(*o.Calls)))
		}
	}
	if len(others) == 0 {
		return fmt.Sprintf(" It makes %s, and no strategy with fewer is on the Pareto front.", calls(*l.Calls))
	}
	return fmt.Sprintf(" It makes %s; with fewer, on the Pareto front: %s.", calls(*l.Calls), Joined(others))
}

// calls formats a mean number of device calls.
func calls(n float64) string { return units.Several(uint64(math.Round(n)), "device call") }

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

// setNear sets the lines that the traces do not distinguish from the first.
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
		return fmt.Sprintf(" Fewer than %d traces have no interval: the order may be chance.", stats.LeastTraces)
	}
	if len(t.Near) == 0 {
		return " The traces distinguish it from all others: no interval of a place overlaps with its own."
	}
	if len(t.Near) == len(rest) && len(rest) > 1 {
		return fmt.Sprintf(" Not distinguishable from it: all other %d, because the 95 %% intervals of the places overlap.",
			len(rest))
	}
	return fmt.Sprintf(" Not distinguishable from it, because the 95 %% intervals of the places overlap: %s.",
		list(t.Near))
}

// list joins the names of lines, of which long lists are cut.
func list(lines []*Line) string {
	const most = 8
	var names []string
	for i, l := range lines {
		if i == most {
			names = append(names, fmt.Sprintf("%d more", len(lines)-most))
			break
		}
		names = append(names, l.Entry.Setup.Name)
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
