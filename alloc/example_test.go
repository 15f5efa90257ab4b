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

// A chunk and the counters of a strategy print as text for people.
func ExampleChunk_String() {
	fmt.Println(alloc.Chunk{Addr: 0x7f0000000000, Size: 1024, Requested: 1000, State: alloc.Live, Class: alloc.NoClass,
		Tag: 7, ID: 3})
	fmt.Println(alloc.Chunk{Addr: 0x7f0000000400, Size: 5 << 20, Class: 14})
	// Output:
	// 0x7f0000000000 live     1KiB, requested 1000B, stream 0, tag 7, allocation 3
	// 0x7f0000000400 free     5MiB, class 14
}

func ExampleStats_String() {
	var s alloc.Stats
	s.RegionAdded(2 << 20)
	s.Granted(1000, 1024)
	s.Granted(5000, 5120)
	s.Freed(1000, 1024)
	fmt.Print(s)
	// Output:
	// requested  4.88KiB (5000 bytes), at most 5.86KiB
	// allocated  5KiB (5120 bytes), at most 6KiB
	// active     5KiB (5120 bytes), at most 6KiB
	// reserved   2MiB (2097152 bytes), at most 2MiB
	// limit      none; next region 0B
	// blocks     1 live, 2 granted, 1 freed, 0 refused; the largest 5KiB
	// regions    1 held, 1 reserved, 0 refused, 0 released
}
