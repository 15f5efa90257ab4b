package recall_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/recall"
)

// Without a plan a block lies where a best fit would place it. The best fit does not need more
// memory in the iterations that follow the first one, so no plan is made.
func Example() {
	gpu, err := sim.New(sim.Config{})
	if err != nil {
		panic(err)
	}
	a, err := recall.NewRange(gpu, recall.Config{Limit: 64 * device.MiB})
	if err != nil {
		panic(err)
	}
	for range 3 {
		var activations []alloc.Block
		for layer := range 100 {
			b, err := a.Alloc(alloc.Request{Size: device.Size(1+layer%3) * device.KiB})
			if err != nil {
				panic(err)
			}
			activations = append(activations, b)
		}
		fmt.Println("the last activation lies at", activations[99].Addr)
		for _, b := range activations {
			if err := a.FreeRef(b); err != nil {
				panic(err)
			}
		}
	}
	fmt.Println(a.Recalled().Plans, "plans")
	// Output:
	// the last activation lies at 0x7f0000031800
	// the last activation lies at 0x7f0000031800
	// the last activation lies at 0x7f0000031800
	// 0 plans
}

// Two holes of 4 MiB serve a request of 8 MiB, though a live block lies between them. The next such
// request takes no device call.
func Example_pages() {
	gpu, err := sim.New(sim.Config{})
	if err != nil {
		panic(err)
	}
	a, err := recall.New(gpu, recall.Config{Map: recall.Pages})
	if err != nil {
		panic(err)
	}
	take := func(n device.Size) device.Addr {
		b, err := a.Alloc(alloc.Request{Size: n})
		if err != nil {
			panic(err)
		}
		return b.Addr
	}
	give := func(at device.Addr) {
		if err := a.Free(at); err != nil {
			panic(err)
		}
	}
	low, middle, high := take(4*device.MiB), take(4*device.MiB), take(4*device.MiB)
	give(low)
	give(high)
	for range 2 {
		at := take(8 * device.MiB)
		fmt.Println(a.Stats().Reserved, "reserved after", gpu.Usage().Calls.Total(), "device calls")
		give(at)
	}
	give(middle)
	// Output:
	// 12MiB reserved after 22 device calls
	// 12MiB reserved after 22 device calls
}
