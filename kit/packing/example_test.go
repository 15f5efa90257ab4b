package packing_test

import (
	"fmt"
	"math"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/packing"
)

// A buffer that lies at 4 already is an obstacle: the others are placed around it.
func ExampleProblem_Pack() {
	p, err := packing.New([]packing.Buffer{
		{Lower: 0, Upper: 10, Size: 4}, // fixed
		{Lower: 0, Upper: 5, Size: 3},
		{Lower: 2, Upper: 10, Size: 5},
		{Lower: 6, Upper: 8, Size: 2},
	})
	if err != nil {
		panic(err)
	}
	offsets := []device.Size{4, 0, 0, 0}
	k := p.Pack([]int32{2, 1, 3}, []int32{0}, offsets, math.MaxUint64)
	fmt.Println("offsets", offsets, "height", k.Height, "lower bound", p.LowerBound())
	// Output:
	// offsets [4B 0B 8B 0B] height 13B lower bound 12B
}
