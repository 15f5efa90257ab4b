package board_test

import (
	"fmt"
	"log"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/board"
	"github.com/vramyard/vramyard/harness/study/sweep"
	"github.com/vramyard/vramyard/strategies"
)

// Two strategies on one trace.
func Example() {
	var results []sweep.Result
	for strategy, minimum := range map[string]device.Size{"bestfit": 104 * device.MiB, "rmm": 110 * device.MiB} {
		setup, err := strategies.All().Lookup(strategy, nil)
		if err != nil {
			log.Fatal(err)
		}
		r := sweep.Result{Cell: strategy, Target: "sim", Search: sweep.Minimum, Semantics: setup.Semantics}
		r.Strategy, r.Trace, r.Starts = strategy, "training", true
		r.LowerBound, r.MinCapacity, r.DeviceCalls = 100*device.MiB, &minimum, 1
		results = append(results, r)
	}
	b, err := board.Collect(sweep.Results{Traces: results}, "", strategies.All())
	if err != nil {
		log.Fatal(err)
	}
	b.Rank(0)
	for _, l := range b.Tracks[0].Lines {
		fmt.Printf("%d %s %s\n", l.Place, l.Entry.Setup.Name, board.Times(*l.Mean))
	}
	// Output:
	// 1 bestfit 1.040
	// 2 rmm 1.100
}
