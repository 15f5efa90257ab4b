package trace

import (
	"math"
	"math/bits"

	"github.com/vramyard/vramyard/device"
)

// Info is what can be said of a trace without replaying it. Sizes are bytes as requested.
type Info struct {
	Name    string        `json:"name"`            // Header.Name
	Format  string        `json:"format"`          // Header.Format
	Hash    string        `json:"sha256"`          // Header.Hash
	Meta    []Pair        `json:"meta,omitempty"`  // Header.Meta
	Events  int           `json:"events"`          // number of events
	Kinds   []KindCount   `json:"kinds"`           // events by kind, in the order of the kinds; none with 0
	Allocs  int           `json:"allocs"`          // Alloc and LiveAtStart events
	Slots   int           `json:"slots"`           // distinct ids
	Streams []StreamCount `json:"streams"`         // by number
	Tags    []TagCount    `json:"tags,omitempty"`  // tags of allocations: most bytes first, then by text
	Marks   int           `json:"marks"`           // Mark events
	History bool          `json:"history"`         // it requests memory; false: it has the blocks of one moment alone
	Sizes   SizeInfo      `json:"sizes"`           // distribution of the requested sizes
	Peak    device.Size   `json:"peak_live_bytes"` // as LowerBound
	// index of the event that first reaches Peak; -1 without allocations
	PeakAt   int         `json:"peak_event"`
	PeakLive int         `json:"peak_live_count"` // most allocations live at once
	End      device.Size `json:"end_live_bytes"`  // live behind the last event
	EndLive  int         `json:"end_live_count"`  // likewise
	Lives    LifeInfo    `json:"lifetimes"`       // how long allocations live
	Steps    StepInfo    `json:"steps"`           // how much steps are alike
	Pools    int         `json:"pools"`           // private pools that are begun
	// largest request that the recorded program was refused; 0 if none was
	Refused device.Size `json:"refused_bytes"`
	// the requests that the recorded program was refused; absent: none was
	Refusals *RefusalInfo `json:"refusals,omitempty"`
	Timed    bool         `json:"timed"`       // some event has a time
	Duration int64        `json:"duration_ns"` // from the first to the last known time
}

// RefusalInfo describes the requests that the recorded program was refused. They count in the lower
// bound; see [Refusals].
type RefusalInfo struct {
	Count  int         `json:"count"`      // refused requests
	LastAt int         `json:"last_event"` // number of the last one
	Last   device.Size `json:"last_bytes"` // its size
	Died   bool        `json:"died"`       // it ended the program: no allocation follows
}

// KindCount says how many events are of one kind.
type KindCount struct {
	Kind  string `json:"kind"`  // name of the kind
	Count int    `json:"count"` // events
}

// StreamCount says what is allocated on one stream.
type StreamCount struct {
	Stream device.Stream `json:"stream"` // number
	Allocs int           `json:"allocs"` // allocations that name it first
	Bytes  device.Size   `json:"bytes"`  // their sum; the largest Size if that overflows
	Uses   int           `json:"uses"`   // Use events
}

// TagCount says what is allocated with one tag.
type TagCount struct {
	Tag    string      `json:"tag"`    // text; "" are the allocations without
	Allocs int         `json:"allocs"` // allocations
	Bytes  device.Size `json:"bytes"`  // their sum; the largest Size if that overflows
}

// SizeInfo describes the sizes of the allocations.
type SizeInfo struct {
	Distinct int         `json:"distinct"`    // number of different sizes
	Min      device.Size `json:"min"`         // smallest
	Median   device.Size `json:"median"`      // lower median
	Max      device.Size `json:"max"`         // largest
	Total    device.Size `json:"total_bytes"` // their sum; the largest Size if that overflows
}

// LowerBound returns the most bytes that are live at once, as requested: no allocator can complete
// the trace with less. A refused request counts as live when it is made; see [Refusals]. The result
// is the largest Size if the bytes do not fit one. O(events).
func (t *Trace) LowerBound() device.Size {
	var l Ledger
	for i := range t.Events {
		l.Step(&t.Events[i])
	}
	return l.peak
}

// Ledger follows what is live in a trace, event by event. The zero value has seen nothing. It
// takes 16 bytes for each slot.
//
// The sum is kept in 128 bits, so that a hostile trace whose sizes overflow saturates at the
// peak and still comes down again.
type Ledger struct {
	slots  []birth // by slot
	hi, lo uint64  // live bytes
	count  int     // live allocations

	reached   device.Size // most live bytes during the last event
	peak      device.Size
	peakCount int
}

// birth is the allocation in a slot; a live one may have 0 bytes.
type birth struct {
	size device.Size
	live bool
}

// Step books the next event and reports whether it raised the peak of the bytes. A refused request
// is live during its event only.
func (l *Ledger) Step(e *Event) bool {
	switch e.Kind {
	case Alloc, LiveAtStart:
		l.slots = grown(l.slots, e.Slot)
		l.drop(e.Slot)
		l.begin(e.Size)
		l.slots[e.Slot] = birth{e.Size, true}
	case Free:
		if int(e.Slot) < len(l.slots) {
			l.drop(e.Slot)
		}
	case Refused:
		l.begin(e.Size)
		raised := l.reach()
		l.end(e.Size)
		return raised
	}
	return l.reach()
}

// reach notes what is live now and reports whether that raises the peak.
func (l *Ledger) reach() bool {
	if l.reached = l.Live(); l.reached <= l.peak {
		return false
	}
	l.peak = l.reached
	return true
}

// Peak returns the most bytes that were live at once; see [Trace.LowerBound].
func (l *Ledger) Peak() device.Size { return l.peak }

// Reached returns the most bytes that were live during the last event.
func (l *Ledger) Reached() device.Size { return l.reached }

// PeakCount returns the most allocations that were live at once.
func (l *Ledger) PeakCount() int { return l.peakCount }

func (l *Ledger) begin(n device.Size) {
	var carry uint64
	l.lo, carry = bits.Add64(l.lo, uint64(n), 0)
	l.hi += carry
	l.count++
	l.peakCount = max(l.peakCount, l.count)
}

func (l *Ledger) end(n device.Size) {
	var borrow uint64
	l.lo, borrow = bits.Sub64(l.lo, uint64(n), 0)
	l.hi -= borrow
	l.count--
}

// drop takes the allocation of a slot out, if there is one.
func (l *Ledger) drop(slot uint32) {
	if b := &l.slots[slot]; b.live {
		l.end(b.size)
		b.live = false
	}
}

// Live returns the bytes that are live now, or the largest Size if they do not fit.
func (l *Ledger) Live() device.Size {
	if l.hi != 0 {
		return math.MaxUint64
	}
	return device.Size(l.lo)
}

func addSize(a, b device.Size) device.Size {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxUint64
}
