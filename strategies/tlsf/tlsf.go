package tlsf

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/tiles"
)

// Allocator is a two-level segregated fit. Use [New]; it is not safe for concurrent use.
type Allocator struct {
	tiles.View
	core tiles.Core
	free freeIndex
	cfg  Config
}

var _ alloc.Strategy = (*Allocator)(nil)

// New returns an allocator over src that holds nothing yet. It fails if c is invalid.
func New(src device.Source, c Config) (*Allocator, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	a := &Allocator{cfg: c}
	a.free = freeIndex{
		lists: lists{scale: c.scale(), core: &a.core, order: orders[c.List]},
		apart: c.Tail == TailLast, exhaustive: c.Exhaustive, scan: c.Scan,
		tails: index.NewSizeMap(c.Quantum),
	}
	a.View = a.core.Init("tlsf", src, c.policy(), c.Promises(), &a.free)
	return a, nil
}

// Config returns the configuration with every default filled in.
func (a *Allocator) Config() Config { return a.cfg }

// Alloc implements [alloc.Allocator]. It costs O(1); the package comment lists the exceptions.
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
	if c.Rows[h].Size > n {
		x.Insert(c.Split(h, n))
	}
	b := c.Grant(h, &r)
	return b, nil
}

// Free implements [alloc.Allocator]. It costs O(1); the package comment lists the exceptions.
func (a *Allocator) Free(at device.Addr) error {
	prev, h, next, err := a.core.Release(at)
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
	c, x := &a.core, &a.free
	if x.apart && c.IsTail(next) { // or None
		x.Remove(next)
	} else if c.Unlink(next) {
		x.unmark(next)
	}
	if c.Unlink(prev) { // prev is no tail, because h follows it
		x.unmark(prev)
	}
	if h = c.Join(prev, h, next); !c.Fills(h) || !c.Vacate(h) {
		x.Insert(h)
	}
}
