package trace

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/vramyard/vramyard/internal/nearest"
)

// EndSuffix ends the text of a mark where a named part of the program ends.
const EndSuffix = " end"

// Marks holds the marks of a trace: the first and the last event of each text. The zero value is
// ready for use.
type Marks struct{ events map[string]span }

// span is the range from the first to the last event of a mark.
type span struct{ first, last int }

// Add adds the mark of an event, given by its index in the trace.
func (m *Marks) Add(text string, event int) {
	if m.events == nil {
		m.events = map[string]span{}
	}
	s, ok := m.events[text]
	if !ok {
		s.first = event
	}
	s.last = event
	m.events[text] = s
}

// Check returns an error if settings that change at marks, as [setting.Setup.Marks] returns them,
// would never hold or never end: a mark is missing, or the last mark of the end is before the first
// mark of the begin. name names the trace in messages.
func (m *Marks) Check(marks []string, name string) error {
	for _, text := range marks {
		if _, ok := m.events[text]; !ok {
			return fmt.Errorf("a setting changes at the mark %q: %s%s has no such mark", text,
				nearest.Hint(text, slices.Sorted(maps.Keys(m.events))), name)
		}
	}
	if len(marks) != 2 {
		return nil // it holds from the start or to the end
	}
	begin, end := m.events[marks[0]].first, m.events[marks[1]].last
	if end < begin {
		return fmt.Errorf("a setting begins at the mark %q (event %d of %s) and ends at the mark %q (event %d), which is "+
			"earlier: want the earlier mark before the dots", marks[0], begin, name, marks[1], end)
	}
	return nil
}

// Phases returns each pair of successive marks, of the marks that occur once. It returns nil if
// there are more pairs than most. O(marks log marks).
func (m *Marks) Phases(most int) [][2]string {
	var once []string
	for text, s := range m.events {
		if s.first == s.last {
			once = append(once, text)
		}
	}
	if len(once) < 2 || len(once)-1 > most {
		return nil
	}
	slices.SortFunc(once, func(a, b string) int { return cmp.Compare(m.events[a].first, m.events[b].first) })
	var all [][2]string
	for i, text := range once[1:] {
		all = append(all, [2]string{once[i], text})
	}
	return all
}
