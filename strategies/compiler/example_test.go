package compiler_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/compiler"
)

// The second iteration gets the addresses of the first without a device call.
func Example() {
	gpu, err := sim.New(sim.Config{})
	if err != nil {
		panic(err)
	}
	a, err := compiler.New(gpu, compiler.Config{})
	if err != nil {
		panic(err)
	}
	for _, mark := range []string{"iter 0", "iter 1"} {
		a.Mark(mark)
		b, err := a.Alloc(alloc.Request{Size: 20 * device.MiB})
		if err != nil {
			panic(err)
		}
		fmt.Println(b.Size, "at", b.Addr, "after", gpu.Usage().Calls.Total(), "device calls")
		if err := a.Free(b.Addr); err != nil {
			panic(err)
		}
	}
	// Output:
	// 24MiB at 0x7f0000000000 after 8 device calls
	// 24MiB at 0x7f0000000000 after 8 device calls
}
