package buddy

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/regions"
)

// Bitmaps is the buddy allocator: [Blocks] with a table of the live
// blocks. Use [New].
type Bitmaps struct {
	closed  bool
	blocks  Blocks
	live    front.Ledger // live blocks; a place is that of Blocks
	stats   alloc.Stats
	refusal alloc.Refusal
}

// New returns an allocator over src that holds nothing yet. It fails if c is invalid.
func New(src device.Source, c Config) (*Bitmaps, error) {
	a := new(Bitmaps)
	var err error
	if a.blocks, err = NewBlocks(src, &a.stats, c); err != nil {
		return nil, err
	}
	return a, nil
}

// Alloc implements [alloc.Allocator]. Its cost does not depend on the number of regions.
func (a *Bitmaps) Alloc(r alloc.Request) (b alloc.Block, err error) {
	if err = a.judge(&r); err == nil {
		if b.Addr, b.Size, _, err = a.blocks.Grab(r.Size, r.Align, r.Hint); err == nil {
			a.live.Add(b.Addr, front.LiveBlock{Requested: r.Size, Stream: r.Stream, Tag: r.Tag})
			a.stats.Granted(r.Size, b.Size)
		} else {
			err = a.outOfMemory(&r, err)
		}
	}
	return b, err
}

// judge returns why a request is refused whatever the state, nil if it is not.
func (a *Bitmaps) judge(r *alloc.Request) error {
	if a.closed {
		return alloc.ErrClosed
	}
	if r.Align != 0 || r.Size-1 >= mostRequest { // which most are not
		return a.judgeRare(r)
	}
	return nil
}

// judgeRare is judge for a request with an alignment, for nothing or for too much.
func (a *Bitmaps) judgeRare(r *alloc.Request) error {
	why := a.blocks.Judge(r)
	if why == alloc.ReasonNone {
		return nil
	}
	a.refuse(r, why)
	return alloc.ErrInvalidRequest
}

// outOfMemory records a request for which there was no memory: err is why.
func (a *Bitmaps) outOfMemory(r *alloc.Request, err error) error {
	a.stats.OOMs++
	a.refuse(r, alloc.ReasonNone)
	regions.Explain(&a.refusal, a.blocks.Asked(), err)
	return alloc.ErrOutOfMemory
}

// Free implements [alloc.Allocator]. Its cost does not depend on the number of regions.
func (a *Bitmaps) Free(p device.Addr) error {
	if a.closed {
		return alloc.ErrClosed
	}
	place, _ := a.blocks.PlaceOf(p) // which does not wait for the table
	l, ok := a.live.Take(p)
	if !ok {
		return alloc.ErrInvalidFree
	}
	granted := a.blocks.Return(p, l.Requested, place)
	a.stats.Freed(l.Requested, granted)
	return nil
}

// Trim implements [alloc.Trimmer].
func (a *Bitmaps) Trim() (device.Size, error) {
	if a.closed {
		return 0, alloc.ErrClosed
	}
	return a.blocks.Trim()
}

// Close implements [alloc.Strategy]. Regions go back oldest first. Of what the device
// refuses to take back, Walk yields each region as one chunk of slack.
func (a *Bitmaps) Close() error {
	a.closed, a.live = true, front.Ledger{}
	a.stats.Emptied()
	return a.blocks.ReleaseAll()
}

// refuse records a refused request. Nothing is built: why is all that is known of it.
func (a *Bitmaps) refuse(r *alloc.Request, why alloc.Reason) {
	a.refusal = alloc.Refusal{Reason: why, Request: *r, LargestHole: a.blocks.LargestFree(), Free: a.blocks.FreeBytes()}
}
