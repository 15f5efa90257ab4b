package bestfit_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/bestfit"
)

// The hole of 9 KiB is not the smallest that serves 8 KiB, but hardly larger than the one of
// 8 KiB, and lies lower.
func Example() {
	gpu, err := sim.New(sim.Config{})
	if err != nil {
		panic(err)
	}
	a, err := bestfit.New(gpu, bestfit.Config{Limit: 64 * device.KiB})
	if err != nil {
		panic(err)
	}
	var blocks []alloc.Block
	for _, kib := range []device.Size{9, 1, 8, 1} {
		b, err := a.Alloc(alloc.Request{Size: kib * device.KiB})
		if err != nil {
			panic(err)
		}
		blocks = append(blocks, b)
	}
	for _, b := range []alloc.Block{blocks[0], blocks[2]} {
		if err := a.Free(b.Addr); err != nil {
			panic(err)
		}
	}
	b, err := a.Alloc(alloc.Request{Size: 8 * device.KiB})
	if err != nil {
		panic(err)
	}
	fmt.Println("granted", b.Size, "at", b.Addr)
	for c := range a.Walk {
		fmt.Println(c.Addr, c.Size, c.State)
	}
	// Output:
	// granted 8KiB at 0x7f0000000000
	// 0x7f0000000000 8KiB live
	// 0x7f0000002000 1KiB free
	// 0x7f0000002400 1KiB live
	// 0x7f0000002800 8KiB free
	// 0x7f0000004800 1KiB live
	// 0x7f0000004c00 45KiB free
}
