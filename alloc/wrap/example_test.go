package wrap_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/tlsf"
)

// A bound on the requested bytes lies inside a log of all calls.
func Example() {
	gpu, err := sim.New(sim.Config{Capacity: 64 * device.MiB})
	if err != nil {
		panic(err)
	}
	bare, err := tlsf.New(gpu, tlsf.Config{})
	if err != nil {
		panic(err)
	}
	bounded, err := wrap.Limited(bare, 4*device.MiB)
	if err != nil {
		panic(err)
	}
	s, err := wrap.Recorded(bounded, func(o wrap.Operation) { fmt.Println(o.Request.Size, o.Err) })
	if err != nil {
		panic(err)
	}
	for range 2 {
		_, _ = s.Alloc(alloc.Request{Size: 3 * device.MiB}) // reported by the log
	}
	// Output:
	// 3MiB <nil>
	// 3MiB alloc: out of memory
}
