package trace

import (
	"slices"
	"strconv"

	"github.com/vramyard/vramyard/device"
)

// Diff is the difference between two traces, A and B.
type Diff struct {
	Equal  bool         `json:"equal"`            // equal header pairs and events
	Header []HeaderDiff `json:"header,omitempty"` // differing pairs, in the order of A and then of B
	Events [2]int       `json:"events"`           // number of events
	First  *EventDiff   `json:"first,omitempty"`  // first differing event
	Kinds  []KindDiff   `json:"kinds,omitempty"`  // kinds with different counts, in the order of the kinds
	Allocs AllocDiff    `json:"allocations"`      // allocations in only one of the traces
	Live   LiveDiff     `json:"live"`             // live bytes over the allocations and frees
}

// HeaderDiff is a differing pair of the header.
type HeaderDiff struct {
	Key string  `json:"key"`         // key of the pair
	A   *string `json:"a,omitempty"` // value in A; nil if absent
	B   *string `json:"b,omitempty"` // value in B; nil if absent
}

// EventDiff is the first differing event, as lines of the text form.
type EventDiff struct {
	Index int    `json:"event"`       // number of the event
	A     string `json:"a,omitempty"` // "" if A ends here
	B     string `json:"b,omitempty"` // "" if B ends here
}

// KindDiff holds the number of events of a kind.
type KindDiff struct {
	Kind string `json:"kind"` // name of the kind
	A    int    `json:"a"`    // in A
	B    int    `json:"b"`    // in B
}

// AllocDiff describes the allocations that only one of two traces has. The n-th allocation of a
// size on a stream matches the n-th allocation of that size and stream in the other trace.
type AllocDiff struct {
	Count [2]int          `json:"only_in"`         // allocations
	Bytes [2]device.Size  `json:"only_in_bytes"`   // sum of their sizes, saturating
	First [2][]AllocEvent `json:"first,omitempty"` // the first few of each
	IDs   *IDDiff         `json:"ids,omitempty"`   // nil if a trace uses an id twice
}

// IDDiff compares allocations by their ids.
type IDDiff struct {
	OnlyIn  [2]int `json:"only_in"` // ids
	Changed int    `json:"changed"` // ids with another size or stream in the other trace
}

// AllocEvent is an allocation of a trace.
type AllocEvent struct {
	Index  int           `json:"event"`  // number of its event
	ID     uint64        `json:"id"`     // name in the file
	Size   device.Size   `json:"bytes"`  // as requested
	Stream device.Stream `json:"stream"` // of the request
}

// LiveDiff compares the live bytes of two traces after equal numbers of allocations and frees.
type LiveDiff struct {
	Peak          [2]device.Size `json:"peak_bytes"`       // peak of the live bytes; see LowerBound
	At            [2]int         `json:"peak_event"`       // event of the peak; -1 without allocations
	MaxDifference device.Size    `json:"most_apart_bytes"` // maximum difference
	MaxAt         int            `json:"most_apart_at"`    // index of the change after which it first occurs; -1 if never
	FirstAt       int            `json:"first_apart_at"`   // index of the change after which they first differ; -1 if never
}

// mostAllocs is the maximum number of allocations in AllocDiff.First, for each trace.
const mostAllocs = 10

// Compare compares the contents of two traces. It ignores names, formats, hashes and the numbering
// of slots and tags, and times if neither trace has a time after 0. O(events · log events).
func Compare(a, b *Trace) Diff {
	d := Diff{
		Header: diffHeaders(a.Header, b.Header),
		Events: [2]int{len(a.Events), len(b.Events)},
		First:  firstDiff(a, b),
		Allocs: diffAllocs(a, b),
		Live:   diffLive(a, b),
	}
	d.Equal = len(d.Header) == 0 && d.First == nil
	x, y := kindTable(a), kindTable(b)
	for k := range Kinds {
		if x[k] != y[k] {
			d.Kinds = append(d.Kinds, KindDiff{k.String(), x[k], y[k]})
		}
	}
	return d
}

func kindTable(t *Trace) (counts [numKinds]int) {
	for i := range t.Events {
		counts[t.Events[i].Kind]++
	}
	return counts
}

// diffHeaders compares the pairs of headers. The n-th pair with a key matches the n-th in the
// other.
func diffHeaders(a, b Header) []HeaderDiff {
	pairs := func(h Header) ([]Pair, map[Pair]string) {
		list := slices.Clone(h.Meta)
		counts, values := map[string]int{}, map[Pair]string{}
		for i, p := range list {
			n := counts[p.Key]
			counts[p.Key]++
			list[i].Value = strconv.Itoa(n)
			values[list[i]] = p.Value
		}
		return list, values
	}
	x, in := pairs(a)
	y, out := pairs(b)
	var list []HeaderDiff
	for _, p := range x {
		va := in[p]
		switch vb, ok := out[p]; {
		case !ok:
			list = append(list, HeaderDiff{p.Key, &va, nil})
		case va != vb:
			list = append(list, HeaderDiff{p.Key, &va, &vb})
		}
	}
	for _, p := range y {
		if _, ok := in[p]; !ok {
			vb := out[p]
			list = append(list, HeaderDiff{p.Key, nil, &vb})
		}
	}
	return list
}

