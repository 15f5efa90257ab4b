package direct_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/direct"
)

// Each block is a region of the device, which rounds its size up.
func Example() {
	gpu, err := sim.New(sim.Config{})
	if err != nil {
		panic(err)
	}
	a, err := direct.New(gpu, direct.Config{})
	if err != nil {
		panic(err)
	}
	for _, n := range []device.Size{1000, 3 * device.MiB} {
		b, err := a.Alloc(alloc.Request{Size: n})
		if err != nil {
			panic(err)
		}
		fmt.Println("granted", b.Size, "at", b.Addr)
		defer a.Free(b.Addr)
	}
	u := gpu.Usage()
	fmt.Println(u.Regions, "regions after", u.Calls[device.CallReserve].Done, "calls")
	// Output:
	// granted 1KiB at 0x7f0000000000
	// granted 3MiB at 0x7f0000200000
	// 2 regions after 2 calls
}
