package async_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/async"
)

// What stream 1 frees it may have again at once. Stream 2 is made to wait for it.
func Example() {
	gpu, err := sim.New(sim.Config{})
	if err != nil {
		panic(err)
	}
	a, err := async.New(gpu, async.Config{RegionBytes: 64 * device.KiB})
	if err != nil {
		panic(err)
	}
	b, err := a.Alloc(alloc.Request{Size: 64 * device.KiB, Stream: 1})
	if err != nil {
		panic(err)
	}
	if err := a.Free(b.Addr); err != nil {
		panic(err)
	}
	for c := range a.Walk {
		fmt.Println(c.Size, c.State, "for stream", c.Stream)
	}
	for _, s := range []device.Stream{1, 2} {
		b, err := a.Alloc(alloc.Request{Size: 48 * device.KiB, Stream: s})
		if err != nil {
			panic(err)
		}
		fmt.Println("granted to stream", s, "after", gpu.Usage().Calls[device.CallWait].Done, "waits")
		if err := a.Free(b.Addr); err != nil {
			panic(err)
		}
	}
	// Output:
	// 64KiB free for stream 1
	// granted to stream 1 after 0 waits
	// granted to stream 2 after 1 waits
}
