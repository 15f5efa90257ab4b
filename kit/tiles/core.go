package tiles

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/forecast"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/regions"
)

// MaxRequest is the largest request in bytes. No device has more, and the sum of a size and an
// alignment cannot overflow.
const MaxRequest device.Size = 1 << 60

// Index holds the free chunks of a strategy. The core calls it outside of the hot path; Alloc and
// Free of the strategy call the index directly.
type Index interface {
	// Insert adds a free chunk.
	Insert(Handle)
	// Remove removes a free chunk.
	Remove(Handle)
	// Largest returns the size of the largest free chunk, or 0.
	Largest() device.Size
	// Bytes returns the host memory of the index.
	Bytes() device.Size
	// All yields every chunk of the index in the order of the search.
	All(yield func(Handle) bool)
	// Show returns Class and Owner of a free chunk, as Walk shows them.
	Show(Handle) (class int32, owner uint8)
	// Check verifies the index, which should hold n chunks. Errors begin with the number of
	// the broken invariant.
	Check(n int) error
}

// Core is the common part of the strategies over tiles. It must not be copied; use [Core.Init].
type Core struct {
	Table
	front.Front
	name    string
	quantum device.Size
	release bool // empty regions may be released
	index   Index
	placer  forecast.Placer

	pool regions.Pool      // regions held; the label of a region is its first chunk
	live index.AddrBuckets // live chunks by address; their links form the chains
}

// Init prepares the core of a strategy of the given name over src, and returns the view that the
// strategy embeds. CanPlace follows the promises. Every power of two is a valid alignment.
//
// Precondition: the policy passes its Check.
func (c *Core) Init(
	name string, src device.Source, p regions.Policy, promises promise.Set, free Index,
) View {
	c.Table, c.live = NewTable(), index.NewAddrBuckets()
	c.name, c.quantum, c.release, c.index = name, p.Quantum, p.Release, free
	c.pool = regions.NewPool(src, &c.Stats, p)
	c.placer = forecast.Placer{Most: MaxRequest, Promises: promises, Freed: c.freedAs, Join: merge}
	shown := c.Front.Init(front.Limits{Most: MaxRequest}, func() (largest, bytes device.Size) {
		return c.index.Largest(), c.Stats.Reserved - c.Stats.Active
	})
	return View{shown, c}
}

// Round returns the bytes to grant for a request of n bytes.
func (c *Core) Round(n device.Size) device.Size { return (n + c.quantum - 1) &^ (c.quantum - 1) }

// Need returns the size of a free chunk that has room for n bytes at a multiple of align at any
// start.
//
// Precondition: n comes from Round.
func (c *Core) Need(n, align device.Size) device.Size { return n + max(align, c.quantum) - c.quantum }

// Pad returns the bytes from an address to the next multiple of align. An align of 0 means any
// address.
func Pad(at device.Addr, align device.Size) device.Size {
	return device.Size(-at) & (max(align, 1) - 1)
}

// Serves reports whether a chunk has room for n bytes at a multiple of align.
func (c *Core) Serves(h Handle, n, align device.Size) bool {
	r := &c.Rows[h]
	return r.Size >= n && Pad(r.Addr, align) <= r.Size-n
}

// Grow reserves another region for a request of n bytes and returns the free chunk that fills it,
// which is not in the index. If that fails and the policy permits it, Grow releases the empty
// regions and tries again. On failure it records the reason and returns [alloc.ErrOutOfMemory].
func (c *Core) Grow(r *alloc.Request, n device.Size) (Handle, error) {
	h, err := c.reserve(r, n)
	if err != nil && c.release && c.pool.Empty() > 0 {
		if freed, _ := c.trim(); freed > 0 {
			h, err = c.reserve(r, n)
		}
	}
	if err != nil {
		return None, c.OutOfMemory(r, c.Round(r.Size), c.pool.Asked(), err)
	}
	return h, nil
}

// Prepare reserves another region for n bytes ahead of any request and returns the free chunk that
// fills it, which is not in the index. The region counts as empty. It returns None if the limit or
// the device refuses, which is not recorded as a refusal.
func (c *Core) Prepare(n, align device.Size) Handle {
	h, _ := c.reserve(&alloc.Request{Align: align}, n)
	return h
}

// reserve reserves a region whose start serves the request. The chunk does not include bytes beyond
// whole quanta.
func (c *Core) reserve(r *alloc.Request, n device.Size) (Handle, error) {
	h := c.Add(0, 0) // the label of the region
	got, err := c.pool.Grow(n, max(r.Align, c.quantum), int32(h))
	if err != nil {
		c.Retire(h)
		return None, err
	}
	c.Rows[h].Addr, c.Rows[h].Size = got.Addr, device.AlignDown(got.Size, c.quantum)
	return h, nil
}

// GrowDirect gets a region of its own for a request of n bytes, which counts as occupied, and
// returns the free chunk that fills it. It returns None if the limit or the device refuses.
func (c *Core) GrowDirect(r *alloc.Request, n device.Size) Handle {
	h := c.Add(0, 0)
	got, err := c.pool.GrowDirect(n, max(r.Align, c.quantum), int32(h))
	if err != nil {
		c.Retire(h)
		return None
	}
	c.Rows[h].Addr, c.Rows[h].Size = got.Addr, device.AlignDown(got.Size, c.quantum)
	return h
}

// ReleaseDirect releases the region of a chunk from GrowDirect, which is free again, and reports
// whether the chunk was retired with it. If the device refuses, the region stays, empty.
func (c *Core) ReleaseDirect(h Handle) (gone bool) {
	if c.pool.DropDirect(c.Rows[h].Addr) != nil {
		return false
	}
	c.Retire(h)
	return true
}