// firstDiff returns the first differing event, or nil.
func firstDiff(a, b *Trace) *EventDiff {
	timed := a.timed() || b.timed()
	for i := range max(len(a.Events), len(b.Events)) {
		if i < len(a.Events) && i < len(b.Events) && sameEvent(a, b, i, timed) {
			continue
		}
		return &EventDiff{Index: i, A: a.line(i), B: b.line(i)}
	}
	return nil
}

// timed reports whether any event has a time after 0. A trace without times has the time 0 in every
// row of a CSV.
func (t *Trace) timed() bool {
	return slices.ContainsFunc(t.Events, func(e Event) bool { return e.Time > 0 })
}

// sameEvent compares event i of two traces, including its time if timed is set.
func sameEvent(a, b *Trace, i int, timed bool) bool {
	x, y := a.Events[i], b.Events[i]
	if !timed {
		x.Time, y.Time = NoTime, NoTime
	}
	if x.Kind == BadFree && (x.Slot == NoSlot) != (y.Slot == NoSlot) || a.TagOf(&x) != b.TagOf(&y) {
		return false
	}
	x.Slot, y.Slot, x.Tag, y.Tag = 0, 0, 0, 0
	return x == y
}

// line returns event i as a line of the text form, or "" after the end.
func (t *Trace) line(i int) string {
	if i >= len(t.Events) {
		return ""
	}
	e := &t.Events[i]
	line, err := appendEvent(nil, e, t.TagOf(e))
	if err != nil {
		return e.Kind.String()
	}
	return string(line)
}

// allocKey identifies equal allocations.
type allocKey struct {
	size   device.Size
	stream device.Stream
}

func (t *Trace) allocs(f func(i int, e *Event)) {
	for i := range t.Events {
		if e := &t.Events[i]; e.Kind == Alloc || e.Kind == LiveAtStart {
			f(i, e)
		}
	}
}

// diffAllocs matches the allocations of two traces.
func diffAllocs(a, b *Trace) AllocDiff {
	d := AllocDiff{IDs: diffIDs(a, b)}
	for side, t := range [...]*Trace{a, b} {
		counts := map[allocKey]int{} // unmatched allocations of the other trace
		[...]*Trace{b, a}[side].allocs(func(_ int, e *Event) { counts[allocKey{e.Size, e.Stream}]++ })
		t.allocs(func(i int, e *Event) {
			k := allocKey{e.Size, e.Stream}
			if counts[k] > 0 {
				counts[k]--
				return
			}
			d.Count[side]++
			d.Bytes[side] = addSize(d.Bytes[side], e.Size)
			if len(d.First[side]) < mostAllocs {
				d.First[side] = append(d.First[side], AllocEvent{i, e.ID, e.Size, e.Stream})
			}
		})
	}
	return d
}

// diffIDs compares the allocations with equal ids. It returns nil if a trace uses an id twice.
func diffIDs(a, b *Trace) *IDDiff {
	byID := map[uint64]allocKey{}
	twice := false
	a.allocs(func(_ int, e *Event) {
		_, ok := byID[e.ID]
		twice = twice || ok
		byID[e.ID] = allocKey{e.Size, e.Stream}
	})
	d := IDDiff{}
	both := 0
	seen := map[uint64]bool{}
	b.allocs(func(_ int, e *Event) {
		twice = twice || seen[e.ID]
		seen[e.ID] = true
		switch k, ok := byID[e.ID]; {
		case !ok:
			d.OnlyIn[1]++
		case k != allocKey{e.Size, e.Stream}:
			d.Changed++
			fallthrough
		default:
			both++
		}
	})
	if twice {
		return nil
	}
	d.OnlyIn[0] = len(byID) - both
	return &d
}

// diffLive compares the live bytes after each number of allocations and frees. After its end a
// trace keeps its live bytes.
func diffLive(a, b *Trace) LiveDiff {
	d := LiveDiff{At: [2]int{-1, -1}, MaxAt: -1, FirstAt: -1}
	var ledgers [2]Ledger
	var at [2]int // events processed
	for n := 0; ; n++ {
		more := false
		for side, t := range [...]*Trace{a, b} {
			if i := t.nextChange(at[side]); i < len(t.Events) {
				more = true
				if ledgers[side].Step(&t.Events[i]) {
					d.At[side] = i
				}
				at[side] = i + 1
			}
		}
		if !more {
			break
		}
		x, y := ledgers[0].Live(), ledgers[1].Live()
		apart := max(x, y) - min(x, y)
		if apart > 0 && d.FirstAt < 0 {
			d.FirstAt = n
		}
		if apart > d.MaxDifference {
			d.MaxDifference, d.MaxAt = apart, n
		}
	}
	d.Peak = [2]device.Size{ledgers[0].peak, ledgers[1].peak}
	return d
}

// nextChange returns the first event from i on that changes the live bytes, or the number of
// events.
func (t *Trace) nextChange(i int) int {
	for i < len(t.Events) {
		switch t.Events[i].Kind {
		case Alloc, LiveAtStart, Free:
			return i
		}
		i++
	}
	return i
}
