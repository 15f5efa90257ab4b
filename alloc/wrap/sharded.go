package wrap

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/shards"
)

// Choice maps a request to a shard key. Requests with equal keys go to the same shard.
type Choice func(alloc.Request) uint64

// ByThread is a [Choice] of a shard for each thread. Requests of unknown threads share one.
func ByThread(r alloc.Request) uint64 { return uint64(r.Origin.Thread()) }

// ByStream is a [Choice] of a shard for each stream.
func ByStream(r alloc.Request) uint64 { return uint64(r.Stream) }

// sharded is several strategies among which requests are distributed.
type sharded struct {
	device *shards.Device
	set    *shards.Set
	choice Choice
	powers [256]bool // by [power.Power]
	closed atomic.Bool

	ooms    uint64 // refused requests; guarded by every lock of the set
	mu      sync.Mutex
	refusal power.Refusal // the last one; guarded by mu
}

// Sharded returns a strategy of n shards, safe for concurrent use. The shards are strategies from
// build that share one device; each has a lock. A request goes to the shard that by selects, a free
// to the shard whose region contains the block, from any thread.
//
// A request that finds no memory in its shard takes every lock. The other shards release their
// cached regions, the shard tries again, and then each other shard tries. So a request is refused
// only if no shard can serve it, at one moment. Each try may call the device.
//
// A call of Alloc or Free costs the call of its shard and an uncontended lock. An Alloc that raises
// a peak of the counters takes every lock, and so do Stats, Walk, Check and the other powers. A
// change of the regions costs O(regions); Free finds its region in O(log regions) without a lock.
//
// Allocation IDs are unique within a shard. The result has the powers of the strategies that can be
// combined. It has no FreeWalker, Frontier, PrivatePools, MemPools, Configurable, Counted,
// SelfTimed, Historian and Spanned, which are about the calls of one strategy.
// Sharded fails if n is below 1, a strategy cannot be built, or one waits for memory
// ([power.Waiter]).
func Sharded(
	src device.Source, n int, by Choice, build func(device.Source) (alloc.Strategy, error),
) (alloc.Strategy, error) {
	if n < 1 {
		return nil, fmt.Errorf("alloc: Sharded with %d shards: want at least 1", n)
	}
	s := &sharded{device: shards.NewDevice(src), choice: by}
	s.set = shards.NewSet(s.device)
	for i := range n {
		part, err := build(s.device.Part(i))
		if err == nil && power.Has(part, power.PowerWaiter) {
			err = errors.Join(errWaitsUnderLock, part.Close())
		}
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.set.Add(part)
	}
	for _, p := range []power.Power{
		power.PowerHoles, power.PowerTrimmer, power.PowerMetered, power.PowerFailure, power.PowerCeiling,
		power.PowerClearer, power.PowerReporter, power.PowerStreamRecorder, power.PowerPoller, power.PowerNeighbours,
		power.PowerPlacer, power.PowerMover, power.PowerInformed, power.PowerPlanner,
		power.PowerReferenced, power.PowerLocator,
	} {
		s.powers[p] = power.Has(s.set.At(0), p)
	}
	s.powers[power.PowerConcurrent] = true
	return s, nil
}

// Has reports the powers that all shards have.
func (s *sharded) Has(p power.Power) bool { return s.powers[p] }

func (*sharded) ConcurrencySafe() {}

// shardOf returns the shard of a request. The multiplier, 2^64 over the golden ratio, spreads
// consecutive numbers evenly and addresses of streams well.
func (s *sharded) shardOf(r alloc.Request) int {
	const golden = 0x9E3779B97F4A7C15
	i, _ := bits.Mul64(s.choice(r)*golden, uint64(s.set.Len()))
	return int(i)
}

func (s *sharded) Alloc(r alloc.Request) (alloc.Block, error) {
	i := s.shardOf(r)
	b, err := s.set.Alloc(i, r)
	switch {
	case err == nil:
	case errors.Is(err, alloc.ErrOutOfMemory):
		return s.allocAnywhere(i, r)
	case errors.Is(err, alloc.ErrInvalidRequest):
		s.adoptRefusal(s.set.Acquire(i))
		s.set.Release(i)
	}
	return b, err
}

// allocAnywhere serves a request that shard i had no memory for. It holds every lock, so that a
// refusal means that no shard had memory at one moment.
func (s *sharded) allocAnywhere(i int, r alloc.Request) (b alloc.Block, err error) {
	s.set.Lock()
	defer s.set.Unlock()
	for k := range s.set.Len() {
		if k != i {
			_, _ = power.Trim(s.set.At(k)) // a region that the device does not release stays
		}
	}
	var free device.Size
	for k := range s.set.Len() {
		part := s.set.At((i + k) % s.set.Len())
		b, err = part.Alloc(r)
		if !errors.Is(err, alloc.ErrOutOfMemory) {
			s.set.Level()
			return b, err
		}
		why, _ := power.LastRefusal(part)
		free += why.Free
	}
	s.ooms++
	s.adoptRefusal(s.set.At(i))
	s.refusal.LargestHole, s.refusal.Free = s.largestFree(), free
	return b, err
}

// adoptRefusal keeps the last refusal of a shard.
func (s *sharded) adoptRefusal(part alloc.Strategy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusal, _ = power.LastRefusal(part)
}

// find returns the shard that holds an address.
func (s *sharded) find(a device.Addr) (int, error) {
	if h, ok := s.device.Find(a); ok {
		return h.Shard, nil
	}
	if s.closed.Load() {
		return 0, alloc.ErrClosed
	}
	return 0, alloc.ErrInvalidFree
}

func (s *sharded) Free(a device.Addr) error {
	i, err := s.find(a)
	if err != nil && a != 0 { // any shard may ignore or reject address 0
		return err
	}
	return s.set.Free(i, a)
}

