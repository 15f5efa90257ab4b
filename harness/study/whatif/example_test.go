package whatif_test

import (
	"fmt"
	"strings"

	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/strategies"
)

func ExampleReadGrid() {
	const grid = `
- strategy: caching
  conf: ["", "expandable_segments:True"]
- strategy: bfc
`
	all, err := whatif.ReadGrid(strings.NewReader(grid), strategies.All())
	if err != nil {
		panic(err)
	}
	for _, s := range all {
		fmt.Println(s.Name)
	}
	// Output:
	// caching
	// caching
	// bfc
}
