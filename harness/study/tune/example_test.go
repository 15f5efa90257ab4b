package tune_test

import (
	"context"
	"fmt"

	"github.com/vramyard/vramyard/harness/study/tune"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

func ExampleTune() {
	b := trace.NewBuilder(trace.Header{Name: "step"})
	if err := b.Alloc(1, 3<<20, 0); err != nil {
		panic(err)
	}
	traces := []*trace.Trace{b.Trace()}
	r, err := tune.Tune(context.Background(), traces, strategies.All(), "direct", nil, tune.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(r.Strategy, r.Evaluated, r.Smallest.Completed)
	// Output: direct 1 1
}
