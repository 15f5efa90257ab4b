package shards

import (
	"sync"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Set is a set of strategies that is safe for concurrent use: each strategy has a lock. As a
// [sync.Locker] it takes every lock. Use [NewSet].
type Set struct {
	device *Device
	all    []*shard
	peak   sizes
	batch  sizes // room that a shard takes from spare in reserve

	mu    sync.Mutex // taken last
	spare sizes      // the peak less the room of all shards; guarded by mu

	chunks []alloc.Chunk // of the last walk
	runs   []run         // by strategy
	gather func(alloc.Chunk) bool
}

// shard is a strategy with its lock. The padding keeps the locks of two shards on different cache
// lines.
type shard struct {
	sync.Mutex
	strategy alloc.Strategy
	room     sizes       // the peak of the set is correct while the strategy holds at most this
	left     device.Size // bytes that can be granted within the room if nothing is freed
	_        [64]byte
}

// sizes are the bytes of [alloc.Stats] that have a peak and change without a call of the device.
type sizes struct{ requested, allocated, active device.Size }

func sizesOf(s *alloc.Stats) sizes {
	return sizes{requested: s.Requested, allocated: s.Allocated, active: s.Active}
}

// each applies f to each pair of sizes.
func (a sizes) each(b sizes, f func(a, b device.Size) device.Size) sizes {
	return sizes{
		requested: f(a.requested, b.requested), allocated: f(a.allocated, b.allocated),
		active: f(a.active, b.active),
	}
}

func plus(a, b device.Size) device.Size  { return a + b }
func minus(a, b device.Size) device.Size { return a - b }
func least(a, b device.Size) device.Size { return min(a, b) }
func most(a, b device.Size) device.Size  { return max(a, b) }

// least returns the smallest of the sizes.
func (a sizes) least() device.Size { return min(a.requested, a.allocated, a.active) }

func (a sizes) within(b sizes) bool {
	return a.requested <= b.requested && a.allocated <= b.allocated && a.active <= b.active
}

// NewSet returns a set without strategies, which will share a device.
func NewSet(d *Device) *Set { return &Set{device: d} }

// Add adds a strategy and returns its number. It must not be called once other calls have begun.
func (s *Set) Add(strategy alloc.Strategy) int {
	s.all = append(s.all, &shard{strategy: strategy})
	return len(s.all) - 1
}

// Len returns the number of strategies.
func (s *Set) Len() int { return len(s.all) }

// At returns strategy i. It must be called with every lock held, or with the lock of strategy i.
func (s *Set) At(i int) alloc.Strategy { return s.all[i].strategy }

// Lock takes every lock.
func (s *Set) Lock() {
	for _, p := range s.all {
		p.Mutex.Lock()
	}
}

// Unlock releases every lock.
func (s *Set) Unlock() {
	for _, p := range s.all {
		p.Mutex.Unlock()
	}
}

// Acquire takes the lock of strategy i and returns the strategy.
func (s *Set) Acquire(i int) alloc.Strategy {
	s.all[i].Mutex.Lock()
	return s.all[i].strategy
}

// Release releases the lock of strategy i.
func (s *Set) Release(i int) { s.all[i].Mutex.Unlock() }

// Alloc passes a request to strategy i.
func (s *Set) Alloc(i int, r alloc.Request) (alloc.Block, error) {
	b, raised, err := s.all[i].alloc(s, r)
	if raised {
		s.Lock()
		defer s.Unlock()
		s.Level()
	}
	return b, err
}

// alloc passes a request to the strategy. It reports whether a peak of the set may have risen.
func (p *shard) alloc(s *Set, r alloc.Request) (b alloc.Block, raised bool, err error) {
	p.Mutex.Lock()
	defer p.Mutex.Unlock()
	if b, err = p.strategy.Alloc(r); err != nil {
		return b, false, err
	}
	if b.Size <= p.left {
		p.left -= b.Size
		return b, false, nil
	}
	return b, !p.resize(s), nil
}

// resize sets the room to the bytes that the strategy holds plus a batch. It takes the difference
// from the spare of the set, or returns it. It reports whether the spare sufficed.
func (p *shard) resize(s *Set) (ok bool) {
	stats := p.strategy.Stats()
	now := sizesOf(&stats)
	want := now.each(s.batch, plus)
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.spare.each(p.room, plus)
	if !now.within(all) {
		p.left = 0
		return false
	}
	p.room = want.each(all, least)
	s.spare = all.each(p.room, minus)
	p.left = p.room.each(now, minus).least()
	return true
}

// Free passes a free to strategy i.
func (s *Set) Free(i int, a device.Addr) error {
	defer s.Release(i)
	return s.Acquire(i).Free(a)
}

// Level recomputes the peaks, and distributes the bytes between the sum and the peaks: a quarter as
// room of the strategies, the rest as spare. It must be called with every lock held, after calls of
// [Set.At] that may raise a peak.
func (s *Set) Level() {
	var sum sizes
	for _, p := range s.all {
		stats := p.strategy.Stats()
		p.room = sizesOf(&stats)
		sum = sum.each(p.room, plus)
	}
	s.peak = s.peak.each(sum, most)
	slack := s.peak.each(sum, minus)
	parts := 4 * device.Size(len(s.all))
	s.batch = slack.each(slack, func(a, _ device.Size) device.Size { return a / parts })
	s.spare = slack
	for _, p := range s.all {
		p.room, p.left = p.room.each(s.batch, plus), s.batch.least()
		s.spare = s.spare.each(s.batch, minus)
	}
}

// Bytes returns the host memory of the set, its buffer for walks included. It must be called with
// every lock held.
func (s *Set) Bytes() device.Size {
	const shardBytes, chunkBytes = 160, 112
	return device.Size(cap(s.all))*shardBytes + device.Size(cap(s.chunks))*chunkBytes
}

// Stats returns the counters of all strategies together. O(strategies).
func (s *Set) Stats() alloc.Stats {
	s.Lock()
	defer s.Unlock()
	return s.Sum()
}

// Sum is [Set.Stats] with every lock held. NextRegion is 0, because each strategy has its own.
func (s *Set) Sum() (sum alloc.Stats) {
	s.Level()
	for _, p := range s.all {
		n := p.strategy.Stats()
		sum.Allocs, sum.Frees, sum.OOMs = sum.Allocs+n.Allocs, sum.Frees+n.Frees, sum.OOMs+n.OOMs
		sum.Live, sum.Regions = sum.Live+n.Live, sum.Regions+n.Regions
		sum.Requested, sum.Allocated = sum.Requested+n.Requested, sum.Allocated+n.Allocated
		sum.Active, sum.Reserved = sum.Active+n.Active, sum.Reserved+n.Reserved
		sum.Forgotten, sum.Limit = sum.Forgotten+n.Forgotten, sum.Limit+n.Limit
		sum.Reserves, sum.Releases = sum.Reserves+n.Reserves, sum.Releases+n.Releases
		sum.ReserveFailures += n.ReserveFailures
		sum.LargestAlloc = max(sum.LargestAlloc, n.LargestAlloc)
	}
	sum.PeakRequested, sum.PeakAllocated, sum.PeakActive = s.peak.requested, s.peak.allocated, s.peak.active
	sum.PeakReserved = s.device.peakHeld()
	return sum
}

// ClearPeaks lowers the peaks to the current values, as [alloc.Stats.Clear] does. It must be
// called with every lock held, when the counters of each strategy are cleared.
func (s *Set) ClearPeaks() {
	s.peak = sizes{}
	s.Level()
}
