package stitch_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/stitch"
)

// Two holes of 4 MiB serve a request of 8 MiB, though a live block lies between them.
func Example() {
	gpu, err := sim.New(sim.Config{})
	if err != nil {
		panic(err)
	}
	a, err := stitch.New(gpu, stitch.Config{})
	if err != nil {
		panic(err)
	}
	var blocks []alloc.Block
	for range 3 {
		b, err := a.Alloc(alloc.Request{Size: 4 * device.MiB})
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
	b, err := a.Alloc(alloc.Request{Size: 8 * device.MiB})
	if err != nil {
		panic(err)
	}
	fmt.Println("granted", b.Size, "at", b.Addr, "with", a.Stats().Reserved, "reserved")
	for c := range a.Walk {
		fmt.Println(c.Addr, c.Size, c.State)
	}
	// Output:
	// granted 8MiB at 0x7f0000c00000 with 12MiB reserved
	// 0x7f0000000000 4MiB aliased
	// 0x7f0000400000 4MiB live
	// 0x7f0000800000 4MiB aliased
	// 0x7f0000c00000 8MiB live
}
