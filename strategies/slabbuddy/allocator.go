package slabbuddy

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/strategies/internal/blocks"
	"github.com/vramyard/vramyard/strategies/internal/cells"
)

// The owners that Walk shows: the part of the allocator that a region belongs to.
const (
	OwnerSlab   uint8 = 1 // the slab part
	OwnerBuddy  uint8 = 2 // the buddy part
	OwnerDirect uint8 = 3 // one block, straight from the device
)

// Allocator is the slab-buddy allocator: a buddy over one pool of regions, and slabs that are
// blocks of the buddy. Use [New].
type Allocator struct {
	front.View
	front  front.Front
	live   front.Ledger // live blocks of the buddy
	cells  *cells.Engine
	blocks blocks.Engine
	pieces pieces
	source *watched
	order  []int32 // of Walk: slabs by address
}

// New returns an allocator over src that holds nothing yet. It fails if c is invalid.
func New(src device.Source, c Config) (*Allocator, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	a := &Allocator{source: &watched{Source: src}}
	a.View = a.front.Init(front.Limits{Most: mostRequest}, func() (largest, bytes device.Size) {
		return a.LargestFree(), a.freeBytes()
	})
	if a.blocks, err = blocks.New(a.source, &a.front.Stats, c.blocks()); err != nil {
		return nil, fmt.Errorf("slabbuddy: %w", err)
	}
	config := c.cells()
	a.pieces = pieces{blocks: &a.blocks}
	for _, k := range config.Classes {
		a.pieces.sizes = append(a.pieces.sizes, k.Slab)
	}
	if a.cells, err = cells.New(&a.pieces, config); err != nil {
		return nil, fmt.Errorf("slabbuddy: %w", err)
	}
	return a, nil
}

// watched is a device that remembers the first refused release for Trim, because the buddy does not
// report its own.
type watched struct {
	device.Source
	refused error
}

func (w *watched) Release(a device.Addr) error {
	err := w.Source.Release(a)
	if err != nil && w.refused == nil {
		w.refused = err
	}
	return err
}

// pieces gives blocks of the buddy to the cells, for slabs. It is their [cells.Parent].
type pieces struct {
	blocks *blocks.Engine
	sizes  []device.Size // of a slab, per class
	places []uint32      // of the block of each slab, by its number, plus one; 0 for none
	short  shortage      // last refusal of the device
}

// shortage is why there was no memory.
type shortage struct {
	err   error       // the device's, or that the limit leaves no room
	asked device.Size // bytes of the last reservation tried
}

func (p *pieces) Take(class int, number int32, more bool) (cells.Piece, bool) {
	n := p.sizes[class]
	addr, _, place, ok := p.blocks.GrabHeld(n, 0, alloc.HintNone)
	if !ok && more {
		var err error
		addr, _, place, err = p.blocks.GrabNew(n, 0, alloc.HintNone)
		if ok = err == nil; !ok {
			p.short = shortage{err, p.blocks.Asked()}
		}
	}
	if !ok {
		return cells.Piece{}, false
	}
	for int(number) >= len(p.places) { // numbers have gaps
		p.places = append(p.places, 0)
	}
	p.places[number] = uint32(place) + 1
	return cells.Piece{Addr: addr, Handle: uint32(number)}, true
}

func (p *pieces) Give(class int, piece cells.Piece) {
	place := p.placeOf(piece)
	p.places[piece.Handle] = 0
	p.blocks.Return(piece.Addr, p.sizes[class], place)
}

func (p *pieces) placeOf(piece cells.Piece) uint64 { return uint64(p.places[piece.Handle] - 1) }

// Alloc implements [alloc.Allocator]. It costs O(1) for a slot, and what [blocks.Engine]
// costs for a block; neither depends on how many regions or slabs there are.
func (a *Allocator) Alloc(r alloc.Request) (alloc.Block, error) {
	if a.front.Closed() {
		return alloc.Block{}, alloc.ErrClosed
	}
	class, small := a.cells.ClassOf(r.Size)
	if r.Align != 0 || r.Size-1 >= mostRequest { // rare, so most requests avoid the copy for Judge
		if a.blocks.Judge(&r) != power.ReasonNone {
			return alloc.Block{}, a.front.Refuse(&r)
		}
		class, small = a.cells.ClassFor(r.Size, r.Align)
	}
	if small {
		if p, ok := a.cells.Grab(class, 0, &r, true); ok {
			return a.grantSlot(p, class, r.Size), nil
		}
		return a.allocShort(&r, class, true)
	}
	var b alloc.Block
	var ok bool
	if b.Addr, b.Size, _, ok = a.blocks.GrabHeld(r.Size, r.Align, r.Hint); !ok {
		return a.allocShort(&r, class, false)
	}
	a.grantBlock(b, &r)
	return b, nil
}

func (a *Allocator) grantSlot(p device.Addr, class int, requested device.Size) alloc.Block {
	b := alloc.Block{Addr: p, Size: a.cells.Slot(class)}
	a.front.Stats.Granted(requested, b.Size)
	return b
}

func (a *Allocator) grantBlock(b alloc.Block, r *alloc.Request) {
	a.live.Add(b.Addr, front.LiveBlock{Requested: r.Size, Stream: r.Stream, Tag: r.Tag})
	a.front.Stats.Granted(r.Size, b.Size)
}

// Free implements [alloc.Allocator]. It costs O(1) for a slot, and a step for each merge for a
// block. The slabs recognize an address without a table, so they are first.
func (a *Allocator) Free(p device.Addr) error {
	if a.front.Closed() {
		return alloc.ErrClosed
	}
	requested, granted, ok := a.cells.Return(p)
	if !ok {
		place, _ := a.blocks.PlaceOf(p) // independent of the lookup in the table, so that the CPU can overlap both
		l, ok := a.live.Take(p)
		if !ok {
			return alloc.ErrInvalidFree
		}
		requested, granted = l.Requested, a.blocks.Return(p, l.Requested, place)
	}
	a.front.Stats.Freed(requested, granted)
	return nil
}

// Trim implements [power.Trimmer]. It empties the magazines, makes slabs without a used slot blocks
// of the buddy, and releases regions without a live block.
func (a *Allocator) Trim() (device.Size, error) {
	if a.front.Closed() {
		return 0, alloc.ErrClosed
	}
	before := a.front.Stats.Reserved
	a.source.refused = nil
	a.cells.Drain()
	a.cells.Shed() // this may release regions, which the device may refuse
	_, _ = a.blocks.Trim()
	return before - a.front.Stats.Reserved, a.source.refused
}

// Close implements [alloc.Strategy]. Regions are released oldest first. Walk yields a region that
// the device refuses as one chunk of slack.
func (a *Allocator) Close() error {
	a.front.Close()
	a.cells, a.live, a.pieces.places, a.order = nil, front.Ledger{}, nil, nil
	return a.blocks.ReleaseAll()
}
