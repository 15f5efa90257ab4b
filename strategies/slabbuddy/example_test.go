package slabbuddy_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/slabbuddy"
)

func Example() {
	gpu, err := sim.New(sim.Config{})
	if err != nil {
		panic(err)
	}
	a, err := slabbuddy.New(gpu, slabbuddy.Config{})
	if err != nil {
		panic(err)
	}
	for _, size := range []device.Size{5000, 20000, 100000, device.GiB} {
		b, err := a.Alloc(alloc.Request{Size: size})
		if err != nil {
			panic(err)
		}
		fmt.Println(size, "requested,", b.Size, "granted,", a.Stats().Reserved, "held")
	}
	// Output:
	// 4.88KiB requested, 5KiB granted, 64KiB held
	// 19.53KiB requested, 20KiB granted, 320KiB held
	// 97.66KiB requested, 128KiB granted, 448KiB held
	// 1GiB requested, 1GiB granted, 1.00GiB held
}
