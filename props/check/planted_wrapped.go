package check

import (
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/props/planted"
)

// plantedWrappers returns the bugs that are not in a strategy but around it. It is a function, not
// a variable, so that a build without bugs excludes them.
func plantedWrappers() map[planted.ID]func(wrap.Forwarder) alloc.Strategy {
	return map[planted.ID]func(wrap.Forwarder) alloc.Strategy{
		"wrapped/allocs-count-refused":   miscounts(func(s *alloc.Stats) { s.Allocs += s.OOMs }),
		"wrapped/refusals-of-the-device": miscounts(func(s *alloc.Stats) { s.OOMs = s.ReserveFailures }),
		"wrapped/live-is-all-ever":       miscounts(func(s *alloc.Stats) { s.Live = int(s.Allocs) }),
		"wrapped/requested-is-granted":   miscounts(func(s *alloc.Stats) { s.Requested = s.Allocated }),
		"wrapped/allocated-is-asked":     miscounts(func(s *alloc.Stats) { s.Allocated = s.Requested }),
		"wrapped/active-is-reserved":     miscounts(func(s *alloc.Stats) { s.Active = s.Reserved }),
		"wrapped/reserved-never-falls":   miscounts(func(s *alloc.Stats) { s.Reserved = s.PeakReserved }),
		"wrapped/peak-requested-follows": miscounts(func(s *alloc.Stats) { s.PeakRequested = s.Requested }),
		"wrapped/peak-allocated-follows": miscounts(func(s *alloc.Stats) { s.PeakAllocated = s.Allocated }),
		"wrapped/peak-active-is-held":    miscounts(func(s *alloc.Stats) { s.PeakActive = s.PeakReserved }),
		"wrapped/peak-reserved-follows":  miscounts(func(s *alloc.Stats) { s.PeakReserved = s.Reserved }),
		"wrapped/largest-is-the-peak":    miscounts(func(s *alloc.Stats) { s.LargestAlloc = s.PeakAllocated }),
		"wrapped/regions-never-fewer":    miscounts(func(s *alloc.Stats) { s.Regions = int(s.Reserves) }),
		"wrapped/reserves-are-regions":   miscounts(func(s *alloc.Stats) { s.Reserves = uint64(s.Regions) }),
		"wrapped/failures-are-refusals":  miscounts(func(s *alloc.Stats) { s.ReserveFailures = s.OOMs }),
		"wrapped/releases-uncounted":     miscounts(func(s *alloc.Stats) { s.Releases = 0 }),

		"wrapped/frees-outlive-reset": func(f wrap.Forwarder) alloc.Strategy { return &freesForEver{Forwarder: f} },
		"wrapped/freed-is-pending":    func(f wrap.Forwarder) alloc.Strategy { return &neverFree{Forwarder: f} },
		"wrapped/hole-is-free-bytes":  func(f wrap.Forwarder) alloc.Strategy { return &oneHole{f} },
		"wrapped/search-backwards": searches(func(all []alloc.Chunk) []alloc.Chunk {
			slices.Reverse(all)
			return all
		}),
		"wrapped/search-repeats": searches(func(all []alloc.Chunk) []alloc.Chunk {
			return append(all[:min(1, len(all))], all...)
		}),
		"wrapped/panics-on-null":  func(f wrap.Forwarder) alloc.Strategy { return &panicsOnNull{f} },
		"wrapped/look-moves":      func(f wrap.Forwarder) alloc.Strategy { return &grantsMoreAfterWalk{Forwarder: f} },
		"wrapped/free-takes-room": func(f wrap.Forwarder) alloc.Strategy { return &logsFrees{Forwarder: f} },
		"wrapped/walk-takes-room": func(f wrap.Forwarder) alloc.Strategy { return &copiesWalk{f} },
	}
}

// miscounting is a strategy that falsifies the statistics it returns.
type miscounting struct {
	wrap.Forwarder
	change func(*alloc.Stats)
}

// miscounts returns a wrapper that falsifies the statistics of a strategy.
func miscounts(change func(*alloc.Stats)) func(wrap.Forwarder) alloc.Strategy {
	return func(f wrap.Forwarder) alloc.Strategy { return &miscounting{f, change} }
}

func (m *miscounting) Stats() alloc.Stats {
	s := m.Forwarder.Stats()
	m.change(&s)
	return s
}

// freesForEver is a strategy whose count of frees survives a reset.
type freesForEver struct {
	wrap.Forwarder
	cleared uint64
}

func (f *freesForEver) ClearStats() {
	f.cleared = f.Stats().Frees
	_ = power.ClearStats(&f.Forwarder) // the caller asked power.Has
}

func (f *freesForEver) Stats() alloc.Stats {
	s := f.Forwarder.Stats()
	s.Frees += f.cleared
	return s
}

