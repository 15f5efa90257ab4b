package buddy_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/buddy"
)

// A region of 13 blocks of 64 KiB is cut by Fibonacci numbers, and merges to a whole again.
func Example() {
	gpu, err := sim.New(sim.Config{})
	if err != nil {
		panic(err)
	}
	a, err := buddy.New(gpu, buddy.Config{
		Family: buddy.Fibonacci, BlockBytes: 64 * device.KiB, RegionBytes: 13 * 64 * device.KiB,
	})
	if err != nil {
		panic(err)
	}
	b, err := a.Alloc(alloc.Request{Size: 100 * device.KiB})
	if err != nil {
		panic(err)
	}
	for c := range a.Walk {
		fmt.Println(c.Addr, c.Size, c.State)
	}
	if err := a.Free(b.Addr); err != nil {
		panic(err)
	}
	fmt.Println("largest hole", a.LargestFree())
	// Output:
	// 0x7f0000000000 512KiB free
	// 0x7f0000080000 192KiB free
	// 0x7f00000b0000 128KiB live
	// largest hole 832KiB
}
