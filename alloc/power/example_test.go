package power_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/caching"
)

// A freed block stays cached until the strategy is trimmed.
func ExampleTrim() {
	gpu, err := sim.New(sim.Config{Capacity: 64 * device.MiB})
	if err != nil {
		panic(err)
	}
	s, err := caching.New(gpu, caching.Config{})
	if err != nil {
		panic(err)
	}
	block, err := s.Alloc(alloc.Request{Size: 30 * device.MiB})
	if err != nil {
		panic(err)
	}
	if err := s.Free(block.Addr); err != nil {
		panic(err)
	}
	fmt.Println(power.LargestFree(s))
	fmt.Println(power.Trim(s))
	// Output:
	// 30MiB
	// 30MiB <nil>
}
