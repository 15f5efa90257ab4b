package pluggable

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// PoolKey identifies a private pool by PyTorch's two numbers. Both zero is no pool.
type PoolKey struct {
	First  uint64 // of a graph capture, 0 otherwise
	Second uint64 // of a MemPool, 0 otherwise
}

// pool is a private pool. PyTorch names the pool in each request, but strategies redirect whole
// streams, so the first request of a stream to a pool redirects the stream.
type pool struct {
	id      alloc.PoolID
	users   int             // begun and not released
	held    int             // users that the strategy has counted
	streams []device.Stream // streams redirected now
	active  bool            // begun and not ended
	known   bool            // the strategy has counted the last user
}

// pools are the private pools of an instance.
type pools struct {
	all    map[PoolKey]*pool
	last   alloc.PoolID
	active int
}

func newPools() pools { return pools{all: map[PoolKey]*pool{}} }

// open reports whether requests may go to a private pool now.
func (p *pools) open() bool { return p.active > 0 }

func (p *pools) byID(id alloc.PoolID) *pool {
	for _, q := range p.all {
		if q.id == id {
			return q
		}
	}
	return nil
}

// errNoPools is the error of a strategy without private pools.
var errNoPools = errors.New("has no private pools: CUDA graphs and MemPool want one of the caching presets")

// begin opens a pool, or creates it, and returns its number.
func (n *instance) begin(k PoolKey) (alloc.PoolID, error) {
	switch {
	case !power.Has(n.strategy, power.PowerPrivatePools):
		return 0, fmt.Errorf("strategy %s %w", n.name, errNoPools)
	case n.poison != nil:
		return 0, errors.New(EnvPoison + ": poisoning waits for all work, which a program that captures a graph may not")
	}
	q := n.pools.all[k]
	if q == nil {
		n.pools.last++
		q = &pool{id: n.pools.last}
		n.pools.all[k] = q
	}
	if q.active {
		return 0, fmt.Errorf("begin of pool (%d, %d) on device %d: it has begun already", k.First, k.Second, n.ordinal)
	}
	q.users++
	q.active, q.known = true, false
	n.pools.active++
	return q.id, nil
}

func (n *instance) redirect(into alloc.PoolID, s device.Stream) error {
	if into == 0 {
		return nil
	}
	q := n.pools.byID(into)
	if q == nil || !q.active {
		return fmt.Errorf("pool %d of device %d is not open", into, n.ordinal)
	}
	for _, known := range q.streams {
		if known == s {
			return nil
		}
	}
	if err := power.BeginPool(n.strategy, q.id, s); err != nil {
		return err
	}
	n.note(trace.PoolBegin, 0, uint64(q.id), s)
	q.streams = append(q.streams, s)
	if !q.known {
		q.known = true
		q.held++
		return nil
	}
	n.note(trace.PoolRelease, 0, uint64(q.id), 0) // one user began it for two streams
	return power.ReleasePool(n.strategy, q.id)
}

// end closes a pool, which keeps its memory.
func (n *instance) end(k PoolKey) error {
	q := n.pools.all[k]
	if q == nil || !q.active {
		return fmt.Errorf("end of pool (%d, %d) on device %d: it has not begun", k.First, k.Second, n.ordinal)
	}
	var first error
	for range q.streams {
		first = cmp.Or(first, power.EndPool(n.strategy, q.id))
		n.note(trace.PoolEnd, 0, uint64(q.id), 0)
	}
	q.streams, q.active = q.streams[:0], false
	n.pools.active--
	return first
}

// release drops one user of a pool.
func (n *instance) release(k PoolKey) error {
	q := n.pools.all[k]
	if q == nil {
		return fmt.Errorf("release of pool (%d, %d) on device %d: no such pool", k.First, k.Second, n.ordinal)
	}
	q.users--
	var err error
	if q.held > q.users {
		q.held--
		n.note(trace.PoolRelease, 0, uint64(q.id), 0)
		err = power.ReleasePool(n.strategy, q.id)
	}
	if q.users == 0 && !q.active {
		delete(n.pools.all, k)
	}
	return err
}
