package main

import (
	"errors"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/strategies/bfc"
)

// Lifetimes is a two-ended arena. Blocks that are expected to be freed before the next mark of the
// program go to its high end, and all others to its low end. The expectation is the hint of the
// request, or else the lifetime of most blocks of its kind in the forecast.
type Lifetimes struct {
	wrap.Forwarder
	short   map[kind]int  // by kind: blocks of the forecast freed before the next mark minus all others
	last    alloc.Request // the last request, as the caller made it
	retries uint64        // requests that found no memory at their first end
}

// kind groups requests whose blocks are expected to have similar lifetimes.
type kind struct {
	size   device.Size
	stream device.Stream
	site   uint64
}

func kindOf(r alloc.Request) kind { return kind{r.Size, r.Stream, r.Origin.Site()} }

// New returns the strategy over src, without a forecast.
func New(src device.Source, c Config) (*Lifetimes, error) {
	arena, err := bfc.New(src, c.arena())
	if err != nil {
		return nil, err
	}
	return &Lifetimes{Forwarder: wrap.Forward(arena, nil)}, nil
}

// Has reports the powers of the type and of the arena.
func (l *Lifetimes) Has(p power.Power) bool { return power.Implements(l, p) || l.Forwarder.Has(p) }

// Plan implements [power.Planner].
func (l *Lifetimes) Plan(f power.Forecast) {
	type request struct {
		kind  kind
		marks int // marks before the request
	}
	var calls []request
	marks := 0
	l.short = map[kind]int{}
	for x := range f {
		now := request{kindOf(x.Request), marks}
		calls = append(calls, now)
		switch x.Kind {
		case power.ExpectMark:
			marks++
		case power.ExpectAlloc:
			l.short[now.kind]-- // until its free is seen
		case power.ExpectFree:
			if r := calls[x.Other]; r.marks == marks {
				l.short[r.kind] += 2
			}
		}
	}
}

// Mark implements [power.Informed]. Marks are ignored: the strategy uses the hints of requests.
func (*Lifetimes) Mark(string) {}

// ends returns the end that a request goes to, and the other one.
func (l *Lifetimes) ends(r alloc.Request) (first, second alloc.Hint) {
	life := r.Origin.Lifetime()
	if life == alloc.LifeMark || life == alloc.LifeUnknown && l.short[kindOf(r)] > 0 {
		return alloc.HintHigh, alloc.HintLow
	}
	return alloc.HintLow, alloc.HintHigh
}

// Alloc implements [alloc.Allocator]. An expectation may be wrong, so a request that finds no
// memory at its end tries the other.
func (l *Lifetimes) Alloc(r alloc.Request) (alloc.Block, error) {
	first, second := l.ends(r)
	l.last = r
	b, err := l.Forwarder.Alloc(to(first, r))
	if errors.Is(err, alloc.ErrOutOfMemory) {
		l.retries++
		b, err = l.Forwarder.Alloc(to(second, r))
	}
	return b, err
}

// Stats implements [alloc.Inspector]. The arena counts a request that tried both ends twice.
func (l *Lifetimes) Stats() alloc.Stats {
	s := l.Forwarder.Stats()
	s.OOMs -= l.retries
	return s
}

// ClearStats implements [power.Clearer].
func (l *Lifetimes) ClearStats() {
	_ = power.ClearStats(&l.Forwarder) // the arena has the power
	l.retries = 0
}

// LastRefusal implements [power.Failure].
func (l *Lifetimes) LastRefusal() (power.Refusal, bool) {
	why, ok := power.LastRefusal(&l.Forwarder)
	why.Request = l.last
	return why, ok
}

// CanPlace implements [power.Placer].
func (l *Lifetimes) CanPlace(r alloc.Request, freed []device.Addr) bool {
	return power.CanPlace(&l.Forwarder, to(alloc.HintLow, r), freed) ||
		power.CanPlace(&l.Forwarder, to(alloc.HintHigh, r), freed)
}
