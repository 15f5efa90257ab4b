package tlsf

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/planted"
	"github.com/vramyard/vramyard/internal/tiles"
)

// Allocator is a two-level segregated fit. Use [New]; it is not safe for concurrent use.
type Allocator struct {
	tiles.View
	core tiles.Core
	free index
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
	a.View = tiles.ViewOf(&a.core)
	a.free = index{
		lists: lists{scale: c.scale(), core: &a.core, order: orders[c.List]},
		apart: c.Tail == TailLast, exhaustive: c.Exhaustive, scan: c.Scan,
	}
	a.core.Init("tlsf", src, c.policy(), &a.free)
	return a, nil
}

// Config returns the configuration with every default filled in.
func (a *Allocator) Config() Config { return a.cfg }

// Alloc implements [alloc.Allocator]. It costs O(1), see the package comment for when not.
func (a *Allocator) Alloc(r alloc.Request) (b alloc.Block, err error) {
	c := &a.core
	c.Enter()
	n, err := c.Judge(&r)
	if err == nil {
		b, err = a.alloc(&r, n)
	}
	c.Leave()
	return b, err
}

// alloc grants a request n bytes.
func (a *Allocator) alloc(r *alloc.Request, n device.Size) (alloc.Block, error) {
	c := &a.core
	h := a.free.take(n, r.Align)
	if h == tiles.None {
		var err error
		if h, err = c.Grow(r, n); err != nil {
			return alloc.Block{}, err
		}
	}
	c.Claim(h)
	if pad := tiles.Pad(c.Rows[h].Addr, r.Align); pad != 0 {
		rest := c.Split(h, pad)
		a.free.Insert(h)
		h = rest
	}
	if size := c.Rows[h].Size; size > n && !(planted.Enabled && planted.Is("tlsf/keeps-a-quantum") && size == n+a.cfg.Quantum) {
		a.free.Insert(c.Split(h, n))
	}
	return c.Grant(h, r), nil
}

// Free implements [alloc.Allocator]. It costs O(1), see the package comment for when not.
func (a *Allocator) Free(at device.Addr) error {
	c := &a.core
	c.Enter()
	h, err := c.Release(at)
	if err == nil {
		a.settle(h)
	}
	c.Leave()
	return err
}

// missed returns the neighbours that the planted bugs leave.
func missed(prev, next tiles.Handle) (_, _ tiles.Handle) {
	if planted.Is("tlsf/misses-left") {
		prev = tiles.None
	}
	if planted.Is("tlsf/misses-right") {
		next = tiles.None
	}
	return prev, next
}

// settle enters a chunk that was freed into the index, merged with what is free on either
// side: one neighbour each is enough, because no two neighbours are free by invariant K2.
func (a *Allocator) settle(h tiles.Handle) {
	c := &a.core
	prev, next := c.FreeNeighbors(h)
	if planted.Enabled {
		prev, next = missed(prev, next)
	}
	x := &a.free
	switch {
	case x.apart && c.IsTail(next): // or None
		x.Remove(next)
	case c.Unlink(next):
		x.unmark(next)
	}
	if c.Unlink(prev) { // which is no tail, because h lies behind it
		x.unmark(prev)
	}
	h = c.Join(prev, h, next)
	if c.Fills(h) && c.Vacate(h) {
		return
	}
	x.Insert(h)
}
