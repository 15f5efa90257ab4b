package main

import (
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// FirstFit places each block at the lowest address at which it fits.
//
// It keeps the live blocks and nothing else: what lies between two of them is free, so
// there are no free chunks to split or to merge. Alloc and Free cost O(live blocks).
type FirstFit struct {
	src    device.Source
	region device.Region // the whole device; nothing before the first request and after Close
	live   []alloc.Chunk // by address; the last is no block, it marks the end of the region
	stats  alloc.Stats
	closed bool
}

// New returns a first fit over src. It takes its region when the first request comes.
func New(src device.Source, c Config) (*FirstFit, error) {
	return &FirstFit{src: src, stats: alloc.Stats{Limit: c.limit()}}, nil
}

// Alloc implements [alloc.Allocator].
func (f *FirstFit) Alloc(r alloc.Request) (alloc.Block, error) {
	if f.closed {
		return alloc.Block{}, alloc.ErrClosed
	}
	if r.Size == 0 || !device.CanAlignUp(r.Size, quantum) || r.Align&(r.Align-1) != 0 {
		return alloc.Block{}, alloc.ErrInvalidRequest
	}
	if f.region.Size == 0 { // the first request, or the device refused the ones before
		if region, err := f.src.Reserve(f.stats.Limit, quantum); err == nil {
			f.region, f.live = region, []alloc.Chunk{{Addr: region.End()}}
			f.stats.RegionAdded(region.Size)
		} else {
			f.stats.ReserveFailures++
		}
	}
	size, align := device.AlignUp(r.Size, quantum), max(r.Align, quantum)
	at := device.AlignUp(f.region.Addr, align) // where the block goes if the next gap holds it
	for i, c := range f.live {
		if at <= c.Addr && size <= c.Addr.Sub(at) { // no sum, so nothing overflows
			f.live = slices.Insert(f.live, i, alloc.Chunk{Region: f.region.Addr, Addr: at, Size: size,
				Requested: r.Size, State: alloc.Live, Class: alloc.NoClass, Stream: r.Stream, Tag: r.Tag})
			f.stats.Granted(r.Size, size)
			return alloc.Block{Addr: at, Size: size}, nil
		}
		at = device.AlignUp(c.End(), align)
	}
	f.stats.OOMs++
	return alloc.Block{}, alloc.ErrOutOfMemory
}

// Free implements [alloc.Allocator].
func (f *FirstFit) Free(a device.Addr) error {
	if f.closed {
		return alloc.ErrClosed
	}
	i, found := slices.BinarySearchFunc(f.live, alloc.Chunk{Addr: a}, alloc.ByAddress)
	if !found || f.live[i].Size == 0 { // the mark at the end has no bytes
		return alloc.ErrInvalidFree
	}
	f.stats.Freed(f.live[i].Requested, f.live[i].Size)
	f.live = slices.Delete(f.live, i, i+1)
	return nil
}

// Walk implements [alloc.Inspector]. Below each block comes the gap, if there is one.
func (f *FirstFit) Walk(yield func(alloc.Chunk) bool) {
	gap := alloc.Chunk{Region: f.region.Addr, Addr: f.region.Addr, Class: alloc.NoClass}
	for _, c := range f.live {
		gap.Size = c.Addr.Sub(gap.Addr)
		if gap.Size > 0 && !yield(gap) || c.Size > 0 && !yield(c) {
			return
		}
		gap.Addr = c.End()
	}
}

// Stats implements [alloc.Inspector].
func (f *FirstFit) Stats() alloc.Stats { return f.stats }

// Check implements [alloc.Inspector]. There is no index besides the list that Walk shows.
func (f *FirstFit) Check() error { return nil }

// Close implements [alloc.Strategy].
func (f *FirstFit) Close() (err error) {
	f.closed = true
	if f.region.Size > 0 {
		if err = f.src.Release(f.region.Addr); err == nil {
			f.stats.RegionReleased(f.region.Size)
			f.region, f.live = device.Region{}, nil
		}
	}
	return err
}
