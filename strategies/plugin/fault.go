package plugin

import "fmt"

// Fault is a violation of the allocator contract by a plug-in. The instance has ended: every later
// call returns the same Fault.
type Fault struct {
	Call   uint64 // number of the call of the plug-in, from 1
	Doing  string // the call in C syntax
	What   string // the violation
	Broken string // the violated invariant in docs/invariants.md, such as "I10"
}

// Error implements error, in one line.
func (f *Fault) Error() string {
	return fmt.Sprintf("plugin: call %d, %s: %s", f.Call, f.Doing, f.What)
}

// Invariant returns the number of the violated invariant in docs/invariants.md.
func (f *Fault) Invariant() string { return f.Broken }

// The invariants that faults violate, by their numbers in docs/invariants.md.
const (
	brokenDisjoint   = "I10" // two live blocks share a byte
	brokenContained  = "I11" // a block lies outside of memory
	brokenAligned    = "I12" // a block is misaligned
	brokenNoPanic    = "I35" // the process ended, or threw an exception where none is allowed
	brokenTerminates = "I36" // a call does not return
)
