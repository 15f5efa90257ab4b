package textbook

import (
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
)

// Walk implements [alloc.Inspector]. The class of a free chunk is its bin.
func (a *Allocator) Walk(yield func(alloc.Chunk) bool) {
	if a.front.Closed() {
		a.subAllocator.WalkSlack(yield) // regions that the device did not take back
		return
	}
	for _, r := range a.regionManager.regions {
		for h := *r.handleAt(r.Addr); h != invalidChunkHandle; h = a.chunkFromHandle(h).next {
			if !yield(a.view(h)) {
				return
			}
		}
	}
}

func (a *Allocator) view(h chunkHandle) alloc.Chunk {
	c := a.chunkFromHandle(h)
	v := alloc.Chunk{Region: a.regionManager.regionFor(c.ptr).Addr, Addr: c.ptr, Size: c.size, Class: c.binNum}
	if c.inUse() {
		v.State, v.Class, v.Requested, v.Tag, v.Stream = alloc.Live, alloc.NoClass, c.requestedSize, c.tag, c.stream
		v.ID = uint64(c.allocationID)
	}
	return v
}

// WalkFree implements [power.FreeWalker].
func (a *Allocator) WalkFree(yield func(alloc.Chunk) bool) {
	for _, h := range slices.Concat(a.bins[:]...) {
		if !yield(a.view(h)) {
			return
		}
	}
}

// LargestFree implements [power.Holes]: the last chunk of the last bin that has any.
func (a *Allocator) LargestFree() device.Size {
	for _, bin := range slices.Backward(a.bins[:]) {
		if len(bin) > 0 {
			return a.chunkFromHandle(bin[len(bin)-1]).size
		}
	}
	return 0
}

// Check implements [alloc.Inspector].
func (a *Allocator) Check() error {
	if err := front.CompareStats(a.front.Stats, a.Walk); err != nil {
		return fmt.Errorf("bfc: invariant X1 (chunks tile their region and match Stats): %w", err)
	}
	records, free := 1, 0 // the first record is not used
	for _, r := range a.regionManager.regions {
		prev := invalidChunkHandle
		for h := *r.handleAt(r.Addr); h != invalidChunkHandle; prev, h = h, a.chunkFromHandle(h).next {
			if broken := a.checkChunk(h, prev); broken != "" {
				return fmt.Errorf("bfc: invariant %s: chunk %v", broken, a.chunkFromHandle(h).ptr)
			}
			if records++; a.isFree(h) {
				free++
			}
		}
	}
	if binned := len(slices.Concat(a.bins[:]...)); binned != free {
		return fmt.Errorf("bfc: invariant X4 (the bins have the free chunks): %d of %d", binned, free)
	}
	for h := a.freeChunks; h != invalidChunkHandle && records <= len(a.chunks); h = a.chunkFromHandle(h).next {
		records++
	}
	if records != len(a.chunks) {
		return fmt.Errorf("bfc: invariant X6 (a record has a chunk or is unused): %d of %d", records, len(a.chunks))
	}
	return nil
}

// checkChunk returns the invariant that a chunk breaks, given the one before it, or "".
func (a *Allocator) checkChunk(h, prev chunkHandle) string {
	c := a.chunkFromHandle(h)
	n := roundedBytes(c.requestedSize)
	switch {
	case c.prev != prev || a.isFree(prev) && a.isFree(h):
		return "X2 (prev mirrors next, and of two adjacent chunks one is in use)"
	case a.regionManager.getHandle(c.ptr) != h:
		return "X3 (the array has the handle of each chunk)"
	case !c.inUse() && (c.binNum != binNumForSize(c.size) || !a.isInBin(h)):
		return "X4 (the bins have the free chunks)"
	case c.inUse() && (c.size-n >= n || c.size-n >= maxInternalFragmentation):
		return "X5 (what a split leaves is too small for another)"
	}
	return ""
}

// isInBin reports whether a chunk is at its place in its bin.
func (a *Allocator) isInBin(h chunkHandle) bool {
	bin, i := a.placeInBin(h)
	return i < len(*bin) && (*bin)[i] == h
}
