package trace

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/device"
)

// Anonymize returns a trace without names, call stacks and times, in which every allocator that
// does not read texts makes the same placements. h is its header. conf returns the settings of a
// Conf event without text of the user, or an error if it cannot.
//
// The kinds and the order of the events stay, and so do sizes, alignments, hints, expected
// lifetimes, frontiers and the options of pools. The rest is replaced, equal values by equal ones:
//
//   - ids count the allocations, threads and sites count by first use
//   - streams and pools are numbered in the order of their numbers; 0 stays
//   - a tag becomes "tag 1", "tag 2", …; [RoundedTag] of a refused request stays
//   - a mark becomes "mark x" or "step x" with a word for all marks that differ only in numbers,
//     and a number for each; it mentions steps, begins or ends a part, and ends in a digit, if the
//     original does
//
// It walks s twice. The result is in memory.
func Anonymize(s Source, h Header, conf func(text string) (string, error)) (*Trace, error) {
	a := anonymizer{
		s: s, b: NewBuilder(h), conf: conf, streams: map[uint64]uint64{}, pools: map[uint64]uint64{},
		tags: ordinals[string]{}, sites: ordinals[uint64]{}, threads: ordinals[uint32]{},
		families: ordinals[string]{}, texts: map[string]ordinals[string]{},
	}
	err := walk(s, func(_ int, e *Event) error {
		if e.Stream != AllStreams {
			a.streams[uint64(e.Stream)] = 0
		}
		if isPool(e.Kind) {
			a.pools[e.Arg] = 0
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	rank(a.streams)
	rank(a.pools)
	head := s.Head()
	err = walk(s, func(i int, e *Event) error {
		if err := a.add(*e); err != nil {
			return fmt.Errorf("%s: %w", head.Place(i), err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return a.b.Trace(), nil
}

// anonymizer replaces the identifying values of events.
type anonymizer struct {
	s              Source
	b              *Builder
	conf           func(string) (string, error)
	streams, pools map[uint64]uint64 // new numbers
	ids            []uint64          // by slot
	next           uint64            // id of the next allocation
	tags           ordinals[string]
	sites          ordinals[uint64]
	threads        ordinals[uint32]
	families       ordinals[string]            // of marks
	texts          map[string]ordinals[string] // of marks, by family
}

// ordinals numbers values by first use, from 1.
type ordinals[K comparable] map[K]uint64

func (o ordinals[K]) of(key K) uint64 {
	if _, ok := o[key]; !ok {
		o[key] = uint64(len(o) + 1)
	}
	return o[key]
}

// rank sets the values of a map to the ranks of its keys. 0 keeps its value.
func rank(m map[uint64]uint64) {
	m[0] = 0
	var keys []uint64
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for i, k := range keys {
		m[k] = uint64(i)
	}
}

func isPool(k Kind) bool { return k == PoolBegin || k == PoolEnd || k == PoolRelease }

func (a *anonymizer) add(e Event) error {
	text := a.s.TagOf(&e)
	e.Time = NoTime
	if e.Stream != AllStreams {
		e.Stream = device.Stream(a.streams[uint64(e.Stream)])
	}
	if e.Site != 0 {
		e.Site = a.sites.of(e.Site)
	}
	if e.Thread != 0 {
		e.Thread = uint32(a.threads.of(e.Thread))
	}
	switch {
	case e.Kind == Alloc, e.Kind == LiveAtStart:
		a.ids = grown(a.ids, e.Slot)
		a.ids[e.Slot] = a.next
		a.next++
	case isPool(e.Kind):
		e.Arg = a.pools[e.Arg]
	}
	if e.Slot != NoSlot {
		e.ID = a.ids[e.Slot]
	}
	var err error
	switch {
	case text == "":
	case e.Kind == Mark:
		text = a.mark(text)
	case e.Kind == Conf:
		if text, err = a.conf(text); err != nil {
			return err
		}
	case e.Kind == PoolBegin, e.Kind == Refused && text == RoundedTag:
	default:
		text = "tag " + strconv.FormatUint(a.tags.of(text), 10)
	}
	e.Tag = a.b.Tag(text)
	return a.b.Add(e)
}

// mark returns the text of a mark.
func (a *anonymizer) mark(text string) string {
	part, ends := strings.CutSuffix(text, EndSuffix)
	f := family(part)
	if a.texts[f] == nil {
		a.texts[f] = ordinals[string]{}
	}
	name := "mark "
	if isStep(f) {
		name = "step "
	}
	if isEnd(f) {
		name = "end " + name
	}
	name += letters(a.families.of(f))
	if !strings.HasPrefix(f, "=") {
		name += " " + strconv.FormatUint(a.texts[f].of(part)-1, 10)
		if last := part[len(part)-1]; last < '0' || last > '9' {
			name += "."
		}
	}
	if ends {
		name += EndSuffix
	}
	return name
}

// letters writes a number without digits and vowels, so that no word arises.
func letters(n uint64) string {
	const digits = "bcdfghjklmnpqrstvwxz"
	var b []byte
	for ; n > 0; n /= uint64(len(digits)) {
		b = append(b, digits[n%uint64(len(digits))])
	}
	return string(b)
}
