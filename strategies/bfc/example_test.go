package bfc_test

import (
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/bfc"
)

// A freed block merges with its neighbours, but memory that is free in two places does not
// serve one large request.
func Example() {
	card, err := sim.New(sim.Config{})
	if err != nil {
		panic(err)
	}
	a, err := bfc.New(card, bfc.Config{Limit: 16 * device.MiB})
	if err != nil {
		panic(err)
	}
	defer a.Close()

	var blocks []alloc.Block
	for range 4 {
		b, err := a.Alloc(alloc.Request{Size: 4 * device.MiB})
		if err != nil {
			panic(err)
		}
		blocks = append(blocks, b)
	}
	a.Free(blocks[0].Addr)
	a.Free(blocks[2].Addr)
	fmt.Println(a.Rendering())

	_, err = a.Alloc(alloc.Request{Size: 8 * device.MiB})
	why, _ := a.LastRefusal()
	fmt.Println(errors.Is(err, alloc.ErrOutOfMemory), why.Reason, why.Free, why.LargestHole)

	a.Free(blocks[1].Addr)
	b, err := a.Alloc(alloc.Request{Size: 8 * device.MiB})
	fmt.Println(b.Addr, b.Size, err)

	// Output:
	// _________________________*************************_________________________*************************
	// true limit reached 8MiB 4MiB
	// 0x7f0000000000 12MiB <nil>
}
