package rmm_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/rmm"
)

// A pool that starts empty grows by as much as it has. Stream 2 takes over what stream 1 freed, and
// waits for it.
func Example() {
	gpu, err := sim.New(sim.Config{})
	if err != nil {
		panic(err)
	}
	a, err := rmm.New(gpu, rmm.Config{InitialBytes: rmm.NoInitial})
	if err != nil {
		panic(err)
	}
	first, err := a.Alloc(alloc.Request{Size: 3 * device.MiB, Stream: 1})
	if err != nil {
		panic(err)
	}
	if _, err := a.Alloc(alloc.Request{Size: device.MiB, Stream: 1}); err != nil {
		panic(err)
	}
	if err := a.Free(first.Addr); err != nil {
		panic(err)
	}
	b, err := a.Alloc(alloc.Request{Size: 2500 * device.KiB, Stream: 2})
	if err != nil {
		panic(err)
	}
	fmt.Println("reused:", b.Addr == first.Addr, "waits:", gpu.Usage().Calls[device.CallWait].Done)
	for c := range a.Walk {
		fmt.Println(c.Addr, c.Size, c.State)
	}
	// Output:
	// reused: true waits: 1
	// 0x7f0000000000 2.44MiB live
	// 0x7f0000271000 572KiB free
	// 0x7f0000400000 1MiB live
	// 0x7f0000500000 2MiB free
}
