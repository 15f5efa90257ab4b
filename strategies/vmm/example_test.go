package vmm_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/vmm"
)

// Two holes that are too small for a request, apart from each other, serve it all the same: their
// pages move to where they are wanted.
func Example() {
	gpu, err := sim.New(sim.Config{Capacity: 10 * device.MiB})
	if err != nil {
		panic(err)
	}
	a, err := vmm.New(gpu, vmm.Config{RangeBytes: 16 * device.MiB})
	if err != nil {
		panic(err)
	}
	var blocks []alloc.Block
	for range 5 {
		b, err := a.Alloc(alloc.Request{Size: 2 * device.MiB})
		if err != nil {
			panic(err)
		}
		blocks = append(blocks, b)
	}
	for _, b := range []alloc.Block{blocks[1], blocks[3]} {
		if err := a.Free(b.Addr); err != nil {
			panic(err)
		}
	}
	b, err := a.Alloc(alloc.Request{Size: 4 * device.MiB})
	if err != nil {
		panic(err)
	}
	fmt.Println("granted", b.Size, "at", b.Addr)
	for c := range a.Walk {
		fmt.Println(c.Addr, c.Size, c.State)
	}
	// Output:
	// granted 4MiB at 0x7f0000a00000
	// 0x7f0000000000 2MiB live
	// 0x7f0000200000 2MiB unmapped
	// 0x7f0000400000 2MiB live
	// 0x7f0000600000 2MiB unmapped
	// 0x7f0000800000 2MiB live
	// 0x7f0000a00000 4MiB live
	// 0x7f0000e00000 2MiB unmapped
}
