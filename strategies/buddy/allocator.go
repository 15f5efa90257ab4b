package buddy

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/strategies/internal/blocks"
)

// Allocator is the buddy allocator: a buddy engine with a table of the live
// blocks. Use [New].
type Allocator struct {
	front.View
	front  front.Front
	blocks blocks.Engine
	live   front.Ledger // live blocks; a place is not used
}

// New returns an allocator over src that holds nothing yet. It fails if c is invalid.
func New(src device.Source, c Config) (*Allocator, error) {
	a := new(Allocator)
	var err error
	if a.blocks, err = blocks.New(src, &a.front.Stats, blocks.Config(c)); err != nil {
		return nil, err
	}
	a.View = a.front.Init(front.Limits{Most: blocks.MostRequest, Align: blocks.MostAlign},
		func() (largest, bytes device.Size) {
			return a.blocks.LargestFree(), a.blocks.FreeBytes()
		})
	return a, nil
}

// Alloc implements [alloc.Allocator]. Its cost does not depend on the number of regions.
func (a *Allocator) Alloc(r alloc.Request) (b alloc.Block, err error) {
	if !a.front.Accepts(&r) {
		return b, a.front.Refuse(&r)
	}
	if b.Addr, b.Size, _, err = a.blocks.Grab(r.Size, r.Align, r.Hint); err != nil {
		return b, a.front.OutOfMemory(&r, 0, a.blocks.Asked(), err)
	}
	a.live.Add(b.Addr, front.LiveBlock{Requested: r.Size, Stream: r.Stream, Tag: r.Tag})
	a.front.Stats.Granted(r.Size, b.Size)
	return b, nil
}

// Free implements [alloc.Allocator]. Its cost does not depend on the number of regions.
func (a *Allocator) Free(p device.Addr) error {
	if a.front.Closed() {
		return alloc.ErrClosed
	}
	place, _ := a.blocks.PlaceOf(p) // independent of the lookup in the table, so that the CPU can overlap both
	l, ok := a.live.Take(p)
	if !ok {
		return alloc.ErrInvalidFree
	}
	granted := a.blocks.Return(p, l.Requested, place)
	a.front.Stats.Freed(l.Requested, granted)
	return nil
}

func (a *Allocator) Trim() (device.Size, error) {
	if a.front.Closed() {
		return 0, alloc.ErrClosed
	}
	return a.blocks.Trim()
}

// Close implements [alloc.Strategy]. Regions are released oldest first. Walk yields a region that
// the device refuses as one chunk of slack.
func (a *Allocator) Close() error {
	a.front.Close()
	a.live = front.Ledger{}
	return a.blocks.ReleaseAll()
}
