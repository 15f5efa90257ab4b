// Command newstrategy is a strategy of sixty lines with everything that it inherits: a
// first fit, compared with the strategies of the house. docs/extending.md tells how it
// came about.
//
//	newstrategy [TRACE]            compare on a recorded trace; default cpu_resnet50_train
//	newstrategy replay FILE        where first fit puts the blocks of a trace file
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/strategies"
)

// catalogue returns the strategies of the house and ours.
func catalogue() alloc.Catalogue {
	return append(strategies.All(), alloc.SpecOf("firstfit", "lowest address that fits", New))
}

// compareOn replays a recorded trace through some strategies and prints a table of them.
func compareOn(w io.Writer, recording string, names ...string) error {
	t, err := workload.OpenRecording(recording)
	if err != nil {
		return err
	}
	var setups []alloc.Setup
	for _, name := range names {
		s, err := catalogue().Lookup(name, nil)
		if err != nil {
			return err
		}
		setups = append(setups, s)
	}
	r, err := compare.Compare(context.Background(), []*trace.Trace{t}, setups, compare.Options{})
	if err != nil {
		return err
	}
	return report.CompareTables(w, r)
}

// replayFile replays a trace file through first fit and prints every placement: number,
// offset and size.
func replayFile(w io.Writer, path string) error {
	t, err := trace.Open(path, trace.Options{})
	if err != nil {
		return err
	}
	s, err := catalogue().Lookup("firstfit", nil)
	if err != nil {
		return err
	}
	dev, err := sim.New(sim.Config{})
	if err != nil {
		return err
	}
	_, err = replay.Run(t, s, dev, replay.Options{Placements: w})
	return err
}

func main() {
	var err error
	switch args := os.Args[1:]; {
	case len(args) == 2 && args[0] == "replay":
		err = replayFile(os.Stdout, args[1])
	case len(args) == 1:
		err = compareOn(os.Stdout, args[0], "bfc", "buddy:xdl", "firstfit")
	default:
		err = compareOn(os.Stdout, "cpu_resnet50_train", "bfc", "buddy:xdl", "firstfit")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "newstrategy:", err)
		os.Exit(1)
	}
}
