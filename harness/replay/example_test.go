package replay_test

import (
	"fmt"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

func ExampleRun() {
	tr, err := trace.Read(strings.NewReader("a 1 30MiB\na 2 3MiB\nf 1\na 3 40MiB\n"), "step.trace", trace.Options{})
	if err != nil {
		panic(err)
	}
	setup, err := strategies.All().Lookup("caching", nil)
	if err != nil {
		panic(err)
	}
	gpu, err := sim.New(sim.Config{Capacity: 64 * device.MiB})
	if err != nil {
		panic(err)
	}
	r, err := replay.Run(tr, setup, gpu, replay.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(r.Events, r.Peak.Requested, r.Peak.Reserved, r.OOMs)
	// Output: 4 43MiB 60MiB 0
}
