package export_test

import (
	"fmt"
	"strings"

	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/show/export"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

// A replay becomes a memory snapshot, as PyTorch's viewer opens it.
func ExampleReplay() {
	tr, err := trace.Read(strings.NewReader("a 1 30MiB\na 2 3MiB\nf 1\n"), "step.trace", trace.Options{})
	if err != nil {
		panic(err)
	}
	setup, err := strategies.All().Lookup("caching", nil)
	if err != nil {
		panic(err)
	}
	gpu, err := sim.New(sim.Config{})
	if err != nil {
		panic(err)
	}
	run, err := export.Replay(tr, setup, gpu, export.Options{})
	if err != nil {
		panic(err)
	}
	snapshot, err := run.Snapshot()
	if err != nil {
		panic(err)
	}
	for _, s := range snapshot.Devices[0].Segments {
		fmt.Println(s.Total, len(s.Blocks))
	}
	// Output:
	// 31457280 1
	// 20971520 2
}
