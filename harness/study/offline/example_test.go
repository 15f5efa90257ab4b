package offline_test

import (
	"fmt"

	"github.com/vramyard/vramyard/harness/study/offline"
)

func Example() {
	p, err := offline.New([]offline.Buffer{
		{ID: 1, Lower: 0, Upper: 2, Size: 4},
		{ID: 2, Lower: 1, Upper: 3, Size: 2},
		{ID: 3, Lower: 2, Upper: 4, Size: 4},
	})
	if err != nil {
		panic(err)
	}
	s := p.Greedy(offline.BySize)
	fmt.Println(s.Offsets, s.Height, s.Optimal, p.Validate(s))
	// Output: [0B 4B 0B] 6B true <nil>
}
