package caching

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// shelf holds the blocks of one pool, size kind and stream. A block never changes its shelf.
type shelf struct {
	id        uint32 // index in Allocator.shelves
	kind      uint32 // small or large
	stream    device.Stream
	pool      *pool
	free      index.SizeMap // free blocks
	most      device.Size   // its bound in Allocator.largest
	leastTail device.Size   // least bytes that are split off

	segments int      // segments that it holds
	gaps     []handle // unmapped blocks, by address
}

// side holds the shelves of one pool and size kind.
type side struct {
	shelves []*shelf // by stream
	calls   uint64   // lookups so far, where ages are counted
}

// pool is the default pool or a private one.
type pool struct {
	id       alloc.PoolID
	users    int // begun and not released
	redirect int // redirections into it
	segments int // segments that it holds
	options  power.PoolOptions
	sides    [kinds]side
}

// redirection sends requests to a pool.
type redirection struct {
	pool   *pool
	stream device.Stream // power.AllStreams for every one
}

// matches reports whether the redirection concerns a stream.
func (r *redirection) matches(s device.Stream) bool {
	return r.stream == power.AllStreams || r.stream == s
}

// capturing reports whether a graph may be captured on a stream, or on any with power.AllStreams.
// Events must be neither recorded nor queried then. Up to 2.12 every redirection counts as a
// capture; from 2.13 on only a redirection of one stream does, because a MemPool redirects all.
func (a *Allocator) capturing(s device.Stream) bool {
	if !a.set.oneStreamCaptures {
		return len(a.redirections) > 0
	}
	return slices.ContainsFunc(a.redirections, func(r redirection) bool {
		return r.stream != power.AllStreams && (s == power.AllStreams || r.stream == s)
	})
}

// poolOf returns the pool that requests of a stream go to. If several redirections match, the first
// one begun decides; under the later rules, the last one.
func (a *Allocator) poolOf(s device.Stream) *pool {
	found := a.pools[0]
	for i := range a.redirections {
		if r := &a.redirections[i]; r.matches(s) {
			found = r.pool
			if !a.set.lastBegunFirst {
				break
			}
		}
	}
	return found
}

// shelfFor returns the shelf that serves a request of a kind and stream.
func (a *Allocator) shelfFor(kind uint32, s device.Stream) *shelf {
	// Requests come in runs of one stream, so it is mostly the shelf of the previous request.
	if len(a.redirections) == 0 {
		if sh := a.recent[kind&large]; sh.stream == s {
			return sh
		}
	}
	p := a.poolOf(s)
	sh := a.shelfIn(p, kind, s)
	if p.id == 0 {
		a.recent[kind&large] = sh
	}
	return sh
}

// shelfIn returns the shelf of a pool, kind and stream. It makes the shelf on first use.
func (a *Allocator) shelfIn(p *pool, kind uint32, s device.Stream) *shelf {
	side := &p.sides[kind]
	i, found := slices.BinarySearchFunc(side.shelves, s, func(sh *shelf, s device.Stream) int {
		return cmp.Compare(sh.stream, s)
	})
	if found {
		return side.shelves[i]
	}
	sh := &shelf{kind: kind, stream: s, pool: p, free: index.NewSizeMap(quantum)}
	sh.leastTail = a.leastTail(sh)
	if n := len(a.spareShelves); n > 0 {
		sh.id = a.spareShelves[n-1]
		a.spareShelves = a.spareShelves[:n-1]
		a.shelves[sh.id] = sh
	} else {
		sh.id = uint32(len(a.shelves))
		a.shelves = append(a.shelves, sh)
	}
	side.shelves = slices.Insert(side.shelves, i, sh)
	return sh
}

// leastTail returns the least bytes that are split off from a block of a shelf.
func (a *Allocator) leastTail(sh *shelf) device.Size {
	if sh.pool.options.NoSplit && a.set.wholeBlocks {
		return noLimit
	}
	return a.set.leastTail(sh.kind)
}

