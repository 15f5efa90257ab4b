package grid_test

import (
	"fmt"

	"github.com/vramyard/vramyard/harness/remat/grid"
)

func ExampleParseRatios() {
	all, err := grid.ParseRatios("0.1:0.5:0.2,1")
	if err != nil {
		panic(err)
	}
	fmt.Println(all)
	// Output: [0.1 0.3 0.5 1.0]
}
