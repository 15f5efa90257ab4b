package pluggable

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/device"
)

// The fill patterns. Freed memory reads as NaN, as a 32-bit float or its upper half, which spoils
// results computed from it. Fresh memory reads as -20.7, because correct programs sometimes
// multiply such memory by zero.
const (
	poisonFresh uint32 = 0xc1a5f3d7 // granted, not written yet
	poisonFreed uint32 = 0xffc1d1e9 // freed
)

// span is freed memory that was filled.
type span struct {
	start, end device.Addr
	stream     device.Stream // stream of the request
}

// poison fills freed memory and compares it when it is reused. Each step synchronizes the device,
// so no kernel writes during it.
type poison struct {
	memory  device.Contents
	streams device.Streams
	dev     *bound
	spans   []span // by address, disjoint
	report  PoisonStats
}

// PoisonStats are the results of poisoning.
type PoisonStats struct {
	Filled     uint64 `json:"filled"`     // blocks filled when they were freed
	Compared   uint64 `json:"compared"`   // ranges of freed memory compared
	Violations uint64 `json:"violations"` // ranges that had been written
	First      string `json:"first"`      // the first violation, in words; "" if none
	// Blind reports that memory was mapped at two addresses. Writes through an alias cannot be
	// distinguished from stale writes, so comparing stopped.
	Blind bool `json:"blind"`
}

// StaleWriteError is a write to memory after it was freed.
type StaleWriteError struct {
	At     device.Addr   // first byte that differs
	Start  device.Addr   // start of the freed range
	Size   device.Size   // bytes of the piece
	Stream device.Stream // stream that freed it
}

func (e *StaleWriteError) Error() string {
	return fmt.Sprintf("poison: %v was written after it was freed (%d freed bytes at %v, stream %d)", e.At,
		uint64(e.Size), e.Start, uint64(e.Stream))
}

func (p *poison) fill(a device.Addr, n device.Size, pattern uint32) error {
	if err := p.streams.SyncDevice(); err != nil {
		return err
	}
	if err := p.memory.Fill(a, n, pattern); err != nil {
		return err
	}
	return p.streams.SyncDevice()
}

func (p *poison) freed(a device.Addr, n device.Size, s device.Stream) error {
	if err := p.fill(a, n, poisonFreed); err != nil {
		return err
	}
	p.report.Filled++
	i, _ := slices.BinarySearchFunc(p.spans, a, func(s span, a device.Addr) int { return cmp.Compare(s.start, a) })
	p.spans = slices.Insert(p.spans, i, span{a, a.Add(n), s})
	return nil
}

// granted compares the freed memory in a block and fills the block. The error is a
// [*StaleWriteError] or the device's.
func (p *poison) granted(a device.Addr, n device.Size) error {
	err := p.look(a, a.Add(n))
	p.forget(a, n)
	err = cmp.Or(err, p.fill(a, n, poisonFresh))
	return err
}

// look compares the freed memory between two addresses.
func (p *poison) look(from, to device.Addr) (first error) {
	if p.report.Blind = p.report.Blind || p.dev.aliased; p.report.Blind {
		return nil
	}
	if err := p.streams.SyncDevice(); err != nil {
		return err
	}
	for i := p.at(from); i < len(p.spans) && p.spans[i].start < to; i++ {
		s := p.spans[i]
		start, end := max(s.start, from), min(s.end, to)
		at, same, err := p.memory.Compare(start, end.Sub(start), poisonFreed)
		p.report.Compared++
		if err == nil && !same {
			err = &StaleWriteError{At: at, Start: s.start, Size: s.end.Sub(s.start), Stream: s.stream}
			if p.report.Violations++; p.report.First == "" {
				p.report.First = err.Error()
			}
		}
		first = cmp.Or(first, err)
	}
	return first
}

// at returns the first span that ends above an address.
func (p *poison) at(a device.Addr) int {
	i, _ := slices.BinarySearchFunc(p.spans, a, func(s span, a device.Addr) int {
		if s.end > a {
			return 1
		}
		return -1
	})
	return i
}

func (p *poison) forget(a device.Addr, n device.Size) {
	end := a.Add(n)
	i := p.at(a)
	j := i
	var kept []span
	for ; j < len(p.spans) && p.spans[j].start < end; j++ {
		if s := p.spans[j]; s.start < a {
			kept = append(kept, span{s.start, a, s.stream})
		}
		if s := p.spans[j]; s.end > end {
			kept = append(kept, span{end, s.end, s.stream})
		}
	}
	p.spans = slices.Replace(p.spans, i, j, kept...)
}

// all compares all freed memory that was not reused.
func (p *poison) all() error { return p.look(0, ^device.Addr(0)) }
