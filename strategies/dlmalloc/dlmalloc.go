package dlmalloc

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/tiles"
)

// Allocator is a dlmalloc. Use [New]; it is not safe for concurrent use.
type Allocator struct {
	tiles.View
	core   tiles.Core
	free   freeIndex
	cfg    Config
	direct tiles.Column[bool] // of live blocks from DirectBytes on: the block has a region of its own
}

var _ alloc.Strategy = (*Allocator)(nil)

// New returns an allocator over src that holds nothing yet. It fails if c is invalid.
func New(src device.Source, c Config) (*Allocator, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	a := &Allocator{cfg: c}
	a.free = freeIndex{trees: trees{scale: c.scale(), core: &a.core}, near: 1<<c.MinChunk - 1}
	a.View = a.core.Init("dlmalloc", src, c.policy(), c.Promises(), &a.free)
	for i := range a.free.small {
		a.free.small[i] = a.core.Anchor()
	}
	return a, nil
}

// Config returns the configuration with every default filled in.
func (a *Allocator) Config() Config { return a.cfg }

// Alloc implements [alloc.Allocator]. It costs O(bits of a size).
func (a *Allocator) Alloc(r alloc.Request) (alloc.Block, error) {
	c, x := &a.core, &a.free
	if !c.Accepts(&r) {
		err := c.Refuse(&r)
		return alloc.Block{}, err
	}
	n := c.Round(r.Size)
	h, victim := x.take(c.Need(n, r.Align))
	direct := false
	if h == tiles.None {
		var err error
		if h, direct, err = a.grow(&r, n); err != nil {
			return alloc.Block{}, err
		}
	}
	if !direct {
		if c.Fills(h) {
			c.Occupy(h)
		}
		h = a.cut(h, n, r.Align, victim)
	}
	if a.isLarge(h) {
		a.direct.Set(h, direct, len(c.Rows))
	}
	b := c.Grant(h, &r)
	return b, nil
}

// grow gets memory from the device: a region of its own for a request from DirectBytes on, else a
// region whose end becomes top.
func (a *Allocator) grow(r *alloc.Request, n device.Size) (h tiles.Handle, direct bool, err error) {
	if a.cfg.DirectBytes != 0 && n >= a.cfg.DirectBytes {
		if h := a.core.GrowDirect(r, n); h != tiles.None {
			return h, true, nil
		}
	}
	if h, err = a.core.Grow(r, n); err == nil {
		a.free.activate(h)
	}
	return h, false, err
}

// cut splits a chunk for n bytes, of which it returns the chunk to grant. The memory before an
// aligned place goes to its bin. The remainder becomes dv if victim is set; at the end of the
// active region it is top, of any size.
func (a *Allocator) cut(h tiles.Handle, n, align device.Size, victim bool) tiles.Handle {
	c, x := &a.core, &a.free
	if pad := tiles.Pad(c.Rows[h].Addr, align); pad != 0 {
		rest := c.Split(h, pad)
		x.Insert(h)
		h = rest
	}
	least := device.Size(a.cfg.MinChunk) * a.cfg.Quantum
	switch rest := c.Rows[h].Size - n; {
	case rest == 0 || rest < least && !x.isTop(h):
	case victim:
		x.replaceVictim(c.Split(h, n))
	default:
		x.Insert(c.Split(h, n))
	}
	return h
}

// isLarge reports whether a chunk may have a region of its own.
func (a *Allocator) isLarge(h tiles.Handle) bool {
	return a.cfg.DirectBytes != 0 && a.core.Rows[h].Size >= a.cfg.DirectBytes
}

// Free implements [alloc.Allocator]. It costs O(bits of a size).
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

// settle coalesces a freed chunk and makes it top, dv, or a chunk of its bin. One neighbor on each
// side is enough, because no two adjacent chunks are free by invariant K2.
func (a *Allocator) settle(prev, h, next tiles.Handle) {
	c, x := &a.core, &a.free
	if a.isLarge(h) && c.Fills(h) && a.direct.Get(h) {
		if !c.ReleaseDirect(h) {
			x.Insert(h)
		}
		return
	}
	victim := x.dv != tiles.None && (prev == x.dv || next == x.dv)
	if prev != tiles.None {
		x.Remove(prev)
	}
	if next != tiles.None {
		x.Remove(next)
	}
	h = c.Join(prev, h, next)
	switch {
	case c.Fills(h) && c.Vacate(h):
	case victim && !x.isTop(h):
		x.dv = h
	default:
		x.Insert(h)
	}
}
