package tlsf_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/tlsf"
)

// The hole of 8.25 KiB is of the class above that of 8 KiB, so it serves without being looked at.
func Example() {
	gpu, err := sim.New(sim.Config{})
	if err != nil {
		panic(err)
	}
	a, err := tlsf.New(gpu, tlsf.Config{Limit: 64 * device.KiB})
	if err != nil {
		panic(err)
	}
	first, err := a.Alloc(alloc.Request{Size: 8448})
	if err != nil {
		panic(err)
	}
	if _, err := a.Alloc(alloc.Request{Size: device.KiB}); err != nil {
		panic(err)
	}
	if err := a.Free(first.Addr); err != nil {
		panic(err)
	}
	b, err := a.Alloc(alloc.Request{Size: 8 * device.KiB})
	if err != nil {
		panic(err)
	}
	fmt.Println("granted", b.Size, "at", b.Addr)
	for c := range a.Walk {
		fmt.Println(c.Addr, c.Size, c.State, "class", c.Class)
	}
	// Output:
	// granted 8KiB at 0x7f0000000000
	// 0x7f0000000000 8KiB live class -1
	// 0x7f0000002000 256B free class 1
	// 0x7f0000002100 1KiB live class -1
	// 0x7f0000002500 54.75KiB free class 118
}
