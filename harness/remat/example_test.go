package remat_test

import (
	"fmt"

	"github.com/vramyard/vramyard/harness/remat"
)

// Four layers in a row complete within two bytes: outputs that are read no more are evicted.
func Example() {
	var b remat.Builder
	own := []remat.Output{{Size: 1, Alias: remat.NoAlias}}
	var last remat.Tensor
	for i := range 4 {
		var args []remat.Tensor
		if i > 0 {
			args = []remat.Tensor{last}
		}
		t, err := b.Call(remat.Call{Name: "layer", Cost: 10, Args: args, Outputs: own})
		if err != nil {
			panic(err)
		}
		last = t
	}
	res, err := remat.Run(b.Schedule(), &remat.Counter{Budget: 2}, remat.Config{Heuristic: "lru", Liveness: "none"})
	if err != nil {
		panic(err)
	}
	fmt.Println(res.Verdict, res.Peak, res.Evictions[remat.Pressure])
	// Output: ok 2B 2
}
