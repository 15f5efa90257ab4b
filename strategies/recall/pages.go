package recall

import (
	"errors"
	"math/bits"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/regions"
)

// pages is the allocator over virtual memory. As a pool of a [graph] it shares its account with the
// other pools.
type pages struct {
	front.View
	front   *account
	cfg     Config
	vm      device.VirtualMemory
	shift   uint8       // log2 of the bytes of a page
	asked   device.Size // bytes of the last growth that was tried
	held    device.Size // bytes of the handles
	granted device.Size // bytes of the live blocks
	pinned  bool        // nothing that a request may have used is unmapped

	chunks      []chunk
	spareChunk  uint32
	spareChunks int
	windows     []window
	order       []int32 // windows in use, by address
	handles     []handle
	free        [2]index.SizeMap // free chunks by kind of their window
	live        front.Ledger     // live blocks; Place is the chunk

	watch   pageWatch
	watched device.Size // the smallest block that is watched
	demand  demand
	aliased device.Size // bytes of the slots of alias windows
	spare   []int32     // unused rows of handles
	idle    []int32     // idle handles, for the alias that is being made
}

var _ alloc.Strategy = (*pages)(nil)

// account is the part of an allocator that its pools share.
type account struct {
	front.Front
	span    device.Span               // limits with which every decision so far would have been the same
	reclaim func(of *pages) (ok bool) // releases memory of other pools for a request; nil without pools
}

// newPages is [New] for a valid configuration of pages or a graph.
func newPages(src device.Source, c Config) (alloc.Strategy, error) {
	vm, err := regions.Paged(src, "recall", "page_bytes", c.PageBytes)
	if err != nil {
		return nil, err
	}
	if c.Map == Graph {
		return newGraph(vm, c), nil
	}
	a := newPool(vm, c, new(account))
	a.View = a.front.open(c, func() (largest, bytes device.Size) {
		return a.LargestFree(), a.front.Stats.Reserved - a.front.Stats.Active - a.stuck()
	})
	return a, nil
}

// held returns the bytes held from the device.
func (t *account) held() device.Size { return t.Stats.Reserved + t.Stats.Forgotten }

// open prepares the front of an allocator and returns its view. Free returns the size of the
// largest free chunk and the sum of all.
func (t *account) open(c Config, free func() (largest, bytes device.Size)) front.View {
	v := t.Front.Init(front.Limits{Most: mostPages * c.PageBytes, Align: c.PageBytes}, free)
	t.Stats.Limit = c.Limit
	return v
}

// newPool returns an allocator that holds nothing yet, without its view.
func newPool(vm device.VirtualMemory, c Config, t *account) *pages {
	return &pages{
		front: t, cfg: c, vm: vm, shift: uint8(bits.TrailingZeros64(uint64(c.PageBytes))),
		chunks: []chunk{{state: live}},
		free:   [2]index.SizeMap{index.NewSizeMap(pageQuantum), index.NewSizeMap(pageQuantum)},
		watch:  newPageWatch(c.Memory), watched: c.PageBytes / watchedPart, demand: demand{page: c.PageBytes},
	}
}

// demand is the memory that an allocator of whole pages needs for the live blocks: each block of at
// least a page rounded up to pages, and the others together.
type demand struct {
	page  device.Size
	whole device.Size // bytes of the pages of large blocks
	small device.Size // bytes of the small blocks
	peak  device.Size // maximum so far
}

// with returns the demand with another block of n bytes.
func (d *demand) with(n device.Size) device.Size {
	whole, small := d.whole, d.small
	if n >= d.page {
		whole += device.AlignUp(n, d.page)
	} else {
		small += n
	}
	return whole + device.AlignUp(small, d.page)
}

// add adds a block of n bytes.
func (d *demand) add(n device.Size) {
	d.peak = max(d.peak, d.with(n))
	if n >= d.page {
		d.whole += device.AlignUp(n, d.page)
	} else {
		d.small += n
	}
}

// drop removes a block of n bytes.
func (d *demand) drop(n device.Size) {
	if n >= d.page {
		d.whole -= device.AlignUp(n, d.page)
	} else {
		d.small -= n
	}
}

