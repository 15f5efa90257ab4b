package pluggable

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/device"
)

// What memory is filled with. What is read after it was freed is no number, as a float of 32 bits
// or the upper half of one, and spoils what is computed from it; what is read before it was written
// is -20.7, because programs that are right sometimes multiply such memory by zero.
const (
	poisonFresh uint32 = 0xc1a5f3d7 // granted and not written yet
	poisonFreed uint32 = 0xffc1d1e9 // freed
)

// span is freed memory that was filled.
type span struct {
	start, end device.Addr
	stream     device.Stream // of the request
}

// poison fills memory that is freed, and looks at it when it is used again. The device is made to
// wait for all work at each step, so that nobody's kernels are in the way.
type poison struct {
	memory  device.Contents
	streams device.Streams
	dev     *bound
	spans   []span // by address, disjoint
	report  PoisonStats
}

// PoisonStats tell what poisoning found.
type PoisonStats struct {
	Filled     uint64 `json:"filled"`     // blocks filled when they were freed
	Compared   uint64 `json:"compared"`   // pieces of freed memory that were looked at
	Violations uint64 `json:"violations"` // of them, that somebody had written
	First      string `json:"first"`      // the first of those, in words; "" if there is none
	// Blind says that memory was seen at two addresses, so that what was written at one of them cannot
	// be told from a write behind a free: since then nothing is compared.
	Blind bool `json:"blind"`
}

// StaleWriteError is memory that was written after it was freed.
type StaleWriteError struct {
	At     device.Addr   // first byte that differs
	Start  device.Addr   // of the piece of freed memory
	Size   device.Size   // bytes of the piece
	Stream device.Stream // stream whose program freed it
}

// Error implements error.
func (e *StaleWriteError) Error() string {
	return fmt.Sprintf("poison: somebody wrote at %v after it was freed (%d bytes from %v on, of stream %d)", e.At,
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

// granted looks at the freed memory in a block and fills the block. The error is a
// [*StaleWriteError], or the device's.
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

// all looks at all freed memory that nobody has used again.
func (p *poison) all() error { return p.look(0, ^device.Addr(0)) }
