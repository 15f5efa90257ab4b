package alloc_test

import (
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/tlsf"
)

func Example() {
	gpu, err := sim.New(sim.Config{Capacity: 4 * device.MiB})
	if err != nil {
		panic(err)
	}
	s, err := tlsf.New(gpu, tlsf.Config{})
	if err != nil {
		panic(err)
	}
	block, err := s.Alloc(alloc.Request{Size: 3 * device.MiB})
	if err != nil {
		panic(err)
	}
	_, err = s.Alloc(alloc.Request{Size: 2 * device.MiB})
	fmt.Println(errors.Is(err, alloc.ErrOutOfMemory))
	fmt.Println(s.Stats().Requested, s.Stats().Reserved)
	if err := s.Free(block.Addr); err != nil {
		panic(err)
	}
	fmt.Println(s.Close())
	// Output:
	// true
	// 3MiB 4MiB
	// <nil>
}
