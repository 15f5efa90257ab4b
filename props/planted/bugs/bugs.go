package bugs

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/props/planted"
)

// Judge is the part of the property suite that should find a bug.
type Judge uint8

// The judges.
const (
	ByCalls     Judge = iota // generated calls
	ByFaults                 // generated calls while the device refuses one call after the other
	ByHeap                   // the count of heap allocations on the warm path
	ByRelations              // several instances in lockstep
	ByCallers                // many callers at once
	ByLogs                   // generated op logs within a budget; the strategy is remat
	ByMisled                 // generated calls after a forecast, which Minimal gets of its own calls
	ByTrained                // generated calls after the steps of a training run, which are not in Minimal
)

// Setting is a strategy in one configuration on one simulated device, or remat in one
// configuration.
type Setting struct {
	Strategy string // as the catalogue names it, such as bfc:growth; or remat
	Config   string // JSON over the preset's; of remat.Config for remat
	Device   string // JSON of the simulated device; remat uses none
}

// Bug is one record of a plantable bug. A bug has one for each of its settings.
type Bug struct {
	ID      planted.ID // its name; one bug may be looked for in several settings
	Setting Setting    // where the suite looks for the bug
	Doc     string     // the mistake, in a line
	Breaks  []string   // invariants that Minimal breaks; the suite must report one of them, or one of Or
	Minimal string     // the least calls that show the bug, one a line
	Judge   Judge      // the part of the suite that should catch it
	Nth     uint64     // device call that is refused when Minimal is run; 0 for none
}

//go:embed *.txt
var texts embed.FS

// All returns the records of every bug, file by file.
//
// Precondition: the files are well formed; [Overlay] reports the first mistake as an error.
func All() (all []Bug) {
	read, err := readAll()
	if err != nil {
		panic(err)
	}
	for _, f := range read {
		all = append(all, f.bugs...)
	}
	return all
}

// Of returns the records of the bugs that are looked for in the named strategies, each with or
// without its preset; of every bug if none is named.
//
// Precondition: as for [All].
func Of(names ...string) []Bug {
	return slices.DeleteFunc(All(), func(b Bug) bool {
		bare, _, _ := strings.Cut(b.Setting.Strategy, ":")
		return len(names) > 0 && !slices.Contains(names, b.Setting.Strategy) && !slices.Contains(names, bare)
	})
}

// Edited returns the bugs that edits of the source plant.
func Edited() (map[planted.ID]bool, error) {
	read, err := readAll()
	if err != nil {
		return nil, err
	}
	edited := map[planted.ID]bool{}
	for _, f := range read {
		for _, e := range f.edits {
			for _, id := range e.bugs {
				edited[id] = true
			}
		}
	}
	return edited, nil
}

func readAll() (all []*file, err error) {
	entries, err := texts.ReadDir(".")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		text, err := texts.ReadFile(e.Name())
		if err != nil {
			return nil, err
		}
		f, err := parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("props/planted/bugs/%s:%w", e.Name(), err)
		}
		f.name = e.Name()
		all = append(all, f)
	}
	return all, nil
}
