package bestfit

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/tiles"
)

// Allocator is a best fit. Use [New]; it is not safe for concurrent use.
type Allocator struct {
	tiles.View
	core  tiles.Core
	free  freeIndex
	cfg   Config
	slack uint8 // a block for n bytes may exceed them by n >> slack
}

var _ alloc.Strategy = (*Allocator)(nil)

// New returns an allocator over src that holds nothing yet. It fails if c is invalid.
func New(src device.Source, c Config) (*Allocator, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	a := &Allocator{cfg: c, slack: c.slack()}
	a.free = freeIndex{
		core: &a.core, apart: c.Tail == TailLast, looks: c.Looks, spread: device.Size(c.Spread),
		holes: index.NewSizeMap(c.Quantum), tails: index.NewSizeMap(c.Quantum), places: tiles.Places{Core: &a.core},
	}
	a.View = a.core.Init("bestfit", src, c.policy(), c.Promises(), &a.free)
	return a, nil
}

// Config returns the configuration with every default filled in.
func (a *Allocator) Config() Config { return a.cfg }

// Alloc implements [alloc.Allocator]. It costs O(looks), and for an alignment above the
// quantum O(chunks that are large enough but misplaced).
func (a *Allocator) Alloc(r alloc.Request) (alloc.Block, error) {
	c, x := &a.core, &a.free
	if !c.Accepts(&r) {
		err := c.Refuse(&r)
		return alloc.Block{}, err
	}
	n := c.Round(r.Size)
	h := x.take(n, r.Align)
	if h == tiles.None {
		var err error
		if h, err = c.Grow(&r, n); err != nil {
			return alloc.Block{}, err
		}
	}
	if c.Fills(h) {
		c.Occupy(h)
	}
	if pad := tiles.Pad(c.Rows[h].Addr, r.Align); pad != 0 {
		rest := c.Split(h, pad)
		x.Insert(h)
		h = rest
	}
	if c.Rows[h].Size > n+n>>(a.slack&63) {
		x.Insert(c.Split(h, n))
	}
	b := c.Grant(h, &r)
	return b, nil
}

// Free implements [alloc.Allocator]. It costs O(1), amortized O(log chunks of one size).
func (a *Allocator) Free(at device.Addr) error {
	c := &a.core
	prev, h, next, err := c.Release(at)
	if err == nil {
		a.settle(prev, h, next)
	}
	return err
}

func (a *Allocator) FreeRef(b alloc.Block) error {
	prev, h, next, err := a.core.ReleaseRef(b)
	if err == nil {
		a.settle(prev, h, next)
	}
	return err
}

// settle coalesces a freed chunk and enters it into the index. One neighbor on each side is enough,
// because no two adjacent chunks are free by invariant K2.
func (a *Allocator) settle(prev, h, next tiles.Handle) {
	c := &a.core
	if next != tiles.None {
		a.free.Remove(next)
	}
	if prev != tiles.None {
		a.free.Remove(prev)
	}
	if prev|next != tiles.None { // most freed chunks have no free neighbor
		h = c.Join(prev, h, next)
	}
	if c.Fills(h) && c.Vacate(h) {
		return
	}
	a.free.Insert(h)
}
