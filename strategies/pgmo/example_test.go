package pgmo_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/pgmo"
)

// The sample has 4 KiB and then 2 KiB in each iteration, never both at once: they share a place.
func Example() {
	gpu, err := sim.New(sim.Config{})
	if err != nil {
		panic(err)
	}
	a, err := pgmo.New(gpu, pgmo.Config{})
	if err != nil {
		panic(err)
	}
	a.Plan(sample())
	a.Mark("iter 0")
	for _, n := range []device.Size{4096, 2048} {
		b, err := a.Alloc(alloc.Request{Size: n})
		if err != nil {
			panic(err)
		}
		fmt.Println(b.Size, "at", b.Addr)
		if err := a.Free(b.Addr); err != nil {
			panic(err)
		}
	}
	// Output:
	// 4KiB at 0x7f0000000000
	// 2KiB at 0x7f0000000000
}
