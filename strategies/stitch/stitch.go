package stitch

import (
	"math/bits"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/forecast"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/regions"
)

// Allocator stitches scattered memory. Use [New]; it is not safe for concurrent use.
type Allocator struct {
	front.View
	front front.Front
	cfg   Config
	src   device.Source
	vm    device.VirtualMemory

	pageShift uint8       // log2 of the bytes of a page
	asked     device.Size // bytes of the last reservation that was tried
	span      device.Span // limits with which every decision so far would have been the same

	// The tables and the lists of their unused rows. Row 0 of each stands for none.
	chunks      []chunk
	spareChunk  uint32
	spareChunks int
	regions     []region
	spareRegion uint32
	pieces      []piece
	sparePiece  uint32
	sparePieces int

	order index.AddrList[uint32] // regions by address

	free  [2]index.SizeMap // free chunks of the small pool, and free pBlocks
	freed [2]device.Size   // bytes of each
	idle  index.SizeMap    // idle sBlocks that wait for no pBlock
	live  front.Ledger     // live blocks; Place is the chunk

	sBlocks  int      // sBlocks with a range, live or idle
	oldest   uint32   // first of the idle sBlocks in the order of their frees
	newest   uint32   // last of them
	gathered []uint32 // pBlocks for the sBlock that is being made

	placer *forecast.Placer // made at first use
}

var _ alloc.Strategy = (*Allocator)(nil)

// New returns an allocator over src that holds nothing yet. It fails if c is invalid, if src has
// no virtual memory, with an error that wraps [device.ErrUnsupported], or if its pages are larger
// than Config.ChunkBytes.
func New(src device.Source, c Config) (*Allocator, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	vm, err := regions.Paged(src, "stitch", "chunk_bytes", c.ChunkBytes)
	if err != nil {
		return nil, err
	}
	a := &Allocator{
		cfg: c, src: src, vm: vm, pageShift: uint8(bits.TrailingZeros64(uint64(c.ChunkBytes))),
		chunks: []chunk{{state: live}}, regions: make([]region, 1), pieces: make([]piece, 1),
		free: [2]index.SizeMap{index.NewSizeMap(quantum), index.NewSizeMap(c.ChunkBytes)},
		idle: index.NewSizeMap(c.ChunkBytes),
	}
	// A page takes two device calls, which bounds the pages of a request.
	a.View = a.front.Init(front.Limits{Most: mostPages * c.ChunkBytes, Align: c.ChunkBytes},
		func() (largest, bytes device.Size) {
			return a.largest(), a.freed[small] + a.freed[pages]
		})
	a.front.Stats.Limit = c.Limit
	return a, nil
}

// Config returns the configuration with every default filled in.
func (a *Allocator) Config() Config { return a.cfg }

// needOf returns the size of a small chunk that has room for n bytes at a multiple of align at any
// start.
//
// Precondition: n is at most a page.
func needOf(n, align device.Size) device.Size {
	return device.AlignUp(n, quantum) + max(align, quantum) - quantum
}

// Alloc implements [alloc.Allocator]. The package comment states its cost.
func (a *Allocator) Alloc(r alloc.Request) (alloc.Block, error) {
	if !a.front.Accepts(&r) {
		return alloc.Block{}, a.front.Refuse(&r)
	}
	h, err := a.serve(&r)
	if err != nil {
		return alloc.Block{}, a.front.OutOfMemory(&r, a.rounded(r.Size), a.asked, err)
	}
	c := &a.chunks[h]
	c.state = live
	a.live.Add(c.addr, front.LiveBlock{Requested: r.Size, Stream: r.Stream, Tag: r.Tag, Place: uint64(h)})
	a.front.Stats.Granted(r.Size, c.size)
	return alloc.Block{Addr: c.addr, Size: c.size}, nil
}

