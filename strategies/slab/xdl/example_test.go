package xdl_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/slab/xdl"
)

func Example() {
	gpu, err := sim.New(sim.Config{})
	if err != nil {
		panic(err)
	}
	a, err := xdl.New(gpu, xdl.Config{
		RegionBytes: 512 * device.KiB, Segments: 2, UnitBytes: 4 * device.KiB,
	})
	if err != nil {
		panic(err)
	}
	for _, size := range []device.Size{10000, 100} {
		b, err := a.Alloc(alloc.Request{Size: size})
		if err != nil {
			panic(err)
		}
		fmt.Println("granted", b.Size, "at", b.Addr)
	}
	for c := range a.Walk {
		fmt.Println(c.Addr, c.Size, c.State, "class", c.Class)
	}
	// Output:
	// granted 12KiB at 0x7f0000000000
	// granted 4KiB at 0x7f0000040000
	// 0x7f0000000000 12KiB live class 3
	// 0x7f0000003000 244KiB free class 4
	// 0x7f0000040000 4KiB live class 1
	// 0x7f0000041000 252KiB free class 4
}
