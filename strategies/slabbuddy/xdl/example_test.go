package xdl_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/slabbuddy/xdl"
)

func Example() {
	gpu, err := sim.New(sim.Config{})
	if err != nil {
		panic(err)
	}
	a, err := xdl.New(gpu, xdl.Config{})
	if err != nil {
		panic(err)
	}
	for _, size := range []device.Size{5000, 20000, device.GiB} {
		b, err := a.Alloc(alloc.Request{Size: size})
		if err != nil {
			panic(err)
		}
		fmt.Println(size, "requested,", b.Size, "granted,", gpu.Usage().Regions, "regions held")
	}
	// Output:
	// 4.88KiB requested, 8KiB granted, 1 regions held
	// 19.53KiB requested, 32KiB granted, 2 regions held
	// 1GiB requested, 1GiB granted, 3 regions held
}
