package trace

import (
	"math"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/device"
)

// Step is a part of a trace between marks: an iteration of a training, or a token of a generation.
type Step struct {
	Name  string // text of its mark
	First int    // index of its mark
	End   int    // index after its last event
}

// Steps returns the steps of a trace, or none if its marks show no steps.
//
// Steps begin at marks that differ only in their numbers ("iter 0", "iter 1"), at least two of
// them. Among several such families, one that mentions steps, iterations or batches takes
// precedence, then the one with the most marks. A step ends where the next begins. The last step
// ends at the first mark of a kind that no earlier step contains, such as "teardown", or else with
// the trace. Steps walks the trace once, and takes 32 bytes per mark.
func Steps(s Source) ([]Step, error) {
	m := marks{s: s}
	if err := walk(s, m.add); err != nil {
		return nil, err
	}
	return m.steps(), nil
}

// StepsAt returns the steps that begin at a mark of the given text, or at marks that differ from it
// only in their numbers. A step ends at the mark of its end, as "request 0 end" for "request 0", or
// else where the next begins, or with the trace. StepsAt walks the trace once.
func StepsAt(s Source, text string) ([]Step, error) {
	m := marks{s: s}
	if err := walk(s, m.add); err != nil {
		return nil, err
	}
	var steps []Step
	open := false
	for k, i := range m.at {
		n, name := len(steps), m.texts[m.tags[k]]
		begins := m.families[k] == family(text)
		if open && (begins || name == steps[n-1].Name+EndSuffix) {
			steps[n-1].End, open = i, false
		}
		if begins {
			steps, open = append(steps, Step{Name: name, First: i, End: m.events}), true
		}
	}
	return steps, nil
}

// marks collects the marks of a trace.
type marks struct {
	s        Source
	at       []int    // event numbers
	tags     []uint32 // tags
	names    []string // families, by tag; "" if not seen yet
	texts    []string // texts, by tag
	families []string // families, by mark
	events   int      // number of events processed
}

// add processes event i.
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
	inside := map[string]bool{} // families of the marks within completed steps
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

// family returns the text of a mark with '#' for every number. A mark without a number is a family
// of its own, prefixed with '='.
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

// stepFamily returns the family of the marks that begin steps, or "".
func stepFamily(families []string) string {
	counts := map[string]int{}
	for _, f := range families {
		if !strings.HasPrefix(f, "=") && !isEnd(f) {
			counts[f]++
		}
	}
	best, bestRank := "", 0
	for _, f := range families { // in order, so that the first wins a tie
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

// isStep reports whether a family of marks mentions something repeated.
func isStep(family string) bool {
	lower := strings.ToLower(family)
	return slices.ContainsFunc([]string{"step", "iter", "batch"}, func(word string) bool {
		return strings.Contains(lower, word)
	})
}

// isEnd reports whether a mark announces an end.
func isEnd(family string) bool {
	lower := strings.ToLower(family)
	return strings.HasPrefix(lower, "end ") || strings.HasSuffix(lower, "end")
}

// StepInfo describes the similarity of the steps of a trace.
type StepInfo struct {
	Count     int    `json:"count"`               // number of steps; 0 if the marks show none
	First     string `json:"first,omitempty"`     // text of the first step's mark
	MinAllocs int    `json:"min_allocs"`          // minimum of the allocations in a step
	MaxAllocs int    `json:"max_allocs"`          // maximum of the allocations in a step
	Compared  int    `json:"compared_allocs"`     // allocations of all steps except the last
	Recurring int    `json:"recurring_allocs"`    // allocations that recur in the next step
	Identical int    `json:"identical_followers"` // steps with exactly the sizes of the previous step
}

// stepInfo compares each step with the next: an allocation recurs if the allocation at the same
// position of the next step has its size. It walks the trace if there are steps, and stores the
// sizes of two.
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

// compare compares a step with the next one.
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

// LifeInfo describes the lifetimes of the allocations that are freed within the trace.
type LifeInfo struct {
	Freed        int   `json:"freed"`               // number of freed allocations
	Kept         int   `json:"kept"`                // number of allocations that are never freed
	MedianEvents int   `json:"median_events"`       // lower median of the events from allocation to free
	P90Events    int   `json:"p90_events"`          // 90th percentile
	MaxEvents    int   `json:"max_events"`          // maximum
	Timed        int   `json:"timed"`               // number of lifetimes with a time at both ends
	MedianTime   int64 `json:"median_ns"`           // as for events
	P90Time      int64 `json:"p90_ns"`              // as for events
	MaxTime      int64 `json:"max_ns"`              // as for events
	Delayed      int   `json:"delayed_frees"`       // frees that became final after the next event or later
	FromStart    int   `json:"freed_live_at_start"` // freed ones that were live at the start; lives count from there
}
