package xdl

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/regions"
	"github.com/vramyard/vramyard/kit/shards"
)

// Locked is the allocator with the locks of the original, safe for concurrent use: one for each
// segment, and one for growth that is taken last. Each segment is an [Allocator] of one segment
// whose regions are the slices of the shared regions, so one thread gets the placements of
// [Allocator]. Use [NewLocked].
type Locked struct {
	cfg    Config
	device *shards.Device
	set    *shards.Set // the segments; a composed strategy has its other parts after them
	owner  int         // number of the regions in device
	parts  []*Allocator
	pool   pool
	turn   atomic.Int32 // as Allocator.counter
	closed atomic.Bool

	mu      sync.Mutex
	refusal power.Refusal // the last one; guarded by mu
}

// pool holds the regions that the segments share. A segment attaches its slices of them in order.
type pool struct {
	sync.Mutex // held for growth
	cfg        Config
	slice      device.Size
	stats      alloc.Stats // of the regions only
	regions    regions.Set // a label is the number in bases
	bases      []device.Addr
	lines      []int // slices attached, by segment
}

// slices is the pool as the source of one segment.
type slices struct {
	*pool
	segment int
}

// Reserve implements [device.Source]. It returns the next slice of the segment, if necessary of a
// new region.
func (s slices) Reserve(_, _ device.Size) (device.Region, error) {
	s.Lock()
	defer s.Unlock()
	n := s.lines[s.segment]
	if n == len(s.bases) {
		if (n+1)*len(s.lines)*int(s.slice/(chunkUnits*s.cfg.UnitBytes)) > mostChunks {
			return device.Region{}, regions.ErrTooMany
		}
		r, err := s.regions.Reserve(s.cfg.RegionBytes, regions.Align(s.cfg.RegionBytes), int32(n))
		if err != nil {
			return device.Region{}, err
		}
		s.bases = append(s.bases, r.Addr)
	}
	s.lines[s.segment]++
	return device.Region{Addr: s.bases[n].Add(device.Size(s.segment) * s.slice), Size: s.slice}, nil
}

// Release implements [device.Source]. It is a no-op: the regions are released when the allocator is
// closed.
func (slices) Release(device.Addr) error { return nil }

// maxLocks bounds the segments: an Alloc that raises a peak takes every lock.
const maxLocks = 1024

// NewLocked returns an allocator over src that holds nothing yet. It fails if c is invalid.
func NewLocked(src device.Source, c Config) (*Locked, error) {
	d := shards.NewDevice(src)
	return Join(d, shards.NewSet(d), 0, c)
}

// Join returns an allocator whose segments join a set. On the device of the set its regions belong
// to owner.
func Join(d *shards.Device, set *shards.Set, owner int, c Config) (*Locked, error) {
	c, err := c.WithDefaults()
	switch {
	case err != nil:
		return nil, err
	case c.Segments > maxLocks:
		return nil, fmt.Errorf("slab: segments %d: want at most %d with locks", c.Segments, maxLocks)
	}
	l := &Locked{cfg: c, device: d, set: set, owner: owner}
	l.pool = pool{cfg: c, slice: c.RegionBytes / device.Size(c.Segments), lines: make([]int, c.Segments)}
	l.pool.regions = regions.NewSet(d.Part(owner), &l.pool.stats)
	for g := range c.Segments {
		part, err := New(slices{&l.pool, g}, Config{RegionBytes: l.pool.slice, Segments: 1, UnitBytes: c.UnitBytes})
		if err != nil {
			return nil, err
		}
		l.parts = append(l.parts, part)
		l.set.Add(part)
	}
	return l, nil
}

func (*Locked) ConcurrencySafe() {}

// Alloc implements [alloc.Allocator]. A request that can never be granted does not pass the turn
// on.
func (l *Locked) Alloc(r alloc.Request) (alloc.Block, error) {
	g := 0
	if r.Size-1 < maxUnits*l.cfg.UnitBytes && r.Align&(r.Align-1) == 0 && r.Align <= l.parts[0].quantum() {
		g = l.segment(l.turn.Add(1) - 1)
	}
	b, err := l.set.Alloc(g, r)
	if err != nil {
		l.adopt(g, err)
	}
	return b, err
}

