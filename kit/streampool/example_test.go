package streampool_test

import (
	"fmt"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/kit/streampool"
)

// The stream that freed a block may have it at once. Another stream waits until the work before the
// free is done.
func Example() {
	gpu, err := sim.New(sim.Config{})
	if err != nil {
		panic(err)
	}
	pool := streampool.New(gpu, streampool.Config{Region: 2 * device.MiB, ReuseFinished: true})
	alloc := func(s device.Stream) streampool.Handle {
		h, err := pool.Alloc(streampool.Request{Size: 2 * device.MiB, Stream: s})
		if err != nil {
			panic(err)
		}
		return h
	}
	h := alloc(1)
	if err := gpu.Work(1, 1); err != nil {
		panic(err)
	}
	pool.Free(h, 1)
	again := alloc(1)
	fmt.Println("stream 1: regions", pool.Stats().Regions)
	pool.Free(again, 1)
	alloc(2)
	fmt.Println("stream 2: regions", pool.Stats().Regions)
	if err := gpu.Drain(1); err != nil {
		panic(err)
	}
	alloc(2)
	fmt.Println("stream 2 later: regions", pool.Stats().Regions)
	// Output:
	// stream 1: regions 1
	// stream 2: regions 2
	// stream 2 later: regions 2
}
