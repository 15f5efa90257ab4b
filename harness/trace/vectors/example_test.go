package vectors_test

import (
	"fmt"
	"log"

	"github.com/vramyard/vramyard/harness/trace/vectors"
)

// The vectors that a strategy must reproduce, each a trace with the answers of the original
// program.
func ExampleOf() {
	list, err := vectors.Of("buddy")
	if err != nil {
		log.Fatal(err)
	}
	v := list[0]
	t, err := v.Trace()
	if err != nil {
		log.Fatal(err)
	}
	allocs := 0
	for _, e := range t.Events {
		if e.Kind.String() == "alloc" {
			allocs++
		}
	}
	fmt.Println(v.Suite, v.Kind, string(v.Config) != "", allocs == v.Allocs)
	// Output: xdl buddy true true
}
