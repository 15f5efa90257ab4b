package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat/grid"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/bench"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/study/offline"
	"github.com/vramyard/vramyard/harness/study/tune"
	"github.com/vramyard/vramyard/internal/units"
)

// reference is the most widely used allocator, with which verdicts compare the winner.
const reference = "caching"

// part returns a sentence if a trace is not the complete run, or "", and the name of the trace for
// the following sentences.
func part(trace, lacks string) (sentence, name string) {
	if name = units.Printable(trace); lacks == "" {
		return "", name
	}
	return fmt.Sprintf("Only a part of the run is in %s: %s. ", name, units.Printable(lacks)), "that part"
}

// partNotes returns the sentence of [part] as a note of a table, for pages, which lack verdicts.
func partNotes(trace, lacks string) []string {
	if sentence, _ := part(trace, lacks); sentence != "" {
		return []string{strings.TrimSpace(sentence)}
	}
	return nil
}

// compareVerdict returns a sentence with the strategies that complete a trace with the least
// memory, and their lead.
func compareVerdict(style Style, runs []compare.Run) string {
	gap, trace := part(runs[0].Trace, runs[0].Gap)
	known := slices.DeleteFunc(slices.Clone(runs), func(r compare.Run) bool {
		return r.MinCapacity == nil || r.Baseline
	})
	slices.SortStableFunc(known, func(a, b compare.Run) int { return cmp.Compare(*a.MinCapacity, *b.MinCapacity) })
	best := slices.IndexFunc(known, func(r compare.Run) bool { return r.Completed() })
	if best < 0 {
		s := style.Paint(Bad, "No strategy") + " completes " + trace
		if i := slices.IndexFunc(runs, func(r compare.Run) bool { return r.Baseline && r.Completed() }); i >= 0 {
			s = style.Paint(Bad, "No strategy") + " but " + units.Printable(runs[i].Strategy) +
				", the baseline, completes " + trace
			if len(runs) == 1 {
				s = units.Printable(runs[i].Strategy) + ", the baseline, completes " + trace
			}
		}
		if len(known) > 0 {
			s += fmt.Sprintf(" on %s; %s", units.Bytes(runs[0].Device), shortOf(&known[0]))
		}
		return gap + s + "."
	}
	least := *known[best].MinCapacity
	names := named(style, Good, known, func(r *compare.Run) bool { return r.Completed() && *r.MinCapacity == least })
	verb := " completes "
	if len(names) > 1 {
		verb = " complete "
	}
	s := listed(names) + verb + trace + " with least memory: " + units.Bytes(least)
	if other := rival(known, least); other != nil {
		if x := multiple(float64(*other.MinCapacity), float64(least)); x != "" {
			s += fmt.Sprintf("; %s needs %s as much (%s)", units.Printable(other.Strategy), x,
				units.Bytes(*other.MinCapacity))
		}
	}
	return gap + s + "." + failing(style, runs)
}

// multiple returns a in multiples of b, as "1.23 ×". It returns "" if a is at most b, if the
// multiple rounds to 1.00, and if b is 0.
func multiple(a, b float64) string {
	if x := units.Fixed(a/b, 2); a > b && b > 0 && x != "1.00" {
		return x + " ×"
	}
	return ""
}

// shortOf describes the smallest capacity of a strategy that failed on the device of the measuring
// replay. The device may exceed the minimum, since completion is not monotone in the capacity.
func shortOf(r *compare.Run) string {
	name, minimum := units.Printable(r.Strategy), units.Bytes(*r.MinCapacity)
	if *r.MinCapacity > r.Device {
		return name + " needs least, " + minimum
	}
	fails := r.Device
	if r.FailsAbove != nil {
		fails = max(fails, *r.FailsAbove)
	}
	if r.SafeFrom == nil || *r.SafeFrom <= fails {
		return fmt.Sprintf("%s completes on %s and fails again up to %s", name, minimum, units.Bytes(fails))
	}
	safe := units.Bytes(*r.SafeFrom)
	if safe == units.Bytes(fails) {
		safe = units.Bytes(*r.SafeFrom-fails) + " above that"
	}
	return fmt.Sprintf("%s completes on %s, fails again up to %s and is safe from %s", name, minimum, units.Bytes(fails),
		safe)
}

