package postmortem

import (
	"sort"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
)

// leastBlock returns the size of the smallest chunk at the start of a region that serves a request,
// or the rounded request if serving depends on more than size.
func leastBlock(n *Need, p promise.Set) device.Size {
	quantum := max(p.Quantum, 1)
	units := (max(n.Request.Size, 1) + quantum - 1) / quantum
	// Chunks that serve are at most twice the request, or slightly more for the largest.
	k := sort.Search(int(units)+1, func(k int) bool {
		c := alloc.Chunk{
			Region: quantumBase, Addr: quantumBase, Size: (units + device.Size(k)) * quantum, Pool: n.Pool,
			Stream: n.Request.Stream,
		}
		large := c // the class may be the region's
		large.Class = power.ClassLarge
		return n.fits(c) || n.fits(large)
	})
	if k > int(units) {
		k = 0
	}
	return (units + device.Size(k)) * quantum
}

// quantumBase is a region start with any alignment needed.
const quantumBase device.Addr = 1 << 46

func fitsOf(p promise.Set) func(alloc.Chunk, alloc.Request) bool {
	serves := p.Fits
	if serves == nil {
		serves = p.Serves
	}
	if serves == nil {
		serves = promise.ServesAnywhere(max(p.Quantum, 1))
	}
	return func(c alloc.Chunk, r alloc.Request) bool {
		if p.ClassOf != nil {
			c.Class = p.ClassOf(c)
		}
		return serves(c, r)
	}
}

// keepsBuddies reports whether blocks merge with their buddies only, so that a block is aligned to
// its size, a power of two.
func keepsBuddies(p promise.Set) bool {
	if p.MustMerge == nil || p.Quantum == 0 {
		return false
	}
	at := func(k device.Size) alloc.Chunk {
		return alloc.Chunk{Region: quantumBase, Addr: quantumBase.Add(k * p.Quantum), Size: p.Quantum}
	}
	return p.MustMerge(at(0), at(1)) && !p.MustMerge(at(1), at(2)) && p.MustMerge(at(2), at(3))
}

// smallPage is the mapping granularity of expandable segments for small blocks, in all versions of
// PyTorch.
const smallPage = 2 * device.MiB

// torchPages returns the page sizes of expandable regions of PyTorch's allocator: see
// [power.Counted].
func torchPages(p promise.Set) func(alloc.Chunk) device.Size {
	return func(c alloc.Chunk) device.Size {
		switch {
		case c.Owner != power.OwnerExpandable:
			return 0
		case c.Class == power.ClassSmall:
			return smallPage
		}
		return p.Page
	}
}

// pagesOf returns the page sizes of expandable regions: those with unmapped chunks.
func pagesOf(p promise.Set, h *Heap, src device.Source) func(alloc.Chunk) device.Size {
	page := p.Page
	if vm, ok := device.VirtualMemoryOf(src); ok && page == 0 {
		page = vm.Granularity()
	}
	grows := map[device.Addr]bool{}
	for _, c := range h.Chunks {
		if c.State == alloc.Unmapped {
			grows[c.Region] = true
		}
	}
	return func(c alloc.Chunk) device.Size {
		if grows[c.Region] {
			return page
		}
		return 0
	}
}

// grow rounds the segment of a need to pages if the request may use expandable regions. Free pages
// there count as returned pages, so that mapped memory does not count twice. A strategy that joins
// pages from anywhere does so itself.
func (n *Need) grow(h *Heap) {
	for _, c := range h.Chunks {
		page := n.page(c)
		if page > 0 && n.obstacle(c) == usable && (n.Segment == 0 || c.Owner == power.OwnerExpandable) {
			n.Segment = (n.Block + page - 1) / page * page
			return
		}
	}
}
