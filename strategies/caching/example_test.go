package caching_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/caching"
)

// With max_split_size_mb a large block serves only requests that are nearly as large. The string is
// the one of PYTORCH_CUDA_ALLOC_CONF.
func Example() {
	for _, conf := range []string{"", "max_split_size_mb:32"} {
		gpu, err := sim.New(sim.Config{Capacity: device.GiB})
		if err != nil {
			panic(err)
		}
		a, err := caching.New(gpu, caching.Config{Conf: conf})
		if err != nil {
			panic(err)
		}
		b, err := a.Alloc(alloc.Request{Size: 64 * device.MiB})
		if err != nil {
			panic(err)
		}
		if err := a.Free(b.Addr); err != nil {
			panic(err)
		}
		if _, err := a.Alloc(alloc.Request{Size: 3 * device.MiB}); err != nil {
			panic(err)
		}
		fmt.Printf("%q:\n", conf)
		for c := range a.Walk {
			fmt.Println(" ", c.Size, c.State)
		}
	}
	// Output:
	// "":
	//   3MiB live
	//   61MiB free
	// "max_split_size_mb:32":
	//   64MiB free
	//   3MiB live
	//   17MiB free
}