// segment returns the segment of a turn, which the original counts in signed 32 bits.
func (l *Locked) segment(turn int32) int { return int(uint64(turn) % uint64(len(l.parts))) }

// adopt keeps the refusal of segment g, with the free memory of all.
func (l *Locked) adopt(g int, err error) {
	if errors.Is(err, alloc.ErrClosed) {
		return
	}
	l.set.Lock()
	defer l.set.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refusal, _ = l.parts[g].LastRefusal()
	l.refusal.LargestHole, l.refusal.Free = l.LargestFreeLocked(), l.FreeBytesLocked()
	if l.refusal.Asked != 0 {
		l.refusal.Asked = l.cfg.RegionBytes
	}
}

// find returns the segment that an address lies in.
func (l *Locked) find(p device.Addr) (int, error) {
	h, ok := l.device.Find(p)
	if l.closed.Load() {
		return 0, alloc.ErrClosed
	}
	if g := p.Sub(h.Addr) / l.pool.slice; ok && h.Shard == l.owner && g < device.Size(len(l.parts)) {
		return int(g), nil
	}
	return 0, alloc.ErrInvalidFree
}

// Free implements [alloc.Allocator]. The segment follows from the address, as in the original.
func (l *Locked) Free(p device.Addr) error {
	g, err := l.find(p)
	if err != nil {
		return err
	}
	return l.set.Free(g, p)
}

// Close implements [alloc.Strategy]. Regions are released oldest first.
func (l *Locked) Close() error {
	l.set.Lock()
	defer l.set.Unlock()
	return l.CloseLocked()
}

// CloseLocked is Close with every lock of the set held.
func (l *Locked) CloseLocked() error {
	l.closed.Store(true)
	for _, part := range l.parts {
		_ = part.Close() // its source takes everything back
	}
	l.pool.bases, l.pool.lines = nil, make([]int, len(l.parts))
	return l.pool.regions.ReleaseAll()
}

func (l *Locked) Stats() alloc.Stats {
	l.set.Lock()
	defer l.set.Unlock()
	return l.stats()
}

func (l *Locked) stats() alloc.Stats {
	sum := l.set.Sum()
	sum.Reserved, sum.Regions = l.pool.stats.Reserved, l.pool.stats.Regions
	sum.Reserves, sum.ReserveFailures = l.pool.stats.Reserves, l.pool.stats.ReserveFailures
	sum.Releases, sum.NextRegion = l.pool.stats.Releases, l.cfg.RegionBytes
	return sum
}

// RegionStats returns the counters of the regions, with every lock of the set held.
func (l *Locked) RegionStats() alloc.Stats { return l.pool.stats }

func (l *Locked) ClearStats() {
	l.set.Lock()
	defer l.set.Unlock()
	for _, part := range l.parts {
		part.ClearStats()
	}
	l.set.ClearPeaks()
}

func (l *Locked) LastRefusal() (power.Refusal, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refusal, l.refusal.Reason != power.ReasonNone
}

func (l *Locked) MaxRequest() device.Size { return maxUnits * l.cfg.UnitBytes }

func (l *Locked) LargestFree() device.Size {
	l.set.Lock()
	defer l.set.Unlock()
	return l.LargestFreeLocked()
}

// LargestFreeLocked is LargestFree with every lock of the set held.
func (l *Locked) LargestFreeLocked() (largest device.Size) {
	for g, part := range l.parts {
		if l.pool.lines[g] < len(l.pool.bases) {
			return l.pool.slice // the segment has an unattached slice
		}
		largest = max(largest, part.LargestFree())
	}
	return largest
}

// FreeBytesLocked returns the bytes in free chunks, with every lock of the set held.
func (l *Locked) FreeBytesLocked() device.Size {
	free := device.Size(len(l.pool.bases)) * l.cfg.RegionBytes
	for _, part := range l.parts {
		free -= part.Stats().Allocated
	}
	return free
}