// FreeRef implements [power.Referenced]. The address selects the shard, the reference the block.
func (s *sharded) FreeRef(b alloc.Block) error {
	i, err := s.find(b.Addr)
	if err != nil {
		return err
	}
	defer s.set.Release(i)
	return power.FreeRef(s.set.Acquire(i), b)
}

func (s *sharded) Close() error {
	s.set.Lock()
	defer s.set.Unlock()
	s.closed.Store(true)
	return s.each(alloc.Strategy.Close)
}

// each calls f with every shard and joins the errors.
func (s *sharded) each(f func(alloc.Strategy) error) error {
	var all error
	for i := range s.set.Len() {
		all = errors.Join(all, f(s.set.At(i)))
	}
	return all
}

// sum takes every lock and adds the results of f for all shards. It returns the first error.
func (s *sharded) sum(f func(alloc.Inspector) (device.Size, error)) (n device.Size, first error) {
	s.set.Lock()
	defer s.set.Unlock()
	for i := range s.set.Len() {
		more, err := f(s.set.At(i))
		n, first = n+more, cmp.Or(first, err)
	}
	return n, first
}

// Stats implements [alloc.Inspector]. It counts a request that several shards refused once.
func (s *sharded) Stats() alloc.Stats {
	s.set.Lock()
	defer s.set.Unlock()
	sum := s.set.Sum()
	sum.OOMs = s.ooms
	return sum
}

func (s *sharded) Walk(yield func(alloc.Chunk) bool) {
	s.set.Lock()
	defer s.set.Unlock()
	s.set.Walk(yield)
}

func (s *sharded) Check() error {
	s.set.Lock()
	defer s.set.Unlock()
	err := s.each(alloc.Strategy.Check)
	for i := range s.set.Len() {
		for c := range s.set.At(i).Walk {
			if h, ok := s.device.Find(c.Addr); !ok || h.Shard != i {
				return errors.Join(err, fmt.Errorf("alloc: Sharded finds chunk %v of shard %d in shard %d (%t)",
					c.Addr, i, h.Shard, ok))
			}
		}
	}
	return err
}

func (s *sharded) LargestFree() device.Size {
	s.set.Lock()
	defer s.set.Unlock()
	return s.largestFree()
}

func (s *sharded) largestFree() (largest device.Size) {
	for i := range s.set.Len() {
		largest = max(largest, power.LargestFree(s.set.At(i)))
	}
	return largest
}

func (s *sharded) Trim() (device.Size, error) { return s.sum(power.Trim) }

func (s *sharded) Poll() (device.Size, error) { return s.sum(power.Poll) }

func (s *sharded) MetadataBytes() device.Size {
	n, _ := s.sum(power.MetadataBytes) // [power.MetadataBytes] has checked Has
	s.set.Lock()
	defer s.set.Unlock()
	return n + s.device.Bytes() + s.set.Bytes()
}

func (s *sharded) LastRefusal() (power.Refusal, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refusal, s.refusal.Reason != power.ReasonNone
}

func (s *sharded) MaxRequest() device.Size {
	defer s.set.Release(0)
	return power.MaxRequest(s.set.Acquire(0))
}

func (s *sharded) ClearStats() {
	s.set.Lock()
	defer s.set.Unlock()
	s.ooms = 0
	_ = s.each(func(part alloc.Strategy) error { return power.ClearStats(part) }) // as above
	s.set.ClearPeaks()
}

// AppendReport implements [power.Reporter]: the report of every shard.
func (s *sharded) AppendReport(text []byte, refused alloc.Request) []byte {
	s.set.Lock()
	defer s.set.Unlock()
	for i := range s.set.Len() {
		text, _ = power.AppendReport(s.set.At(i), text, refused) // as above
	}
	return text
}

func (s *sharded) RecordStream(a device.Addr, on device.Stream) error {
	i, err := s.find(a)
	if err != nil {
		return err
	}
	defer s.set.Release(i)
	return power.RecordStream(s.set.Acquire(i), a, on)
}

func (s *sharded) BlockAt(a device.Addr) (alloc.Chunk, error) {
	i, err := s.find(a)
	if err != nil {
		return alloc.Chunk{}, err
	}
	defer s.set.Release(i)
	return power.BlockAt(s.set.Acquire(i), a)
}

func (s *sharded) FreeNeighbours(a device.Addr) (below, above device.Size) {
	i, err := s.find(a)
	if err != nil {
		return 0, 0
	}
	defer s.set.Release(i)
	return power.FreeNeighbours(s.set.Acquire(i), a)
}

// CanPlace implements [power.Placer]: one shard has room.
func (s *sharded) CanPlace(r alloc.Request, freed []device.Addr) bool {
	n, _ := s.sum(func(part alloc.Inspector) (device.Size, error) {
		if power.CanPlace(part, r, freed) {
			return 1, nil
		}
		return 0, nil
	})
	return n > 0
}

func (s *sharded) Compact(may func(alloc.Chunk) bool, moved func(from, to alloc.Block)) (device.Size, error) {
	return s.sum(func(part alloc.Inspector) (device.Size, error) { return power.Compact(part, may, moved) })
}

func (s *sharded) Mark(text string) {
	s.set.Lock()
	defer s.set.Unlock()
	_ = s.each(func(part alloc.Strategy) error { return power.Mark(part, text) }) // as above
}

// Plan implements [power.Planner]. Each shard gets the calls of all shards.
func (s *sharded) Plan(f power.Forecast) {
	s.set.Lock()
	defer s.set.Unlock()
	_ = s.each(func(part alloc.Strategy) error { return power.Plan(part, f) }) // as above
}
