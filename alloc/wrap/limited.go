package wrap

import (
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// limited is a strategy with a bound on its live bytes.
type limited struct {
	Forwarder
	limit   device.Size
	oom     uint64        // requests refused here since New or ClearStats
	refusal power.Refusal // the last request refused here
	last    bool          // the last refusal was made here
	closed  bool
}

// Limited returns s with a limit: a request that would raise the requested bytes of live blocks
// above limit fails with [alloc.ErrOutOfMemory] without reaching s. The limit applies to requested
// bytes, because the size that s grants is known only afterwards.
//
// Requests that s can never grant are passed on, so that they keep their error, except for
// alignments that s does not support.
func Limited(s alloc.Strategy, limit device.Size) (alloc.Strategy, error) {
	return &limited{Forwarder: Forward(s, nil), limit: limit}, nil
}

func (l *limited) Alloc(r alloc.Request) (alloc.Block, error) {
	if s := l.inner.Stats(); r.Size > l.limit-min(s.Requested, l.limit) && !l.closed && l.wellFormed(r) {
		l.oom++
		l.last = true
		l.refusal = power.Refusal{Reason: power.ReasonLimit, Request: r, LargestHole: power.LargestFree(l.inner),
			Free: s.Reserved - s.Active}
		return alloc.Block{}, alloc.ErrOutOfMemory
	}
	b, err := l.inner.Alloc(r)
	if err != nil {
		l.last = false
	}
	return b, err
}

func (l *limited) FreeRef(b alloc.Block) error { return l.freeRef(b) }

// wellFormed reports whether the strategy could grant r at another time.
func (l *limited) wellFormed(r alloc.Request) bool {
	return r.Size <= power.MaxRequest(l.inner) && (r.Align == 0 || device.IsPowerOfTwo(r.Align))
}

// CanPlace implements [power.Placer]: the requested bytes of the freed blocks do not count against
// the limit. O(chunks).
func (l *limited) CanPlace(r alloc.Request, freed []device.Addr) bool {
	if !l.closed && l.wellFormed(r) {
		held := l.inner.Stats().Requested
		for c := range l.inner.Walk {
			if c.State == alloc.Live && slices.Contains(freed, c.Addr) {
				held -= c.Requested
			}
		}
		if r.Size > l.limit-min(held, l.limit) {
			return false
		}
	}
	return power.CanPlace(l.inner, r, freed)
}

// Stats implements [alloc.Inspector]; refusals made here count as out of memory.
func (l *limited) Stats() alloc.Stats {
	s := l.inner.Stats()
	s.OOMs += l.oom
	return s
}

func (l *limited) Close() error {
	l.closed = true
	return l.inner.Close()
}

// Has adds [power.PowerFailure]: the wrapper records its own refusals.
func (l *limited) Has(p power.Power) bool { return p == power.PowerFailure || l.Forwarder.Has(p) }

func (l *limited) LastRefusal() (power.Refusal, bool) {
	if l.last {
		return l.refusal, true
	}
	return power.LastRefusal(l.inner)
}

func (l *limited) ClearStats() {
	l.oom = 0
	_ = power.ClearStats(l.inner) // the caller has checked power.Has
}
