package slab_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/slab"
)

func ExampleLearn() {
	// A trace of a few sizes that no family of classes fits.
	asked := []slab.SizeCount{{Size: 1000, Count: 500}, {Size: 1040, Count: 300}, {Size: 5000, Count: 40},
		{Size: 70000, Count: 3}}
	classes := slab.Learn(asked, 3)
	fmt.Println(classes)

	gpu, err := sim.New(sim.Config{})
	if err != nil {
		panic(err)
	}
	a, err := slab.New(gpu, slab.Config{ClassSizes: classes})
	if err != nil {
		panic(err)
	}
	for _, size := range []device.Size{1000, 5000, 70000} {
		b, err := a.Alloc(alloc.Request{Size: size})
		if err != nil {
			panic(err)
		}
		fmt.Println("granted", b.Size, "at", b.Addr)
	}
	// Output:
	// [1.02KiB 4.88KiB 68.36KiB]
	// granted 1.25KiB at 0x7f0000000000
	// granted 5KiB at 0x7f0000200000
	// granted 68.50KiB at 0x7f0000400000
}
