package bench_test

import (
	"fmt"

	"github.com/vramyard/vramyard/harness/study/bench"
)

func ExampleSelection_Resolve() {
	all, err := bench.Selection{Workloads: "uniform:1-16KiB", Live: "100,1000", Pairs: 10, Seed: 1}.Resolve()
	if err != nil {
		panic(err)
	}
	for _, w := range all {
		fmt.Println(w.Shape().Name, w.Params().Live, w.Params().Most)
	}
	// Output:
	// uniform 100 16KiB
	// uniform 1000 16KiB
}
