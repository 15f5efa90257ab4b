package xdl_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/buddy/xdl"
)

func Example() {
	gpu, err := sim.New(sim.Config{})
	if err != nil {
		panic(err)
	}
	a, err := xdl.New(gpu, xdl.Config{RegionBytes: device.MiB, BlockBytes: 64 * device.KiB})
	if err != nil {
		panic(err)
	}
	b, err := a.Alloc(alloc.Request{Size: 100 * device.KiB})
	if err != nil {
		panic(err)
	}
	fmt.Println("granted", b.Size, "at", b.Addr)
	for c := range a.Walk {
		fmt.Println(c.Addr, c.Size, c.State, "order", c.Class)
	}
	// Output:
	// granted 128KiB at 0x7f0000000000
	// 0x7f0000000000 128KiB live order 1
	// 0x7f0000020000 128KiB free order 1
	// 0x7f0000040000 256KiB free order 2
	// 0x7f0000080000 512KiB free order 3
}
