package planted

import "slices"

// Judge says which look of the property suite is meant to catch a bug.
type Judge uint8

// The judges.
const (
	ByCalls     Judge = iota // what generated calls show
	ByFaults                 // the same while the device refuses one call after the other
	ByHeap                   // the count of what the warm path takes from the heap
	ByRelations              // what several instances in lockstep show
)

// Setting is a strategy in one configuration on one simulated device.
type Setting struct {
	Strategy string // as the catalogue names it, such as bfc:growth
	Config   string // JSON over the preset's
	Device   string // JSON of the simulated device
}

// Bug is one bug that can be planted.
type Bug struct {
	ID      ID       // its name; one bug may be looked for in several settings
	Setting Setting  // where it is looked for
	Doc     string   // what goes wrong, in a line
	Breaks  []string // invariants that Minimal breaks; the suite must report one of them, or one of Or
	Or      []string // invariants that other calls may break first
	Minimal string   // the least calls that show the bug, one a line
	Judge   Judge    // who is meant to catch it
	Nth     uint64   // device call that is refused when Minimal is run; 0 for none
}

// Bugs returns every bug, by package.
func Bugs() []Bug {
	return slices.Concat(shared(), bfcMemory(), bfcBooks(), bfcModes(), buddyBugs(), runsBugs(), listsBugs(), cellsBugs(),
		slabbuddyBugs(), layersBugs(), tilesBugs(), bestfitBugs(), tlsfBugs(), stitchBugs(), vmmBugs(), directBugs(), bitmapsBugs(),
		streampoolBugs(), cachingBugs(), wrapped(), relations())
}
