package blaze

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/regions"
)

// none is the end of a list.
const none = -1

// block is a piece cut from a region. It is never merged, split or moved; its number is its handle.
type block struct {
	addr      device.Addr
	requested device.Size   // 0 while free
	stream    device.Stream // 0 while free
	tag       uint64        // 0 while free
	next      int32         // while free, the next in its list; none at the end
	class     uint8         // log2 of its bytes
	live      bool
}

// cut is the record of the blocks cut from one region.
type cut struct {
	base  device.Addr
	first int32 // number of its first block; the next region's first ends them
}

// Allocator is the slab allocator of Blaze. Use [New].
type Allocator struct {
	front.View
	front front.Front
	cfg   Config
	low   int         // smallest class
	align device.Size // alignment asked for regions

	lists   [64]int32     // per class the free block pushed last; none
	some    uint64        // bit k is set if list k is not empty
	left    device.Size   // bytes not yet cut from the newest region
	lost    device.Size   // bytes not cut from the regions before it, which never will be
	blocks  []block       // in the order in which they were cut
	index   index.AddrMap // from start to number
	cuts    []cut         // oldest region first
	regions regions.Set   // by address; a label is the number in cuts
}

// New returns an allocator over src, from which it takes its first region. It fails if c is
// invalid, or with the error of the device.
func New(src device.Source, c Config) (*Allocator, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	a := &Allocator{cfg: c, index: index.NewAddrMap(), low: bits.TrailingZeros64(uint64(c.MinClassBytes)),
		align: regions.Align(c.RegionBytes)}
	for k := range a.lists {
		a.lists[k] = none
	}
	a.View = a.front.Init(front.Limits{Most: c.MaxClassBytes}, func() (largest, bytes device.Size) {
		return a.LargestFree(), a.freeBytes()
	})
	a.regions = regions.NewSet(src, &a.front.Stats)
	a.front.Stats.NextRegion = c.RegionBytes
	if err := a.grow(); err != nil {
		// The catalogue adds the name of the strategy.
		return nil, fmt.Errorf("first region of %v: %w", c.RegionBytes, err)
	}
	return a, nil
}

// Alloc implements [alloc.Allocator]. It costs O(1).
func (a *Allocator) Alloc(r alloc.Request) (alloc.Block, error) {
	if a.front.Closed() {
		return alloc.Block{}, alloc.ErrClosed
	}
	if why := a.judge(r); why != power.ReasonNone {
		a.front.SetRefusal(power.Refusal{Reason: why, Request: r})
		return alloc.Block{}, alloc.ErrInvalidRequest
	}
	k := a.classFor(r.Size)
	i := a.lists[k]
	if i != none {
		a.pop(k)
	} else {
		var err error
		if i, err = a.cut(k); err != nil {
			return alloc.Block{}, a.front.OutOfMemory(&r, 0, a.cfg.RegionBytes, err)
		}
	}
	b := &a.blocks[i]
	b.requested, b.stream, b.tag, b.live = r.Size, r.Stream, r.Tag, true
	a.front.Stats.Granted(r.Size, 1<<k)
	return alloc.Block{Addr: b.addr, Size: 1 << k}, nil
}

// judge returns why a request can never be granted. A request for no bytes can be.
func (a *Allocator) judge(r alloc.Request) power.Reason {
	switch {
	case r.Size > a.cfg.MaxClassBytes:
		return power.ReasonTooLarge
	case r.Align != 0 && (!device.IsPowerOfTwo(r.Align) || r.Align > a.quantum()):
		return power.ReasonAlignment
	}
	return power.ReasonNone
}

// quantum returns the alignment of every block: a block starts where the one before ended.
func (a *Allocator) quantum() device.Size { return min(a.cfg.MinClassBytes, a.align) }

// classFor returns log2 of the rounded size of a request. No bytes count as one.
func (a *Allocator) classFor(size device.Size) int {
	return max(a.low, bits.Len64(uint64(max(size, 1)-1)))
}

// pop removes the block pushed last from list k, which is not empty.
func (a *Allocator) pop(k int) {
	a.lists[k] = a.blocks[a.lists[k]].next
	if a.lists[k] == none {
		a.some &^= 1 << k
	}
}

// cut cuts a block of class k from the newest region. If too little is left, the rest is lost and a
// region is reserved. On error nothing has changed.
func (a *Allocator) cut(k int) (int32, error) {
	if len(a.blocks) == math.MaxInt32 {
		return none, regions.ErrTooMany
	}
	if a.left < 1<<k {
		if err := a.grow(); err != nil {
			return none, err
		}
	}
	i := int32(len(a.blocks))
	at := a.cuts[len(a.cuts)-1].base.Add(a.cfg.RegionBytes - a.left)
	a.blocks = append(a.blocks, block{addr: at, class: uint8(k)})
	a.index.Put(at, uint32(i)+1, a.addrOf)
	a.left -= 1 << k
	return i, nil
}

// grow reserves a region. The original retires the old one first, and when the device refuses
// grants live memory again; here the device answers first.
func (a *Allocator) grow() error {
	r, err := a.regions.Reserve(a.cfg.RegionBytes, a.align, int32(len(a.cuts)))
	if err != nil {
		return err
	}
	a.lost += a.left
	a.left = a.cfg.RegionBytes
	a.cuts = append(a.cuts, cut{base: r.Addr, first: int32(len(a.blocks))})
	return nil
}

func (a *Allocator) addrOf(name uint32) device.Addr { return a.blocks[name-1].addr }

// Free implements [alloc.Allocator]. It costs O(1).
func (a *Allocator) Free(p device.Addr) error {
	if a.front.Closed() {
		return alloc.ErrClosed
	}
	name := a.index.Get(p, a.addrOf)
	if name == index.NoHandle || !a.blocks[name-1].live {
		return alloc.ErrInvalidFree
	}
	i := name - 1
	b := &a.blocks[i]
	a.front.Stats.Freed(b.requested, 1<<b.class)
	b.requested, b.stream, b.tag, b.live = 0, 0, 0, false
	b.next = a.lists[b.class]
	a.lists[b.class] = int32(i)
	a.some |= 1 << b.class
	return nil
}

// Close implements [alloc.Strategy]. Regions are released oldest first. Walk yields a region that
// the device refuses as one chunk of slack.
func (a *Allocator) Close() error {
	a.front.Close()
	a.blocks, a.cuts, a.index, a.some, a.left, a.lost = nil, nil, index.NewAddrMap(), 0, 0, 0
	return a.regions.ReleaseAll()
}