// named returns the painted names of the strategies of the wanted runs, each once.
func named(style Style, tone Tone, runs []compare.Run, wanted func(*compare.Run) bool) (names []string) {
	for i := range runs {
		name := style.Paint(tone, units.Printable(runs[i].Strategy))
		if wanted(&runs[i]) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// rival returns the run to compare the best with: the reference, or else the next best; nil if none
// needs more.
func rival(known []compare.Run, least device.Size) (next *compare.Run) {
	for i := range known {
		switch r := &known[i]; {
		case *r.MinCapacity <= least:
		case r.Strategy == reference:
			return r
		case next == nil:
			next = r
		}
	}
	return next
}

// failing returns a sentence about the strategies that fail in the measuring replay, or "". The
// notes of the table have the reasons.
func failing(style Style, runs []compare.Run) string {
	names := named(style, Bad, runs, func(r *compare.Run) bool { return !r.Completed() })
	switch len(names) {
	case 0:
		return ""
	case 1:
		return " " + names[0] + " fails."
	}
	return " " + listed(names) + " fail."
}

// mostListed bounds the names listed in a sentence.
const mostListed = 4

// listed joins names with commas and "and".
func listed(names []string) string {
	if n := len(names); n > mostListed {
		names = append(slices.Clone(names[:mostListed-1]), fmt.Sprintf("%d more", n-mostListed+1))
	}
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// replayVerdict returns a sentence with the outcome of a replay.
func replayVerdict(style Style, r *replay.Result) string {
	if failed := ReplayFailure(r); failed != "" {
		return style.Paint(Bad, "FAILED:") + " " + failed
	}
	gap, trace := part(r.Trace, r.Gap)
	reserves := " and reserves " + units.Bytes(r.Peak.Reserved) + " at most"
	if r.Preallocates {
		reserves = "; it reserves its whole limit (" + units.Bytes(r.Peak.Reserved) + ") up front, and `compare` finds " +
			"its minimum"
	}
	return fmt.Sprintf("%s%s completes %s%s; no allocator can do with less than %s.",
		gap, style.Paint(Good, units.Printable(r.Strategy)), trace, reserves, units.Bytes(r.LowerBound))
}

// tuneVerdict returns a sentence with the need of the best settings, compared with the preset.
// Sentences about incomplete traces precede it.
func tuneVerdict(style Style, r *tune.Result) string {
	var gaps []string
	for _, run := range r.Preset.Runs {
		if gap, _ := part(run.Trace, run.Gap); !slices.Contains(gaps, gap) {
			gaps = append(gaps, gap)
		}
	}
	return strings.Join(gaps, "") + bestSettings(style, r)
}

// bestSettings is the part of [tuneVerdict] about the settings.
func bestSettings(style Style, r *tune.Result) string {
	name := units.Printable(r.Strategy)
	least := r.Smallest.TimesBound
	switch {
	case least == nil:
		return style.Paint(Bad, "No setting") + " of " + name + " that was tried completes every trace."
	case r.Baseline:
		return fmt.Sprintf("%s, the baseline, needs %.3f × the lower bound and takes %.0f ns/op.", name, *least,
			r.Fastest.NsPerOp)
	}
	s := style.Paint(Good, name+with(r.Smallest)) + fmt.Sprintf(" needs least memory: %.3f × the lower bound", *least)
	switch preset := r.Preset.TimesBound; {
	case preset == nil:
		s += "; the preset does not complete every trace"
	case multiple(*preset, *least) != "":
		s += "; the preset needs " + multiple(*preset, *least) + " as much"
	case settings(r.Smallest.Config) != none:
		s += ", as much as the preset"
	}
	s += fmt.Sprintf(". %s takes least time: %.0f ns/op", style.Paint(Good, name+with(r.Fastest)), r.Fastest.NsPerOp)
	if x := multiple(r.Preset.NsPerOp, r.Fastest.NsPerOp); x != "" {
		s += "; the preset takes " + x + " as long"
	}
	return s + "."
}

// with lists the settings of a point.
func with(p tune.Point) string {
	if text := settings(p.Config); text != none {
		return " with " + text
	}
	return " as it is"
}

// benchVerdict returns a sentence with the fastest strategy on a workload and its lead. It mentions
// overlapping rounds of the first two.
func benchVerdict(style Style, workload string, runs []bench.Run) string {
	if len(runs) == 0 {
		return ""
	}
	order := slices.Clone(runs)
	slices.SortStableFunc(order, func(a, b bench.Run) int { return cmp.Compare(a.Median, b.Median) })
	if ranked := slices.DeleteFunc(slices.Clone(order), func(r bench.Run) bool { return r.Baseline }); len(ranked) > 0 {
		order = ranked
	}
	best := order[0]
	name := style.Paint(Good, units.Printable(best.Strategy))
	if len(order) == 1 {
		return fmt.Sprintf("%s takes %.1f ns/pair on %s.", name, best.Median, workload)
	}
	next := order[1]
	s := fmt.Sprintf("%s is fastest on %s: %.1f ns/pair", name, workload, best.Median)
	if x := multiple(next.Median, best.Median); x != "" {
		s += fmt.Sprintf("; %s takes %s as long", units.Printable(next.Strategy), x)
	}
	if next.Min <= best.Max {
		s += fmt.Sprintf(". The rounds of %s and %s overlap", name, units.Printable(next.Strategy))
	}
	return s + "."
}

// offlineVerdict returns a sentence with the lowest packing of a trace, and whether a lower one is
// possible. capacity is the requested height; 0: none.
func offlineVerdict(style Style, s *offline.Summary, capacity device.Size) string {
	gap, trace := part(s.Trace, s.Gap)
	best := s.Best
	if capacity > 0 && best.Height > capacity {
		failed := gap + style.Paint(Bad, "FAILED:") + " no placement of " + trace
		if best.ProvenBound > capacity {
			return failed + " fits in " + units.Bytes(capacity) + "."
		}
		return fmt.Sprintf("%s in %s was found; the lowest takes %s.", failed, units.Bytes(capacity),
			units.Bytes(best.Height))
	}
	text := fmt.Sprintf("%sPacked with all of it known in advance, %s fits in %s, ", gap, trace,
		style.Paint(Good, units.Bytes(best.Height)))
	if best.Height == s.LowerBound {
		return text + "its lower bound: no placement is lower."
	}
	text += units.Bytes(best.Height-s.LowerBound) + " above its lower bound"
	if best.Optimal {
		return text + ": no placement is lower."
	}
	return text + "; a placement up to " + units.Bytes(best.Height-best.ProvenBound) + " lower is not ruled out."
}

// rematVerdict returns a sentence with the strategies and heuristics that complete a log at the
// smallest budget, and the fastest of them. Counting and baselines are never the winner.
func rematVerdict(style Style, groups []rematGroup) string {
	var lines []grid.Line
	for _, g := range groups {
		lines = append(lines, slices.DeleteFunc(slices.Clone(g.lines), func(l grid.Line) bool {
			return l.Strategy == grid.Counting
		})...)
	}
	if len(lines) == 0 {
		return ""
	}
	slices.SortStableFunc(lines, bySmallest)
	model := units.Printable(groups[0].base.Model)
	ranked := slices.DeleteFunc(slices.Clone(lines), func(l grid.Line) bool { return l.Baseline })
	if len(ranked) == 0 || ranked[0].SmallestFeasible == nil {
		s := style.Paint(Bad, "No strategy")
		if base := lines[slices.IndexFunc(lines, func(l grid.Line) bool {
			return l.Baseline || l.SmallestFeasible == nil
		})]; base.SmallestFeasible != nil {
			name := units.Printable(base.Strategy) + ", the baseline,"
			if s += " but " + name; len(ranked) == 0 {
				s = name
			}
			return fmt.Sprintf("%s completes %s within %v × the base peak, the smallest budget that sufficed.", s, model,
				base.SmallestFeasible)
		}
		return s + " completes " + model + " within any budget that was tried."
	}
	lines, best := ranked, ranked[0]
	var names []string
	for i := range lines {
		l := &lines[i]
		if bySmallest(*l, best) == 0 {
			names = append(names, style.Paint(Good, fmt.Sprintf("%s by %s (ladder %s)", units.Printable(l.Strategy),
				units.Printable(l.Heuristic), units.Printable(l.Ladder))))
		}
	}
	s := fmt.Sprintf("%s completes within %v × the base peak, the smallest budget that sufficed, with %s", model,
		best.SmallestFeasible, listed(names))
	if best.OverheadAtSmallest != nil {
		s += fmt.Sprintf(": %.3f × the time of its operators, the least within that budget", *best.OverheadAtSmallest)
	}
	if !best.Monotone() && len(names) == 1 {
		s += fmt.Sprintf("; it fails again within %v", best.LargestInfeasible)
	}
	return s + "."
}
