package compare_test

import (
	"context"
	"fmt"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

func ExampleCompare() {
	b := trace.NewBuilder(trace.Header{Name: "step"})
	if err := b.Alloc(1, 3<<20, 0); err != nil {
		panic(err)
	}
	setup, err := strategies.All().Lookup("direct", nil)
	if err != nil {
		panic(err)
	}
	r, err := compare.Compare(context.Background(), []*trace.Trace{b.Trace()}, []setting.Setup{setup}, compare.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(r.Runs[0].Strategy, r.Runs[0].LowerBound, *r.Runs[0].MinCapacity)
	// Output: direct 3MiB 4MiB
}