func (l *Locked) MetadataBytes() device.Size {
	l.set.Lock()
	defer l.set.Unlock()
	return l.MetadataBytesLocked() + l.device.Bytes() + l.set.Bytes()
}

// MetadataBytesLocked is MetadataBytes without the set and the device, with every lock of the set
// held.
func (l *Locked) MetadataBytesLocked() device.Size {
	n := l.pool.regions.Bytes() + device.Size(cap(l.pool.bases)+cap(l.pool.lines)+cap(l.parts))*8
	for _, part := range l.parts {
		n += part.MetadataBytes()
	}
	return n
}

// Walk implements [alloc.Inspector] as [Allocator.Walk] does.
func (l *Locked) Walk(yield func(alloc.Chunk) bool) {
	l.set.Lock()
	defer l.set.Unlock()
	l.walk(yield)
}

func (l *Locked) walk(yield func(alloc.Chunk) bool) {
	for i := range l.pool.regions.Len() {
		if !l.WalkRegionLocked(l.pool.regions.At(i).Addr, yield) {
			return
		}
	}
}

// WalkRegionLocked yields the chunks of the region that starts at base, with every lock of the set
// held. It reports whether the walk goes on.
func (l *Locked) WalkRegionLocked(base device.Addr, yield func(alloc.Chunk) bool) bool {
	h, _ := l.pool.regions.Find(base)
	if l.closed.Load() {
		return regions.Excess(h.Region, 0, yield)
	}
	inRegion := func(c alloc.Chunk) bool {
		c.Region = base
		return yield(c)
	}
	for g, part := range l.parts {
		if int(h.Label) < l.pool.lines[g] {
			if !part.WalkRegion(base.Add(device.Size(g)*l.pool.slice), inRegion) {
				return false
			}
		} else if !yield(l.unattached(int(h.Label), g)) {
			return false
		}
	}
	return regions.Excess(h.Region, l.cfg.RegionBytes, yield)
}

// unattached returns a slice that its segment has not attached, as a chunk.
func (l *Locked) unattached(region, g int) alloc.Chunk {
	base := l.pool.bases[region]
	return alloc.Chunk{
		Region: base, Addr: base.Add(device.Size(g) * l.pool.slice), Size: l.pool.slice, Class: alloc.NoClass,
	}
}

func (l *Locked) Check() error {
	l.set.Lock()
	defer l.set.Unlock()
	if err := l.CheckLocked(); err != nil {
		return err
	}
	if err := front.CompareStats(l.stats(), l.walk); err != nil {
		return fmt.Errorf("slab: invariant S8 (counters are what the walk shows): %w", err)
	}
	return nil
}

// CheckLocked is Check without the counters, with every lock of the set held.
func (l *Locked) CheckLocked() error {
	for g, part := range l.parts {
		if err := part.Check(); err != nil {
			return fmt.Errorf("segment %d: %w", g, err)
		}
		if n := len(part.bases); n != l.pool.lines[g] {
			return fmt.Errorf("slab: invariant S5 (slices are attached in order): segment %d has %d of %d lines", g, n,
				l.pool.lines[g])
		}
	}
	return nil
}

func (l *Locked) FreeNeighbours(p device.Addr) (below, above device.Size) {
	g, err := l.find(p)
	if err != nil {
		return 0, 0
	}
	l.set.Acquire(g)
	defer l.set.Release(g)
	return l.parts[g].FreeNeighbours(p)
}

// CanPlace implements [power.Placer]. Which segment serves the next request is known.
func (l *Locked) CanPlace(r alloc.Request, freed []device.Addr) bool {
	l.set.Lock()
	defer l.set.Unlock()
	g := l.segment(l.turn.Load())
	return l.parts[g].CanPlace(r, freed) || l.parts[g].front.Accepts(&r) && l.pool.lines[g] < len(l.pool.bases)
}