// borrow returns a free block of a private pool with use_on_oom, which is in no index, for a
// request outside of pools that would fail. The original fails with an internal error if a pool has
// no users, or if requests go to it at the moment; here such a pool is passed over.
func (a *Allocator) borrow(sh *shelf, n device.Size) handle {
	if sh.pool.id != 0 || a.set.expandable && !a.set.borrowsGrowing {
		return none
	}
	for _, p := range a.pools[1:] {
		if !p.options.UseOnOOM || p.users == 0 || p.redirect > 0 {
			continue
		}
		if h := a.lookup(a.shelfIn(p, sh.kind, sh.stream), n); h != none {
			return h
		}
	}
	return none
}

func (a *Allocator) shelfOf(h handle) *shelf { return a.shelves[a.rows[h].home>>shelfBit] }

// findPool returns the index of a private pool, or the index to insert it, and whether it exists.
func (a *Allocator) findPool(id alloc.PoolID) (i int, found bool) {
	return slices.BinarySearchFunc(a.pools, id, func(p *pool, id alloc.PoolID) int { return cmp.Compare(p.id, id) })
}

// BeginPool implements [power.PrivatePools]. PyTorch refuses to begin a pool again that was
// released and still holds memory; here it is revived.
func (a *Allocator) BeginPool(id alloc.PoolID, s device.Stream) error {
	switch {
	case a.front.Closed():
		return alloc.ErrClosed
	case id == 0:
		return alloc.ErrInvalidPool
	}
	i, found := a.findPool(id)
	if !found {
		a.pools = slices.Insert(a.pools, i, &pool{id: id})
	}
	p := a.pools[i]
	p.users++
	p.redirect++
	a.redirections = append(a.redirections, redirection{p, s})
	return nil
}

// BeginMemPool implements [power.MemPools].
func (a *Allocator) BeginMemPool(id alloc.PoolID, s device.Stream, o power.PoolOptions) error {
	if err := a.BeginPool(id, s); err != nil {
		return err
	}
	i, _ := a.findPool(id)
	p := a.pools[i]
	p.options = o
	for k := range p.sides {
		for _, sh := range p.sides[k].shelves {
			sh.leastTail = a.leastTail(sh)
		}
	}
	return nil
}

func (a *Allocator) EndPool(id alloc.PoolID) error {
	if a.front.Closed() {
		return alloc.ErrClosed
	}
	i := slices.IndexFunc(a.redirections, func(r redirection) bool { return r.pool.id == id })
	if i < 0 {
		return alloc.ErrInvalidPool
	}
	p := a.redirections[i].pool
	p.redirect--
	a.redirections = slices.Delete(a.redirections, i, i+1)
	a.forget(p)
	return nil
}

// ReleasePool implements [power.PrivatePools]. The memory of a pool without users is released by
// the next [Allocator.Trim], or when a request finds no memory.
func (a *Allocator) ReleasePool(id alloc.PoolID) error {
	if a.front.Closed() {
		return alloc.ErrClosed
	}
	i, found := a.findPool(id)
	if !found || id == 0 || a.pools[i].users == 0 {
		return alloc.ErrInvalidPool
	}
	a.pools[i].users--
	a.forget(a.pools[i])
	return nil
}

// forgetIdle drops the empty shelves of the default pool, left behind by programs that create new
// streams. The last used ones stay.
func (a *Allocator) forgetIdle() {
	for k := range a.pools[0].sides {
		s := &a.pools[0].sides[k]
		s.shelves = slices.DeleteFunc(s.shelves, func(sh *shelf) bool {
			idle := sh.segments == 0 && sh != a.recent[k]
			if idle {
				a.shelves[sh.id] = nil
				a.spareShelves = append(a.spareShelves, sh.id)
			}
			return idle
		})
	}
	a.queues = slices.DeleteFunc(a.queues, func(q queue) bool { return len(q.marks) == 0 })
}

// forget removes a private pool without users, redirections and memory.
func (a *Allocator) forget(p *pool) {
	if p.id == 0 || p.users > 0 || p.redirect > 0 || p.segments > 0 {
		return
	}
	for k := range p.sides {
		for _, sh := range p.sides[k].shelves {
			a.shelves[sh.id] = nil
			a.spareShelves = append(a.spareShelves, sh.id)
		}
	}
	i, _ := a.findPool(p.id)
	a.pools = slices.Delete(a.pools, i, i+1)
}
