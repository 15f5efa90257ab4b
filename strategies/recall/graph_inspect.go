package recall

import (
	"cmp"
	"errors"
	"reflect"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/index"
)

var (
	_ power.Holes      = (*graph)(nil)
	_ power.FreeWalker = (*graph)(nil)
	_ power.Trimmer    = (*graph)(nil)
	_ power.Metered    = (*graph)(nil)
	_ power.Locator    = (*graph)(nil)
	_ power.Spanned    = (*graph)(nil)
)

// holes returns the size of the largest free chunk and the sum of all.
func (g *graph) holes() (largest, bytes device.Size) {
	bytes = g.shared.Stats.Reserved - g.shared.Stats.Active
	for _, p := range g.pools {
		bytes -= p.stuck()
	}
	return g.LargestFree(), bytes
}

// LargestFree implements [power.Holes]. O(chunks of alias windows).
func (g *graph) LargestFree() (largest device.Size) {
	for _, p := range g.pools {
		largest = max(largest, p.LargestFree())
	}
	return largest
}

// Walk implements [alloc.Inspector]. The windows of all pools are yielded by address.
func (g *graph) Walk(yield func(alloc.Chunk) bool) {
	var id alloc.PoolID
	named := func(c alloc.Chunk) bool {
		c.Pool = id
		return yield(c)
	}
	for p, i := g.above(0); p != nil; p, i = g.above(p.windows[i].addr) {
		if id = p.id; !p.walkWindow(i, named) {
			return
		}
	}
}

// above returns the lowest window above an address, and its pool or nil.
func (g *graph) above(at device.Addr) (of *pool, window int32) {
	for _, p := range g.pools {
		k, _ := slices.BinarySearchFunc(p.order, at+1, func(i int32, at device.Addr) int {
			return cmp.Compare(p.windows[i].addr, at)
		})
		if k == len(p.order) {
			continue
		}
		if i := p.order[k]; of == nil || p.windows[i].addr < of.windows[window].addr {
			of, window = p, i
		}
	}
	return of, window
}

// WalkFree implements [power.FreeWalker]: pool by pool, each in its order.
func (g *graph) WalkFree(yield func(alloc.Chunk) bool) {
	more := true
	for _, p := range g.pools {
		p.WalkFree(func(c alloc.Chunk) bool {
			c.Pool = p.id
			more = yield(c)
			return more
		})
		if !more {
			return
		}
	}
}

// BlockAt implements [power.Locator]. O(pools).
func (g *graph) BlockAt(at device.Addr) (alloc.Chunk, error) {
	p := g.holder(at)
	if p == nil {
		return alloc.Chunk{}, g.shared.NoBlock()
	}
	c, err := p.BlockAt(at)
	c.Pool = p.id
	return c, err
}

// poolBytes is the fixed size of a pool.
var poolBytes = device.Size(reflect.TypeFor[pool]().Size() + reflect.TypeFor[pages]().Size())

// MetadataBytes implements [power.Metered]. O(windows + handles).
func (g *graph) MetadataBytes() device.Size {
	n := index.BytesOf(g.pools) + index.BytesOf(g.redirections)
	for _, p := range g.pools {
		n += p.MetadataBytes() + poolBytes
	}
	return n
}

// CapacitySpan implements [power.Spanned].
func (g *graph) CapacitySpan() device.Span { return g.shared.span }

// Trim implements [power.Trimmer]. It releases the idle memory of pools without users, and nothing
// while requests are redirected.
func (g *graph) Trim() (device.Size, error) {
	if g.shared.Closed() {
		return 0, alloc.ErrClosed
	}
	before := g.shared.Stats.Reserved
	err := g.trim(nil)
	return before - g.shared.Stats.Reserved, err
}

// Close implements [alloc.Strategy]. Walk shows memory that the device does not take back as slack.
func (g *graph) Close() error {
	g.shared.Front.Close()
	g.redirections = nil
	var all []error
	for _, p := range g.pools {
		p.users = 0
		all = append(all, p.empty())
	}
	g.settle()
	return errors.Join(all...)
}

// Check implements [alloc.Inspector]. It recounts everything.
func (g *graph) Check() error {
	for i, p := range g.pools {
		if err := p.recount(); err != nil {
			return err
		}
		if (p.id == 0) != (i == 0) || i > 0 && p.id <= g.pools[i-1].id || g.spent(p) || p.pinned != g.pins(p) {
			return broken("T10", "pool %d of %d has number %d, %d users, %d bytes, and is pinned: %t", i, len(g.pools),
				uint64(p.id), p.users, uint64(p.held), p.pinned)
		}
	}
	if err := front.CompareStats(g.shared.Stats, g.Walk); err != nil {
		return broken("T8", "%v", err)
	}
	return nil
}
