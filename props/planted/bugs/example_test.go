package bugs_test

import (
	"fmt"

	"github.com/vramyard/vramyard/props/planted/bugs"
)

func ExampleAll() {
	for _, b := range bugs.All() {
		if b.ID == "tlsf/misses-left" {
			fmt.Println(b.Doc, b.Breaks)
		}
	}
	// Output: a freed chunk is not merged with the free one before it [I5 K2]
}