// Occupy counts that a free chunk, which is no longer in the index and fills its region, is about
// to be split and granted. It is called before the splits, because the chunk's neighbors show
// whether its region is empty.
//
// Precondition: Fills(h).
func (c *Core) Occupy(h Handle) {
	held, _ := c.pool.Find(c.Rows[h].Addr)
	c.pool.Occupied(held.Size)
}

// Grant makes a free chunk the block of a request. The chunk is cut to size and in no index.
func (c *Core) Grant(h Handle, r *alloc.Request) alloc.Block {
	row, chain := &c.Rows[h], None
	if !c.live.Dropped() {
		if c.live.Full() {
			c.rehash()
		}
		chain = c.live.Enter(row.Addr, h)
	}
	if row.setLive(r.Size, chain) || uint64(r.Stream)|r.Tag|uint64(r.Align) != 0 ||
		c.labels.cells != nil {
		c.annotate(h, r.Size, Label{r.Tag, r.Stream}, logOf(r.Align))
	}
	c.Stats.Granted(r.Size, row.Size)
	return alloc.Block{Addr: row.Addr, Size: row.Size, Ref: h}
}

// rehash doubles the address index.
func (c *Core) rehash() {
	for _, h := range c.live.Double() {
		for h != None {
			l := &c.Rows[h].link
			next := l.after & handleBits
			l.after = live<<stateShift | c.live.Enter(c.Rows[h].Addr, h)
			h = next
		}
	}
}

// restore adds the live chunks to the address index after it was dropped.
func (c *Core) restore() {
	c.live.Restore(c.Stats.Live)
	for h := range c.Rows {
		if r := &c.Rows[h]; r.state() == live {
			r.after = live<<stateShift | c.live.Enter(r.Addr, Handle(h))
		}
	}
}

// find returns the live chunk that starts at an address, or None.
func (c *Core) find(at device.Addr) Handle {
	if c.live.Dropped() {
		c.restore()
	}
	h := *c.live.Of(at)
	for h != None && c.Rows[h].Addr != at {
		h = c.Rows[h].after & handleBits
	}
	return h
}

// Release frees the live chunk at an address. It returns the chunk, which is in no ring and not
// joined yet, and the adjacent free chunks or None. It fails with [alloc.ErrInvalidFree] or
// [alloc.ErrClosed].
func (c *Core) Release(at device.Addr) (prev, h, next Handle, err error) {
	if c.live.Dropped() {
		c.restore()
	}
	first, rows := c.live.Of(at), c.Rows
	h = *first
	if h != None && rows[h].Addr == at {
		*first = rows[h].after & handleBits
	} else if h = c.unchain(h, at); h == None {
		return None, None, None, c.NoBlock()
	}
	c.live.Left()
	prev, next = c.free(h)
	return prev, h, next, nil
}

// free makes a live chunk, which is not in the address index, a free chunk in no ring, and returns
// the adjacent free chunks or None. It reads everything before it writes, because the compiler
// loads the bounds of the table again after each write.
func (c *Core) free(h Handle) (prev, next Handle) {
	r := &c.Rows[h]
	size, requested := r.Size, c.Requested(h)
	prev, next = c.FreeNeighbors(h)
	r.link = link{}
	c.Stats.Freed(requested, size)
	return prev, next
}

// ReleaseRef is Release of the chunk that b.Ref names. The first call drops the address index. An
// index that was restored since is updated.
func (c *Core) ReleaseRef(b alloc.Block) (prev, h, next Handle, err error) {
	h = b.Ref
	if int(h) >= len(c.Rows) || c.Rows[h].Addr != b.Addr || c.Rows[h].state() != live {
		if h == None {
			return c.Release(b.Addr)
		}
		return None, None, None, c.NoBlock()
	}
	if !c.live.Dropped() && !c.live.Drop() {
		c.unlist(h)
	}
	prev, next = c.free(h)
	return prev, h, next, nil
}

// unlist removes a live chunk from the address index.
func (c *Core) unlist(h Handle) {
	first := c.live.Of(c.Rows[h].Addr)
	if *first == h {
		*first = c.Rows[h].after & handleBits
	} else {
		c.unchain(*first, c.Rows[h].Addr)
	}
	c.live.Left()
}

// unchain removes the live chunk that starts at an address from the part of a chain after h, and
// returns it, or None.
func (c *Core) unchain(h Handle, at device.Addr) Handle {
	for h != None {
		l := &c.Rows[h].link
		if h = l.after & handleBits; h != None && c.Rows[h].Addr == at {
			l.after = live<<stateShift | c.Rows[h].after&handleBits
			return h
		}
	}
	return None
}

// Vacate counts the region of a free chunk that fills it and is in no index as empty, and reports
// whether it released the region. The chunk is retired with its region.
//
// Precondition: Fills(h).
func (c *Core) Vacate(h Handle) (gone bool) {
	at := c.Rows[h].Addr
	held, _ := c.pool.Find(at)
	if !c.pool.Vacated(held.Size) || c.pool.Drop(at) != nil {
		return false // a region that the device does not release stays empty
	}
	c.Retire(h)
	return true
}

// trim releases every region without a live block.
func (c *Core) trim() (bytes device.Size, first error) {
	for i := c.pool.Len() - 1; i >= 0; i-- {
		held := c.pool.At(i)
		h := Handle(held.Label)
		if !c.IsFree(h) || !c.IsTail(h) {
			continue
		}
		c.index.Remove(h)
		if err := c.pool.Drop(held.Addr); err != nil {
			c.index.Insert(h)
			if first == nil {
				first = err
			}
			continue
		}
		c.Retire(h)
		bytes += held.Size
	}
	return bytes, first
}
