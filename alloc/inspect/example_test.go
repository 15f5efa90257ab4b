package inspect_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/inspect"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies"
)

// full returns an allocator of a full device, which has refused a request.
func full() alloc.Strategy {
	gpu, err := sim.New(sim.Config{Capacity: 4 * device.MiB})
	if err != nil {
		panic(err)
	}
	setup, err := strategies.All().Lookup("caching", nil)
	if err != nil {
		panic(err)
	}
	s, err := setup.New(gpu)
	if err != nil {
		panic(err)
	}
	for tag, n := range []device.Size{1000, 700_000, 3 * device.MiB} {
		if _, err := s.Alloc(alloc.Request{Size: n, Tag: uint64(tag)}); err != nil {
			break
		}
	}
	return s
}

func ExampleAppendFailure() {
	fmt.Printf("%s", inspect.AppendFailure(full(), nil, nil))
	// Output:
	// refused 3MiB, rounded to 3MiB, alignment 0B, stream 0, tag 2: device refused
	// the device was asked for 20MiB: device: out of memory
	// free at the refusal: 1.33MiB, the largest chunk 1.33MiB
	// live blocks 2: requested 684.57KiB, rounded to 685KiB; active 685KiB, reserved 2MiB, regions 1, largest free chunk 1.33MiB
	//   tag 1: requested 683.59KiB, rounded to 684KiB, blocks 1
	//   tag 0: requested 1000B, rounded to 1KiB, blocks 1
}

func ExampleAppendHeap() {
	fmt.Printf("%s", inspect.AppendHeap(full(), nil))
	// Output:
	// live blocks 2: requested 684.57KiB, rounded to 685KiB; active 685KiB, reserved 2MiB, regions 1, largest free chunk 1.33MiB
	// region 0x7f0000000000
	//   0x7f0000000000 live     1KiB, class 0, requested 1000B, stream 0, tag 0
	//   0x7f0000000400 live     684KiB, class 0, requested 683.59KiB, stream 0, tag 1
	//   0x7f00000ab400 free     1.33MiB, class 0
}