// neverFree is a strategy that keeps what is freed pending.
type neverFree struct {
	wrap.Forwarder
	pending []alloc.Block
	asked   device.Size // by the requests for these
	cleared int         // of these, freed before the last reset

	peakRequested, peakAllocated device.Size
}

func (n *neverFree) Alloc(r alloc.Request) (alloc.Block, error) {
	b, err := n.Forwarder.Alloc(r)
	n.raise()
	return b, err
}

// raise raises the peaks to the current values.
func (n *neverFree) raise() {
	s := n.Stats()
	n.peakRequested, n.peakAllocated = max(n.peakRequested, s.Requested), max(n.peakAllocated, s.Allocated)
}

func (n *neverFree) Free(a device.Addr) error {
	var found alloc.Chunk
	for c := range n.Walk {
		if c.Addr == a && c.State == alloc.Live {
			found = c
		}
	}
	if found.Size == 0 {
		return alloc.ErrInvalidFree
	}
	n.pending = append(n.pending, alloc.Block{Addr: a, Size: found.Size})
	n.asked += found.Requested
	return nil
}

// isPending reports whether a chunk is a block that was freed.
func (n *neverFree) isPending(c alloc.Chunk) bool {
	return slices.Contains(n.pending, alloc.Block{Addr: c.Addr, Size: c.Size})
}

func (n *neverFree) ClearStats() {
	_ = power.ClearStats(&n.Forwarder) // the caller asked power.Has
	n.cleared, n.peakRequested, n.peakAllocated = len(n.pending), 0, 0
	n.raise()
}

func (n *neverFree) Walk(yield func(alloc.Chunk) bool) {
	n.Forwarder.Walk(func(c alloc.Chunk) bool {
		if n.isPending(c) {
			c.State = alloc.Pending
		}
		return yield(c)
	})
}

func (n *neverFree) Stats() alloc.Stats {
	s := n.Forwarder.Stats()
	s.Frees += uint64(len(n.pending) - n.cleared)
	s.Live -= len(n.pending)
	s.Requested -= n.asked
	for _, b := range n.pending {
		s.Allocated -= b.Size
	}
	s.PeakRequested, s.PeakAllocated = n.peakRequested, n.peakAllocated
	return s
}

// oneHole is a strategy that reports all free bytes as one hole.
type oneHole struct{ wrap.Forwarder }

func (o *oneHole) LargestFree() (n device.Size) {
	for c := range o.Walk {
		if c.State == alloc.Free {
			n += c.Size
		}
	}
	return n
}

// searcher is a strategy that reports another search order than it uses.
type searcher struct {
	wrap.Forwarder
	change func([]alloc.Chunk) []alloc.Chunk
}

// searches returns a wrapper that changes the reported search order.
func searches(change func([]alloc.Chunk) []alloc.Chunk) func(wrap.Forwarder) alloc.Strategy {
	return func(f wrap.Forwarder) alloc.Strategy { return &searcher{f, change} }
}

func (s *searcher) WalkFree(yield func(alloc.Chunk) bool) {
	var told []alloc.Chunk
	power.WalkFree(&s.Forwarder, func(c alloc.Chunk) bool {
		told = append(told, c)
		return true
	})
	for _, c := range s.change(told) {
		if !yield(c) {
			return
		}
	}
}

// panicsOnNull is a strategy that panics on the free of a null block.
type panicsOnNull struct{ wrap.Forwarder }

func (s *panicsOnNull) Free(a device.Addr) error {
	if a == 0 {
		panic("null")
	}
	return s.Forwarder.Free(a)
}

// grantsMoreAfterWalk is a strategy that grants more after an inspection.
type grantsMoreAfterWalk struct {
	wrap.Forwarder
	seen bool
}

func (s *grantsMoreAfterWalk) Alloc(r alloc.Request) (alloc.Block, error) {
	if s.seen && r.Size <= power.MaxRequest(&s.Forwarder)/2 {
		r.Size *= 2
	}
	s.seen = false
	return s.Forwarder.Alloc(r)
}

func (s *grantsMoreAfterWalk) WalkFree(yield func(alloc.Chunk) bool) {
	s.seen = true
	power.WalkFree(&s.Forwarder, yield)
}

// logsFrees is a strategy that appends every free to a list.
type logsFrees struct {
	wrap.Forwarder
	freed []device.Addr
}

func (d *logsFrees) Free(a device.Addr) error {
	d.freed = append(d.freed, a)
	return d.Forwarder.Free(a)
}

// copiesWalk is a strategy that copies the chunks of a walk before it shows them.
type copiesWalk struct{ wrap.Forwarder }

func (s *copiesWalk) Walk(yield func(alloc.Chunk) bool) {
	for _, c := range slices.Collect(s.Forwarder.Walk) {
		if !yield(c) {
			return
		}
	}
}
