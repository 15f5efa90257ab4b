package blaze_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/slab/blaze"
)

// Each request is rounded up to a power of two, and a freed block serves the next request of its
// class.
func Example() {
	gpu, err := sim.New(sim.Config{})
	if err != nil {
		panic(err)
	}
	a, err := blaze.New(gpu, blaze.Config{RegionBytes: 16 * device.MiB, MaxClassBytes: device.MiB})
	if err != nil {
		panic(err)
	}
	for _, n := range []device.Size{1000, 5000, 600} {
		b, err := a.Alloc(alloc.Request{Size: n})
		if err != nil {
			panic(err)
		}
		fmt.Println(n, "in", b.Size, "at", b.Addr)
		if err := a.Free(b.Addr); err != nil {
			panic(err)
		}
	}
	// Output:
	// 1000B in 1KiB at 0x7f0000000000
	// 4.88KiB in 8KiB at 0x7f0000000400
	// 600B in 1KiB at 0x7f0000000000
}
