package gate_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/study/gate"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

// A budget is written from a recording, and judges a recording of the same work with one more
// block.
func Example() {
	setup, err := strategies.All().Lookup("caching", nil)
	if err != nil {
		panic(err)
	}
	var b gate.Baseline
	budget := &gate.Budget{Figures: map[gate.State]gate.Figures{}}
	judge := func(text string, how gate.Update) *gate.Result {
		t, err := trace.Read(strings.NewReader(text), "train.trace", trace.Options{})
		if err != nil {
			panic(err)
		}
		w, err := gate.NewWork(t, nil, gate.Part{})
		if err != nil {
			panic(err)
		}
		now, err := w.Measure(context.Background(), compare.NewPool(0, 0), setup, nil)
		if err != nil {
			panic(err)
		}
		r, err := b.Judge(budget, w, now, how, "1")
		if err != nil {
			panic(err)
		}
		return r
	}
	judge("a 1 20MiB tag=weights\n", gate.UpdateLower)
	r := judge("a 1 20MiB tag=weights\na 2 1MiB tag=mask\n", gate.UpdateNone)
	fmt.Println(r.Violated() > 0, &r.Causes[0], "at", r.Causes[0].At)
	// Output: true 1 block of 1.00 MiB added at mask
}
