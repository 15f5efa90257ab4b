package recompute_test

import (
	"context"
	"fmt"

	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/props/recompute"
)

// A heuristic is checked with ten logs.
func ExampleVerify() {
	s := recompute.Subject{Name: "eq", Config: remat.Config{Heuristic: "eq", Liveness: "eager"}}
	logs, err := recompute.Verify(context.Background(), s, recompute.Options{Logs: 10})
	fmt.Println(logs, err)
	// Output: 10 <nil>
}
