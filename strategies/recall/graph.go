package recall

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
)

// graph is an allocator over virtual memory with private pools. Each pool is an allocator of its
// own; they share the device, the limit and the statistics.
type graph struct {
	front.View
	shared       account
	cfg          Config
	vm           device.VirtualMemory
	pools        []*pool // by id; the first is the default one
	redirections []redirection
}

// pool is the default pool or a private one.
type pool struct {
	*pages
	id    alloc.PoolID
	users int // begun and not released
}

// redirection sends the requests of a stream, or of all streams, to a pool.
type redirection struct {
	pool   *pool
	stream device.Stream
}

var (
	_ alloc.Strategy     = (*graph)(nil)
	_ power.PrivatePools = (*graph)(nil)
)

// newGraph is [New] for a valid configuration of a graph.
func newGraph(vm device.VirtualMemory, c Config) *graph {
	g := &graph{cfg: c, vm: vm}
	g.pools = []*pool{{pages: newPool(vm, c, &g.shared)}}
	g.shared.reclaim = g.reclaim
	g.View = g.shared.open(c, g.holes)
	return g
}

// Alloc implements [alloc.Allocator]. The package comment states its cost.
func (g *graph) Alloc(r alloc.Request) (alloc.Block, error) { return g.poolOf(r.Stream).Alloc(r) }

// poolOf returns the pool that requests of a stream go to. The first redirection decides.
func (g *graph) poolOf(s device.Stream) *pool {
	for _, r := range g.redirections {
		if r.stream == s || r.stream == power.AllStreams {
			return r.pool
		}
	}
	return g.pools[0]
}

// Free implements [alloc.Allocator]. It costs O(pools) more than in a pool of its own.
func (g *graph) Free(at device.Addr) error {
	if p := g.holder(at); p != nil {
		return p.Free(at)
	}
	return g.shared.NoBlock()
}

// holder returns the pool with the live block that starts at an address, or nil.
func (g *graph) holder(at device.Addr) *pool {
	for _, p := range g.pools {
		if _, ok := p.live.Get(at); ok {
			return p
		}
	}
	return nil
}

// find returns the index of a pool, or the index to insert it, and whether it exists.
func (g *graph) find(id alloc.PoolID) (i int, found bool) {
	return slices.BinarySearchFunc(g.pools, id, func(p *pool, id alloc.PoolID) int { return cmp.Compare(p.id, id) })
}

// BeginPool implements [power.PrivatePools].
func (g *graph) BeginPool(id alloc.PoolID, s device.Stream) error {
	switch {
	case g.shared.Closed():
		return alloc.ErrClosed
	case id == 0:
		return alloc.ErrInvalidPool
	}
	i, found := g.find(id)
	if !found {
		g.pools = slices.Insert(g.pools, i, &pool{pages: newPool(g.vm, g.cfg, &g.shared), id: id})
	}
	g.pools[i].users++
	g.redirections = append(g.redirections, redirection{g.pools[i], s})
	g.settle()
	return nil
}

// EndPool implements [power.PrivatePools].
func (g *graph) EndPool(id alloc.PoolID) error {
	if g.shared.Closed() {
		return alloc.ErrClosed
	}
	i := slices.IndexFunc(g.redirections, func(r redirection) bool { return r.pool.id == id })
	if i < 0 {
		return alloc.ErrInvalidPool
	}
	g.redirections = slices.Delete(g.redirections, i, i+1)
	g.settle()
	return nil
}

// ReleasePool implements [power.PrivatePools]. The memory of a pool without users is released by
// the next [graph.Trim], or when a request finds no memory.
func (g *graph) ReleasePool(id alloc.PoolID) error {
	if g.shared.Closed() {
		return alloc.ErrClosed
	}
	i, found := g.find(id)
	if !found || g.pools[i].users == 0 {
		return alloc.ErrInvalidPool
	}
	g.pools[i].users--
	g.settle()
	return nil
}

// settle removes the private pools that are of no use, and pins the others as Invariant T10 states.
func (g *graph) settle() {
	g.pools = slices.DeleteFunc(g.pools, g.spent)
	for _, p := range g.pools {
		p.pinned = g.pins(p)
	}
}

// spent reports whether a private pool has neither users nor memory, and no requests are redirected
// into it.
func (g *graph) spent(p *pool) bool {
	into := slices.ContainsFunc(g.redirections, func(r redirection) bool { return r.pool == p })
	return p.id != 0 && p.users == 0 && !into && p.held == 0 && len(p.order) == 0
}

// pins reports whether the mappings of a pool stay: graphs may use them, or one is being captured.
func (g *graph) pins(p *pool) bool { return p.users > 0 || len(g.redirections) > 0 }

// reclaim releases the idle memory of the other pools that are not pinned, and reports whether
// there was any.
func (g *graph) reclaim(of *pages) bool {
	before := g.shared.held()
	_ = g.trim(of) // memory that the device keeps stays idle
	return g.shared.held() < before
}

// trim releases the idle memory of all pools but one that are not pinned. It returns the first
// error.
func (g *graph) trim(except *pages) (first error) {
	for _, p := range g.pools {
		if p.pages != except && !p.pinned {
			first = cmp.Or(first, p.trim())
		}
	}
	g.settle()
	return first
}