// Alloc implements [alloc.Allocator]. The package comment states its cost.
func (a *pages) Alloc(r alloc.Request) (alloc.Block, error) {
	if !a.front.Accepts(&r) {
		return alloc.Block{}, a.front.Refuse(&r)
	}
	n := device.AlignUp(r.Size, pageQuantum)
	watched, h := n >= a.watched, noChunk
	if watched {
		h = a.recall(a.watch.allocate(n, a.granted+n), n, r.Align)
	}
	if h == noChunk {
		h = a.fit(n, r.Align)
	}
	if h == noChunk {
		err := a.extend(r.Size, needOf(r.Size, r.Align))
		if err != nil && !errors.Is(err, regions.ErrTooMany) && a.front.reclaim != nil && a.front.reclaim(a) {
			err = a.extend(r.Size, needOf(r.Size, r.Align))
		}
		if err != nil {
			return alloc.Block{}, a.front.OutOfMemory(&r, n, a.asked, err)
		}
		h = a.fit(n, r.Align)
	}
	c := &a.chunks[h]
	c.born = a.watch.count
	if watched {
		a.watch.granted(c.addr, c.window)
	}
	a.occupy(h)
	c = &a.chunks[h]
	a.windows[c.window].used = a.watch.count
	a.demand.add(r.Size)
	a.live.Add(c.addr, front.LiveBlock{Requested: r.Size, Stream: r.Stream, Tag: r.Tag, Place: uint64(h)})
	a.granted += n
	a.front.Stats.Granted(r.Size, n)
	return alloc.Block{Addr: c.addr, Size: n}, nil
}

// recall returns a chunk of n bytes at the place of the counterpart, or none. A counterpart that is
// larger by at most a 64th also gives its place.
func (a *pages) recall(then int, n, align device.Size) uint32 {
	if then < 0 {
		return noChunk
	}
	p := &a.watch.log[then]
	if p.at == 0 || n > p.size || p.size-n > p.size/64 || device.Size(p.at)%max(align, 1) != 0 {
		return noChunk
	}
	w := &a.windows[p.window]
	if p.at < w.addr || p.at >= w.addr.Add(w.end) {
		return noChunk // the window was released, and another one has its row
	}
	h := w.slots[w.slotOf[p.at.Sub(w.addr)>>a.shift]].chunk
	for range recallSteps {
		c := &a.chunks[h]
		switch {
		case h == noChunk:
			return noChunk
		case c.end() <= p.at:
			h = c.next
		case c.state != free || c.end() < p.at.Add(n):
			return noChunk
		default:
			return a.cut(h, p.at, n)
		}
	}
	return noChunk
}

// watchedPart is the part of a page from which blocks are watched. Smaller ones matter less for the
// pages, and watching takes as long as a best fit.
const watchedPart = 16

// recallSteps bounds the chunks that recall visits.
const recallSteps = 64

// fit returns a chunk of n bytes from the smallest free chunk with room, or none: one of a home
// window if there is one, because aliases are for requests that would need more memory otherwise.
func (a *pages) fit(n, align device.Size) uint32 {
	for k := range a.free {
		if at := a.free[k].Ceil(needOf(n, align)); at != index.NoEntry {
			e := a.free[k].Entry(at)
			return a.cut(e.Handle, device.AlignUp(e.Addr, max(align, 1)), n)
		}
	}
	return noChunk
}

// Free implements [alloc.Allocator]. It costs O(handles of the block), and for each that is not in
// use any more O(its aliases).
func (a *pages) Free(at device.Addr) error {
	b, ok := a.live.Take(at)
	if !ok {
		return a.front.NoBlock()
	}
	h := uint32(b.Place)
	c := &a.chunks[h]
	a.granted -= c.size
	a.front.Stats.Freed(b.Requested, c.size)
	a.demand.drop(b.Requested)
	if c.size >= a.watched {
		a.watch.free(c.born)
	}
	a.vacate(h)
	return nil
}

// needOf returns the size of a free chunk that has room for n bytes at a multiple of align at any
// start.
//
// Precondition: n is at most mostPages pages, align at most a page.
func needOf(n, align device.Size) device.Size {
	return device.AlignUp(n, pageQuantum) + max(align, pageQuantum) - pageQuantum
}
