package trace

import (
	"math"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/device"
)

// Step is a part of a trace that marks make out: one iteration of a training, one token of a
// generation.
type Step struct {
	Name  string // text of its mark
	First int    // index of its mark
	End   int    // index of the event behind it
}

// Steps returns the steps of a trace, none if its marks tell of none.
//
// Steps begin at marks that differ only in their numbers ("iter 0", "iter 1"), at least two of
// them. If there are several such families, one that speaks of steps, iterations or batches is
// taken, the one with most marks of these. A step ends where the next begins; the last one ends at
// the first mark of a kind that no step before has, such as "teardown", or else with the trace. It
// walks the trace once, and takes 32 bytes for each mark.
func Steps(s Source) ([]Step, error) {
	m := marks{s: s}
	if err := walk(s, m.add); err != nil {
		return nil, err
	}
	return m.steps(), nil
}

// marks are those of a trace.
type marks struct {
	s        Source
	at       []int    // events
	tags     []uint32 // texts
	names    []string // families, by tag; "" of those not met
	texts    []string // texts, by tag
	families []string // of the marks
	events   int      // events that were seen
}

// add takes an event, the one with number i.
func (m *marks) add(i int, e *Event) error {
	m.events = i + 1
	if e.Kind != Mark {
		return nil
	}
	if m.names, m.texts = grown(m.names, e.Tag), grown(m.texts, e.Tag); m.names[e.Tag] == "" {
		m.texts[e.Tag] = m.s.TagOf(e)
		m.names[e.Tag] = family(m.texts[e.Tag])
	}
	m.at, m.tags = append(m.at, i), append(m.tags, e.Tag)
	m.families = append(m.families, m.names[e.Tag])
	return nil
}

func (m *marks) steps() []Step {
	best := stepFamily(m.families)
	if best == "" {
		return nil
	}
	var steps []Step
	inside := map[string]bool{} // families of the marks within steps that have ended
	var open []string
	for k, i := range m.at {
		n := len(steps)
		if m.families[k] == best {
			for _, f := range open {
				inside[f] = true
			}
			if open = open[:0]; n > 0 {
				steps[n-1].End = i
			}
			steps = append(steps, Step{Name: m.texts[m.tags[k]], First: i, End: m.events})
			continue
		}
		if n > 0 {
			open = append(open, m.families[k])
		}
	}
	last := &steps[len(steps)-1]
	for k, i := range m.at {
		if i > last.First && !inside[m.families[k]] {
			last.End = i
			break
		}
	}
	return steps
}

// family returns the text of a mark with '#' for every number in it. Without a number, the mark is
// a family of its own, which begins with '='.
func family(text string) string {
	var b strings.Builder
	digits, numbers := false, 0
	for _, c := range []byte(text) {
		if c >= '0' && c <= '9' {
			if !digits {
				numbers++
				b.WriteByte('#')
			}
			digits = true
			continue
		}
		digits = false
		b.WriteByte(c)
	}
	if numbers == 0 {
		return "=" + text
	}
	return b.String()
}

// stepFamily returns the family of marks that begin steps, "" if there is none.
func stepFamily(families []string) string {
	counts := map[string]int{}
	for _, f := range families {
		if !strings.HasPrefix(f, "=") && !isEnd(f) {
			counts[f]++
		}
	}
	best, bestRank := "", 0
	for _, f := range families { // in their order, so that the first of equals is taken
		n := counts[f]
		if n < 2 || f == best {
			continue
		}
		rank := n
		if isStep(f) {
			rank += len(families)
		}
		if rank > bestRank {
			best, bestRank = f, rank
		}
	}
	return best
}

// isStep reports whether a mark speaks of what is repeated.
func isStep(family string) bool {
	lower := strings.ToLower(family)
	return slices.ContainsFunc([]string{"step", "iter", "batch"}, func(word string) bool {
		return strings.Contains(lower, word)
	})
}

// isEnd reports whether a mark tells that something ends.
func isEnd(family string) bool {
	lower := strings.ToLower(family)
	return strings.HasPrefix(lower, "end ") || strings.HasSuffix(lower, "end")
}

// StepInfo tells how much the steps of a trace are alike.
type StepInfo struct {
	Count     int    `json:"count"`               // steps; 0 if marks tell of none
	First     string `json:"first,omitempty"`     // text of the first one's mark
	MinAllocs int    `json:"min_allocs"`          // fewest allocations in a step
	MaxAllocs int    `json:"max_allocs"`          // most
	Compared  int    `json:"compared_allocs"`     // allocations of all steps but the last
	Recurring int    `json:"recurring_allocs"`    // those of them that come again in the next step
	Identical int    `json:"identical_followers"` // steps with the very sizes of the step before
}

// stepInfo compares each step with the next: an allocation comes again if the one at the same place
// in the next step's order has its size. It walks the trace if there are steps, and keeps the sizes
// of two.
func stepInfo(s Source, steps []Step) (in StepInfo, err error) {
	if len(steps) == 0 {
		return in, nil
	}
	in.First, in.MinAllocs = steps[0].Name, math.MaxInt
	var before, sizes []device.Size
	ended := func() {
		if in.Count > 0 {
			in.compare(before, sizes)
		}
		in.Count++
		in.MinAllocs, in.MaxAllocs = min(in.MinAllocs, len(sizes)), max(in.MaxAllocs, len(sizes))
		before, sizes = sizes, before[:0]
	}
	err = walk(s, func(i int, e *Event) error {
		for in.Count < len(steps) && i >= steps[in.Count].End {
			ended()
		}
		if e.Kind == Alloc && in.Count < len(steps) && i >= steps[in.Count].First {
			sizes = append(sizes, e.Size)
		}
		return nil
	})
	for in.Count < len(steps) && err == nil {
		ended()
	}
	return in, err
}

// compare books a step and the one behind it.
func (in *StepInfo) compare(before, sizes []device.Size) {
	in.Compared += len(before)
	for i := range min(len(before), len(sizes)) {
		if before[i] == sizes[i] {
			in.Recurring++
		}
	}
	if slices.Equal(before, sizes) {
		in.Identical++
	}
}

// LifeInfo describes how long allocations live that are freed within the trace.
type LifeInfo struct {
	Freed        int   `json:"freed"`               // allocations that are freed
	Kept         int   `json:"kept"`                // allocations that never are
	MedianEvents int   `json:"median_events"`       // lower median of the events from birth to free
	TenthEvents  int   `json:"p90_events"`          // nine of ten live no longer
	MaxEvents    int   `json:"max_events"`          // the longest life
	Timed        int   `json:"timed"`               // lives of which both ends have a time
	MedianTime   int64 `json:"median_ns"`           // as for events
	TenthTime    int64 `json:"p90_ns"`              // as for events
	MaxTime      int64 `json:"max_ns"`              // as for events
	Delayed      int   `json:"delayed_frees"`       // frees that became final later than the next event
	FromStart    int   `json:"freed_live_at_start"` // of Freed, those live at the start, whose lives count from there
}
