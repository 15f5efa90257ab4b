package site_test

import (
	"fmt"
	"log"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/show/site"
	"github.com/vramyard/vramyard/harness/study/board"
	"github.com/vramyard/vramyard/harness/study/sweep"
	"github.com/vramyard/vramyard/strategies"
)

// The files of a board with one strategy on one trace.
func Example() {
	setup, err := strategies.All().Lookup("bestfit", nil)
	if err != nil {
		log.Fatal(err)
	}
	r := sweep.Result{Target: "sim", Search: sweep.Minimum, Semantics: setup.Semantics}
	r.Strategy, r.Trace, r.Starts, r.Completed = "bestfit", "training", true, true
	r.LowerBound, r.MinCapacity, r.DeviceCalls = 100*device.MiB, new(104*device.MiB), 1
	b, err := board.Collect(sweep.Results{Traces: []sweep.Result{r}}, "", strategies.All())
	if err != nil {
		log.Fatal(err)
	}
	b.Rank(0)
	files, err := site.Files(b, site.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(files), "files, first", files[0].Name)
	// Output: 14 files, first index.html
}
