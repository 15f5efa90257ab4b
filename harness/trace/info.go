package trace

import (
	"math"
	"math/bits"

	"github.com/vramyard/vramyard/device"
)

// Info describes a trace without a replay. Sizes are bytes as requested.
type Info struct {
	Name    string        `json:"name"`            // Header.Name
	Format  string        `json:"format"`          // Header.Format
	Hash    string        `json:"sha256"`          // Header.Hash
	Meta    []Pair        `json:"meta,omitempty"`  // Header.Meta
	Events  int           `json:"events"`          // number of events
	Kinds   []KindCount   `json:"kinds"`           // number of events by kind, in the order of the kinds, without zeros
	Allocs  int           `json:"allocs"`          // Alloc and LiveAtStart events
	Slots   int           `json:"slots"`           // distinct ids
	Streams []StreamCount `json:"streams"`         // by number
	Tags    []TagCount    `json:"tags,omitempty"`  // tags of allocations: most bytes first, then by text
	Marks   int           `json:"marks"`           // Mark events
	History bool          `json:"history"`         // has requests; false if it only has the blocks of one moment
	Sizes   SizeInfo      `json:"sizes"`           // distribution of the requested sizes
	Peak    device.Size   `json:"peak_live_bytes"` // peak of the live bytes; see LowerBound
	// index of the event that first reaches Peak; -1 without allocations
	PeakAt   int         `json:"peak_event"`
	PeakLive int         `json:"peak_live_count"` // peak of the number of live allocations
	End      device.Size `json:"end_live_bytes"`  // live after the last event
	EndLive  int         `json:"end_live_count"`  // number of live allocations after the last event
	Lives    LifeInfo    `json:"lifetimes"`       // lifetimes of allocations
	Steps    StepInfo    `json:"steps"`           // similarity of steps
	Pools    int         `json:"pools"`           // number of private pools begun
	// largest refused request, or 0
	Refused device.Size `json:"refused_bytes"`
	// refused requests, or nil
	Refusals *RefusalInfo `json:"refusals,omitempty"`
	Timed    bool         `json:"timed"`       // some event has a time
	Duration int64        `json:"duration_ns"` // from the first to the last known time
}

// RefusalInfo describes the requests that failed in the recorded program. They count in the lower
// bound; see [Refusals].
type RefusalInfo struct {
	Count  int         `json:"count"`      // refused requests
	LastAt int         `json:"last_event"` // event number of the last one
	Last   device.Size `json:"last_bytes"` // its size
	Died   bool        `json:"died"`       // the program died of it: no allocation follows
}

// KindCount is the number of events of a kind.
type KindCount struct {
	Kind  string `json:"kind"`  // name of the kind
	Count int    `json:"count"` // events
}

// StreamCount sums up the allocations on a stream.
type StreamCount struct {
	Stream device.Stream `json:"stream"` // number
	Allocs int           `json:"allocs"` // allocations on it
	Bytes  device.Size   `json:"bytes"`  // sum of their sizes, saturating
	Uses   int           `json:"uses"`   // Use events
}

// TagCount sums up the allocations with a tag.
type TagCount struct {
	Tag    string      `json:"tag"`    // text; "" for allocations without a tag
	Allocs int         `json:"allocs"` // allocations
	Bytes  device.Size `json:"bytes"`  // sum of their sizes, saturating
}

// SizeInfo describes the sizes of the allocations.
type SizeInfo struct {
	Distinct int         `json:"distinct"`    // number of distinct sizes
	Min      device.Size `json:"min"`         // smallest
	Median   device.Size `json:"median"`      // lower median
	Max      device.Size `json:"max"`         // largest
	Total    device.Size `json:"total_bytes"` // sum, saturating
}

// LowerBound returns the peak of the live bytes, as requested: no allocator can complete the trace
// with less. A refused request counts as live during its event; see [Refusals]. The result
// saturates at the largest Size. O(events).
func (t *Trace) LowerBound() device.Size {
	var l Ledger
	for i := range t.Events {
		l.Step(&t.Events[i])
	}
	return l.peak
}

// Ledger tracks the live allocations of a trace, event by event. The zero value is ready for use.
// It takes 16 bytes per slot.
//
// Sums have 128 bits, so a hostile trace whose sizes overflow saturates the peak and still comes
// down again.
type Ledger struct {
	slots  []birth // by slot
	hi, lo uint64  // live bytes
	count  int     // live allocations

	reached   device.Size // peak during the last event
	peak      device.Size
	peakCount int
}

// birth is the allocation in a slot; a live one may have 0 bytes.
type birth struct {
	size device.Size
	live bool
}

// Step processes the next event and reports whether it raised the peak of the bytes. A refused
// request is live only during its event.
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

// reach updates the peaks and reports whether the peak of the bytes rose.
func (l *Ledger) reach() bool {
	if l.reached = l.Live(); l.reached <= l.peak {
		return false
	}
	l.peak = l.reached
	return true
}

// Peak returns the peak of the live bytes; see [Trace.LowerBound].
func (l *Ledger) Peak() device.Size { return l.peak }

// Reached returns the peak of the live bytes during the last event.
func (l *Ledger) Reached() device.Size { return l.reached }

// PeakCount returns the peak of the number of live allocations.
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

// drop removes the allocation in a slot, if there is one.
func (l *Ledger) drop(slot uint32) {
	if b := &l.slots[slot]; b.live {
		l.end(b.size)
		b.live = false
	}
}

// Live returns the live bytes, saturating at the largest Size.
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
