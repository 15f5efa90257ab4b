package regions_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/kit/regions"
)

// A pool of kind Doubling reserves regions of twice the last size, and counts them in the
// statistics of the strategy.
func ExamplePool() {
	gpu, err := sim.New(sim.Config{})
	if err != nil {
		panic(err)
	}
	var stats alloc.Stats
	pool := regions.NewPool(gpu, &stats, regions.Policy{
		Kind: regions.Doubling, Region: 2 * device.MiB, Limit: 16 * device.MiB, Quantum: 256,
	})
	for range 4 {
		r, err := pool.Grow(device.MiB, 256, 0)
		fmt.Println(r.Size, err)
	}
	fmt.Println(stats.Regions, "regions of", stats.Reserved)
	// Output:
	// 2MiB <nil>
	// 4MiB <nil>
	// 8MiB <nil>
	// 2MiB <nil>
	// 4 regions of 16MiB
}
