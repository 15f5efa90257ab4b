package dlmalloc_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/dlmalloc"
)

// Small requests in series are cut from one chunk, the designated victim, and lie side by side.
func Example() {
	gpu, err := sim.New(sim.Config{})
	if err != nil {
		panic(err)
	}
	a, err := dlmalloc.New(gpu, dlmalloc.Config{Limit: 64 * device.KiB})
	if err != nil {
		panic(err)
	}
	hole, err := a.Alloc(alloc.Request{Size: 2 * device.KiB})
	if err != nil {
		panic(err)
	}
	if _, err := a.Alloc(alloc.Request{Size: device.KiB}); err != nil {
		panic(err)
	}
	if err := a.Free(hole.Addr); err != nil {
		panic(err)
	}
	for range 2 {
		if _, err := a.Alloc(alloc.Request{Size: 512}); err != nil {
			panic(err)
		}
	}
	names := map[uint8]string{dlmalloc.OwnerDV: "dv", dlmalloc.OwnerTop: "top"}
	for c := range a.Walk {
		if c.State == alloc.Free {
			fmt.Println(c.Addr, c.Size, names[c.Owner])
		}
	}
	// Output:
	// 0x7f0000000400 1KiB dv
	// 0x7f0000000c00 61KiB top
}