// serve returns a chunk for a valid request. The chunk is in no map.
func (a *Allocator) serve(r *alloc.Request) (uint32, error) {
	if r.Size >= a.cfg.ChunkBytes {
		n := a.rounded(r.Size)
		if h := a.fromPages(n); h != none {
			return h, nil
		}
		return a.growPages(n)
	}
	if h := a.fromSmall(r); h != none {
		return h, nil
	}
	if err := a.growSmall(needOf(r.Size, r.Align)); err != nil {
		return none, err
	}
	return a.fromSmall(r), nil
}

// rounded returns the size of the block for a request of n bytes.
func (a *Allocator) rounded(n device.Size) device.Size {
	if n >= a.cfg.ChunkBytes {
		return device.AlignUp(n, a.cfg.ChunkBytes)
	}
	return device.AlignUp(n, quantum)
}

// fromSmall returns a chunk of the small pool for a request, cut from the smallest free chunk that
// has room, or none.
func (a *Allocator) fromSmall(r *alloc.Request) uint32 {
	at := a.free[small].Ceil(needOf(r.Size, r.Align))
	if at == index.NoEntry {
		return none
	}
	e := a.free[small].Entry(at)
	return a.cut(e.Handle, device.AlignUp(e.Addr, max(r.Align, 1)), a.rounded(r.Size))
}

// growSmall adds a region with room for n bytes to the small pool. If the device refuses, it tries
// the smallest region with room, and then releases free memory and tries that again.
func (a *Allocator) growSmall(n device.Size) error {
	least := max(n, a.cfg.ChunkBytes)
	n = max(n, a.cfg.SmallBytes)
	h, err := a.obtainSmall(n)
	if err != nil && least < n {
		h, err = a.obtainSmall(least)
	}
	if err != nil && a.reclaim(least) {
		h, err = a.obtainSmall(least)
	}
	if err == nil {
		a.insert(h)
	}
	return err
}

// fromPages returns a chunk of n bytes of whole pages without a device call, or none: a pBlock of
// that size, otherwise an sBlock of that size (state S1 of the paper), otherwise the first part of
// the smallest larger pBlock (S2).
func (a *Allocator) fromPages(n device.Size) uint32 {
	at := a.free[pages].Ceil(n)
	exact := at != index.NoEntry && a.free[pages].Entry(at).Size == n
	if !exact {
		if h := a.match(n); h != none {
			return h
		}
	}
	if at == index.NoEntry {
		return none
	}
	e := a.free[pages].Entry(at)
	return a.cut(e.Handle, e.Addr, n)
}

// growPages returns a chunk of n bytes of whole pages by device calls: it stitches free pBlocks
// (state S3 of the paper), reserves the missing bytes first (S4), or reserves all of them. If that
// fails it releases free memory and tries once more; after that the request fails (S5).
func (a *Allocator) growPages(n device.Size) (uint32, error) {
	h, err := a.extend(n)
	if err != nil && a.reclaim(n) {
		h, err = a.extend(n)
	}
	return h, err
}

// extend is growPages without the second attempt.
func (a *Allocator) extend(n device.Size) (uint32, error) {
	if n < a.cfg.FragLimit || a.freed[pages] == 0 || !a.makeRoom() {
		return a.obtain(n)
	}
	if have := a.freed[pages]; have < n {
		h, err := a.obtain(n - have)
		if err != nil {
			return none, err
		}
		a.insert(h)
	}
	if h, err := a.stitch(n); err == nil {
		return h, nil
	}
	// The device refused to map memory, not to create it, so another range may work.
	return a.obtain(n)
}

// Free implements [alloc.Allocator]. For each pBlock of the block it costs O(1), amortized O(log
// chunks of one size), and a merge writes four bytes for each page of the smaller chunk.
func (a *Allocator) Free(at device.Addr) error {
	b, ok := a.live.Take(at)
	if !ok {
		return a.front.NoBlock()
	}
	h := uint32(b.Place)
	a.front.Stats.Freed(b.Requested, a.chunks[h].size)
	a.vacate(h)
	return nil
}

// vacate frees the memory of a chunk that was live.
func (a *Allocator) vacate(h uint32) {
	if i := a.chunks[h].region; a.regions[i].kind == stitched {
		a.makeIdle(i)
	} else {
		a.settle(h)
	}
}
