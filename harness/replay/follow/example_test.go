package follow_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/replay/follow"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

// A follower between a replay and its device counts the blocks in use and the memory held after
// each event.
func ExampleFollower() {
	t, err := trace.Read(strings.NewReader("a 1 1MiB\na 2 1MiB\nf 1\n"), "small.trace", trace.Options{})
	if err != nil {
		log.Fatal(err)
	}
	setup, err := strategies.All().Lookup("direct", nil)
	if err != nil {
		log.Fatal(err)
	}
	dev, err := sim.New(sim.Config{Capacity: device.GiB})
	if err != nil {
		log.Fatal(err)
	}
	tap := follow.NewTap(dev)
	f := follow.New(tap, follow.Watcher{})
	_, err = replay.Run(t, setup, tap, replay.Options{Observe: func(o replay.Observation) error {
		if o.Event < 0 {
			f.Begin(o.Strategy, false)
			return nil
		}
		if o.Of == nil { // the end of the replay
			return nil
		}
		err := f.Event(&o)
		fmt.Println(o.Of.Kind, o.Of.ID, "in use:", f.InUse(), "held:", tap.Held())
		return err
	}})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// alloc 1 in use: 1 held: 1MiB
	// alloc 2 in use: 2 held: 2MiB
	// free 1 in use: 1 held: 1MiB
}
