package xdl

import (
	"errors"
	"fmt"
	"sync"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/shards"
	slab "github.com/vramyard/vramyard/strategies/slab/xdl"
	"github.com/vramyard/vramyard/strategies/slabbuddy"
)

// Locked is the allocator with the locks of the original, safe for concurrent use: one for each
// segment of the slab, and one for the buddy and the requests that go to the device. One thread
// gets the placements of [Allocator]. Use [NewLocked].
//
// A region that the device did not take back is tried again when the buddy or a direct request
// grows, and not when the slab does.
type Locked struct {
	device *shards.Device
	set    *shards.Set
	slab   *slab.Locked
	rest   *Allocator // serves all other requests
	number int        // of rest in the set

	mu      sync.Mutex
	refusal power.Refusal // the last one; guarded by mu
}

// Owners of regions on the device of a [Locked].
const (
	ofSlab = iota
	ofRest
)

// NewLocked returns an allocator over src that holds nothing yet. It fails if c is invalid.
func NewLocked(src device.Source, c Config) (*Locked, error) {
	d := shards.NewDevice(src)
	l := &Locked{device: d, set: shards.NewSet(d)}
	var err error
	if l.rest, err = New(d.Part(ofRest), c); err != nil {
		return nil, err
	}
	if l.slab, err = slab.Join(d, l.set, ofSlab, l.rest.cfg.slab()); err != nil {
		return nil, fmt.Errorf("slabbuddy: %w", err)
	}
	l.number = l.set.Add(l.rest)
	return l, nil
}

func (*Locked) ConcurrencySafe() {}

func (l *Locked) Alloc(r alloc.Request) (b alloc.Block, err error) {
	var by power.Failure = l.slab
	if l.rest.route(r.Size) == slabbuddy.OwnerSlab {
		b, err = l.slab.Alloc(r)
	} else {
		b, err = l.set.Alloc(l.number, r)
		by = l.rest
	}
	if err != nil && !errors.Is(err, alloc.ErrClosed) {
		l.set.Lock()
		defer l.set.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.refusal, _ = by.LastRefusal()
		l.refusal.LargestHole, l.refusal.Free = l.largestFree(), l.slab.FreeBytesLocked()+l.rest.freeBytes()
	}
	return b, err
}

// Free implements [alloc.Allocator]. The owner of the region decides, without a lock.
func (l *Locked) Free(p device.Addr) error {
	if h, ok := l.device.Find(p); ok && h.Shard == ofSlab {
		return l.slab.Free(p)
	}
	return l.set.Free(l.number, p)
}

// Close implements [alloc.Strategy]. Regions of the slab are released first, oldest first.
func (l *Locked) Close() error {
	l.set.Lock()
	defer l.set.Unlock()
	return errors.Join(l.slab.CloseLocked(), l.rest.Close())
}

func (l *Locked) Stats() alloc.Stats {
	l.set.Lock()
	defer l.set.Unlock()
	return l.stats()
}

func (l *Locked) stats() alloc.Stats {
	sum, s, r := l.set.Sum(), l.slab.RegionStats(), l.rest.Stats()
	sum.Reserved, sum.Regions = s.Reserved+r.Reserved, s.Regions+r.Regions
	sum.Reserves, sum.Releases = s.Reserves+r.Reserves, s.Releases+r.Releases
	sum.ReserveFailures = s.ReserveFailures + r.ReserveFailures
	return sum
}

func (l *Locked) ClearStats() {
	l.slab.ClearStats()
	l.set.Lock()
	defer l.set.Unlock()
	l.rest.ClearStats()
	l.set.ClearPeaks()
}

func (l *Locked) LastRefusal() (power.Refusal, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refusal, l.refusal.Reason != power.ReasonNone
}

func (l *Locked) MaxRequest() device.Size { return l.rest.MaxRequest() }

func (l *Locked) LargestFree() device.Size {
	l.set.Lock()
	defer l.set.Unlock()
	return l.largestFree()
}

func (l *Locked) largestFree() device.Size {
	return max(l.slab.LargestFreeLocked(), l.rest.LargestFree())
}

func (l *Locked) MetadataBytes() device.Size {
	l.set.Lock()
	defer l.set.Unlock()
	return l.slab.MetadataBytesLocked() + l.rest.MetadataBytes() + l.device.Bytes() + l.set.Bytes()
}

// Walk implements [alloc.Inspector] as [Allocator.Walk] does.
func (l *Locked) Walk(yield func(alloc.Chunk) bool) {
	l.set.Lock()
	defer l.set.Unlock()
	l.walk(yield)
}

func (l *Locked) walk(yield func(alloc.Chunk) bool) {
	var owner uint8
	owned := func(c alloc.Chunk) bool {
		c.Owner = owner
		return yield(c)
	}
	for _, h := range l.device.Table() {
		var more bool
		if h.Shard == ofSlab {
			owner = slabbuddy.OwnerSlab
			more = l.slab.WalkRegionLocked(h.Addr, owned)
		} else {
			held, _ := l.rest.regions.Find(h.Addr)
			owner = uint8(held.Label)
			more = l.rest.walkHeld(held, owned)
		}
		if !more {
			return
		}
	}
}

func (l *Locked) Check() error {
	l.set.Lock()
	defer l.set.Unlock()
	if err := errors.Join(l.slab.CheckLocked(), l.rest.Check()); err != nil {
		return err
	}
	if n := l.rest.slab.Stats().Regions; n > 0 {
		return fmt.Errorf("slabbuddy: invariant R1 (the size alone routes): %d regions of a slab that serves nothing", n)
	}
	if err := front.CompareStats(l.stats(), l.walk); err != nil {
		return fmt.Errorf("slabbuddy: invariant R6 (counters are what the walk shows): %w", err)
	}
	return nil
}

func (l *Locked) FreeNeighbours(p device.Addr) (below, above device.Size) {
	if h, ok := l.device.Find(p); ok && h.Shard == ofSlab {
		return l.slab.FreeNeighbours(p)
	}
	l.set.Acquire(l.number)
	defer l.set.Release(l.number)
	return l.rest.FreeNeighbours(p)
}

func (l *Locked) CanPlace(r alloc.Request, freed []device.Addr) bool {
	if l.rest.route(r.Size) == slabbuddy.OwnerSlab {
		return l.slab.CanPlace(r, freed)
	}
	l.set.Acquire(l.number)
	defer l.set.Release(l.number)
	return l.rest.CanPlace(r, freed)
}
