package wrap

import (
	"sync/atomic"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/internal/invariants"
)

// busy is a lock that panics instead of waiting.
type busy struct {
	held atomic.Bool
	name string // of the strategy
}

func (b *busy) Lock() {
	if !b.held.CompareAndSwap(false, true) {
		panic(b.name + ": entered by two goroutines at once, or from inside its own Walk")
	}
}

func (b *busy) Unlock() { b.held.Store(false) }

// Exclusive returns s. In builds with the tag "invariants" it returns s behind a guard: a call that
// begins before another one has returned panics, with name at the start of the message. Such a call
// comes from a second goroutine, or from a callback of Walk, WalkFree or Compact. A strategy that
// is safe for concurrent use is returned unchanged.
//
// [setting.Setup.New] applies it to every strategy that it builds.
func Exclusive(name string, s alloc.Strategy) alloc.Strategy {
	if !invariants.Enabled || power.Has(s, power.PowerConcurrent) {
		return s
	}
	return &exclusive{Forward(s, &busy{name: name})}
}

// exclusive is a strategy whose calls must not overlap.
type exclusive struct{ Forwarder }

func (e *exclusive) FreeRef(b alloc.Block) error { return e.freeRef(b) }
