package main

import (
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/regions"
)

// FirstFit places each block at the lowest address at which it fits.
//
// It keeps only the live blocks: the memory between two of them is free, so there are no free
// chunks to split or merge. Alloc and Free cost O(live blocks).
type FirstFit struct {
	regions.One               // the whole device, with Stats, Closed and Close
	live        []alloc.Chunk // by address; the last is a sentinel at the end of the region
}

// New returns a first fit over src. It fails if the device refuses the region; the result then
// holds nothing.
func New(src device.Source, c Config) (*FirstFit, error) {
	one, err := regions.ReserveOne(src, c.limit(), quantum)
	return &FirstFit{One: one, live: []alloc.Chunk{{Addr: one.Region.End()}}}, err
}

// Alloc implements [alloc.Allocator].
func (f *FirstFit) Alloc(r alloc.Request) (alloc.Block, error) {
	if f.Closed() {
		return alloc.Block{}, alloc.ErrClosed
	}
	if r.Size == 0 || !device.CanAlignUp(r.Size, quantum) || r.Align&(r.Align-1) != 0 {
		return alloc.Block{}, alloc.ErrInvalidRequest
	}
	size, align := device.AlignUp(r.Size, quantum), max(r.Align, quantum)
	at := device.AlignUp(f.Region.Addr, align) // where the block goes if the next gap holds it
	for i, c := range f.live {
		if at <= c.Addr && size <= c.Addr.Sub(at) { // a difference: a sum could overflow
			f.live = slices.Insert(f.live, i, alloc.Chunk{Region: f.Region.Addr, Addr: at, Size: size,
				Requested: r.Size, State: alloc.Live, Class: alloc.NoClass, Stream: r.Stream, Tag: r.Tag})
			f.Counters.Granted(r.Size, size)
			return alloc.Block{Addr: at, Size: size}, nil
		}
		at = device.AlignUp(c.End(), align)
	}
	f.Counters.OOMs++
	return alloc.Block{}, alloc.ErrOutOfMemory
}

// Free implements [alloc.Allocator].
func (f *FirstFit) Free(a device.Addr) error {
	if f.Closed() {
		return alloc.ErrClosed
	}
	i, found := slices.BinarySearchFunc(f.live, alloc.Chunk{Addr: a}, promise.ByAddress)
	if !found || f.live[i].Size == 0 { // the sentinel has no bytes
		return alloc.ErrInvalidFree
	}
	f.Counters.Freed(f.live[i].Requested, f.live[i].Size)
	f.live = slices.Delete(f.live, i, i+1)
	return nil
}

// Walk implements [alloc.Inspector]. It yields the gap below each block, if any, and then the
// block. After the region has been released it yields nothing.
func (f *FirstFit) Walk(yield func(alloc.Chunk) bool) {
	gap := alloc.Chunk{Region: f.Region.Addr, Addr: f.Region.Addr, Class: alloc.NoClass}
	for _, c := range f.live {
		gap.Size = c.Addr.Sub(gap.Addr)
		if f.Region.Size == 0 || gap.Size > 0 && !yield(gap) || c.Size > 0 && !yield(c) {
			return
		}
		gap.Addr = c.End()
	}
}

// Check implements [alloc.Inspector]. The list that Walk shows is the only index.
func (f *FirstFit) Check() error { return nil }
