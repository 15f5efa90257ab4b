//go:build invariants

package invariants

import "sync/atomic"

// Enabled says whether the dear checks run.
const Enabled = true

// Entry panics when two goroutines are inside one single-threaded object at once.
type Entry struct{ busy atomic.Bool }

// Enter marks the object as in use. It panics if it already is.
func (e *Entry) Enter(what string) {
	if !e.busy.CompareAndSwap(false, true) {
		panic(what + ": entered by two goroutines at once, or from inside its own Walk")
	}
}

// Leave ends the use that Enter began.
func (e *Entry) Leave() { e.busy.Store(false) }
