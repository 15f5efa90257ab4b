package stalloc_test

import (
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/stalloc"
)

// The profile has two blocks that are never live together, so the plan gives them one place.
func Example() {
	gpu, err := sim.New(sim.Config{})
	if err != nil {
		panic(err)
	}
	a, err := stalloc.New(gpu, stalloc.Config{})
	if err != nil {
		panic(err)
	}
	request := func(n device.Size) alloc.Request { return alloc.Request{Size: n} }
	a.Plan(slices.Values([]power.Expected{
		{Request: request(3 * device.MiB), Other: 1},
		{Kind: power.ExpectFree, Other: 0},
		{Request: request(2 * device.MiB), Other: -1},
	}))
	for range 2 {
		b, err := a.Alloc(request(3 * device.MiB))
		if err != nil {
			panic(err)
		}
		fmt.Println("granted at", b.Addr)
	}
	// The second request should have 2 MiB, so it goes to the fallback.
	fmt.Println(a.Stats().Reserved, "reserved")
	// Output:
	// granted at 0x7f0000000000
	// granted at 0x7f0000400000
	// 8MiB reserved
}
