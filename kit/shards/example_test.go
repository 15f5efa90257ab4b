package shards_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/kit/shards"
	"github.com/vramyard/vramyard/strategies/tlsf"
)

// Two strategies share a device. A block is freed where it lies, and the peak counts both.
func Example() {
	dev, err := sim.New(sim.Config{Capacity: device.MiB})
	if err != nil {
		fmt.Println(err)
		return
	}
	shared := shards.NewDevice(dev)
	set := shards.NewSet(shared)
	for i := range 2 {
		s, err := tlsf.New(shared.Part(i), tlsf.Config{Limit: 512 * device.KiB})
		if err != nil {
			fmt.Println(err)
			return
		}
		set.Add(s)
	}
	for i := range 2 {
		b, err := set.Alloc(i, alloc.Request{Size: 1024})
		if err != nil {
			fmt.Println(err)
			return
		}
		held, _ := shared.Find(b.Addr)
		fmt.Println("in shard", held.Shard)
		if i == 0 {
			err = set.Free(held.Shard, b.Addr)
		}
		if err != nil {
			fmt.Println(err)
		}
	}
	stats := set.Stats()
	fmt.Println(stats.Allocs, stats.Live, stats.PeakRequested)
	// Output:
	// in shard 0
	// in shard 1
	// 2 1 1KiB
}
