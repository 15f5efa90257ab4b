package main

import (
	"fmt"
	"math/bits"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// unit divides every placement.
const unit device.Size = 256

// referee judges placements: it has a bit for each unit of the range that a live block covers.
type referee struct {
	taken []uint64
	at    []device.Size // of the block in each slot
	sizes []device.Size
	top   device.Size // highest end of a block so far
}

// judge returns the highest end of a block. The error is a block that is misaligned, out of range
// or overlaps a live block.
func judge(o operations, placements []uint64) (device.Size, error) {
	r := referee{at: make([]device.Size, o.slots), sizes: make([]device.Size, o.slots)}
	next := 0
	err := o.each(func(i int, op workload.Op) error {
		slot := op.Slot()
		if op.IsFree() {
			r.mark(r.at[slot], r.sizes[slot], false)
			return nil
		}
		if next == len(placements) {
			return errPlacements
		}
		at := device.Size(placements[next])
		next++
		if at%unit != 0 || at > o.span || op.Size() > o.span-at {
			return fmt.Errorf("operation %d: %d bytes at %d: not aligned to %d, or outside of the range", i, op.Size(), at, unit)
		}
		if !r.mark(at, op.Size(), true) {
			return fmt.Errorf("operation %d: %d bytes at %d lie over a live block", i, op.Size(), at)
		}
		r.at[slot], r.sizes[slot] = at, op.Size()
		r.top = max(r.top, at+op.Size())
		return nil
	})
	if err == nil && next != len(placements) {
		err = errPlacements
	}
	return r.top, err
}

// mark sets or clears the units of a block. It returns false if a unit was in that state already.
func (r *referee) mark(at, size device.Size, live bool) bool {
	first, end := uint64(at/unit), uint64(device.AlignUp(at+size, unit)/unit)
	if words := int(end+63) / 64; words > len(r.taken) {
		r.taken = append(r.taken, make([]uint64, max(words, 2*len(r.taken))-len(r.taken))...)
	}
	fresh := true
	for first < end {
		n := min(end-first, 64-first%64)
		mask := (^uint64(0) >> (64 - n)) << (first % 64)
		word := &r.taken[first/64]
		if live {
			fresh = fresh && *word&mask == 0
			*word |= mask
		} else {
			fresh = fresh && bits.OnesCount64(*word&mask) == int(n)
			*word &^= mask
		}
		first += n
	}
	return fresh
}
