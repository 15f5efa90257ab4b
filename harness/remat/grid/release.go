package grid

import (
	"fmt"
	"strings"

	"github.com/vramyard/vramyard/harness/remat"
)

// Release is the settings that reproduce a release of MegEngine with its defaults.
type Release struct {
	Name      string // version
	Heuristic string // its heuristic
	Ladder    string // its steps after a refused request
	Settings         // Limit and Seed are zero
}

// Releases returns the known releases of MegEngine, oldest first. Release 1.4 evicts only above a
// threshold that its user sets; here it is 0.8 of the budget.
func Releases() []Release {
	const since16 = remat.AllQuirks
	before16 := since16 &^ (remat.QuirkResident | remat.QuirkHalf | remat.QuirkUncounted)
	common := Settings{Liveness: "mge-refcount", Defrag: "bounce", Sampling: "none", MinEvictee: "1MiB,cut",
		ParentOrder: ParentOrders()[0]}
	old, recent := common, common
	old.Trigger, old.Quirks = "threshold:0.8", before16.String()
	recent.Trigger, recent.Quirks = "reserve", since16.String()
	return []Release{
		{"1.4", "mge", "defrag", old},
		{"1.6", "mge", "evict-first", recent},
	}
}

// ReleaseOf returns the release of a name.
func ReleaseOf(name string) (Release, error) {
	names := []string{}
	for _, r := range Releases() {
		if names = append(names, r.Name); r.Name == name {
			return r, nil
		}
	}
	return Release{}, fmt.Errorf("release %.40q of MegEngine: want %s", name, strings.Join(names, ", "))
}
