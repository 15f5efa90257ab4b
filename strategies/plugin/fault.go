package plugin

import "fmt"

// Fault is what a plug-in did that no allocator may do. The instance that did it has ended: every
// call after that returns the same Fault.
type Fault struct {
	Call   uint64 // number of the call of the plug-in, from 1
	Doing  string // the call, as a person would write it
	What   string // what it did
	Broken string // invariant of docs/invariants.md that this breaks: "I10"
}

// Error implements error. It is one line.
func (f *Fault) Error() string {
	return fmt.Sprintf("plugin: call %d, %s: %s", f.Call, f.Doing, f.What)
}

// Invariant returns the invariant that is broken, by its number in docs/invariants.md.
func (f *Fault) Invariant() string { return f.Broken }

// The invariants that faults break, by their numbers in docs/invariants.md.
const (
	brokenDisjoint   = "I10" // two live blocks share a byte
	brokenContained  = "I11" // a block lies where there is no memory
	brokenAligned    = "I12" // a block starts at the wrong place
	brokenNoPanic    = "I35" // the process ended, or something was thrown where nothing may be
	brokenTerminates = "I36" // a call does not return
)
