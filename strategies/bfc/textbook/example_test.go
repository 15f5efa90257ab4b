package textbook_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/bfc/textbook"
)

// A hole of 2 KiB serves a request for 1,000 bytes and is split. A hole of 1.75 KiB is not, because
// its remainder would be smaller than the block.
func Example() {
	gpu, err := sim.New(sim.Config{})
	if err != nil {
		panic(err)
	}
	for _, hole := range []device.Size{2048, 1792} {
		a, err := textbook.New(gpu, textbook.Config{AllowGrowth: true, Limit: 64 * device.MiB})
		if err != nil {
			panic(err)
		}
		b, _ := a.Alloc(alloc.Request{Size: hole})
		_, _ = a.Alloc(alloc.Request{Size: 256}) // between the hole and the rest of the region
		if err := a.Free(b.Addr); err != nil {
			panic(err)
		}
		_, _ = a.Alloc(alloc.Request{Size: 1000})
		for c := range a.Walk {
			fmt.Println(c.State, "chunk of", c.Size, "in bin", c.Class)
		}
	}
	// Output:
	// live chunk of 1KiB in bin -1
	// free chunk of 1KiB in bin 2
	// live chunk of 256B in bin -1
	// free chunk of 2.00MiB in bin 12
	// live chunk of 1.75KiB in bin -1
	// live chunk of 256B in bin -1
	// free chunk of 2.00MiB in bin 12
}
