package top_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/harness/study/top"
	"github.com/vramyard/vramyard/harness/trace"
)

func ExampleMeasure() {
	b := trace.NewBuilder(trace.Header{Name: "step"})
	for i, tag := range []string{"weight:0", "activation:1", "activation:2"} {
		if err := b.AllocRequest(uint64(i), alloc.Request{Size: 1024}, tag); err != nil {
			panic(err)
		}
	}
	r, err := top.Measure(b.Trace(), nil)
	if err != nil {
		panic(err)
	}
	for _, c := range r.Peak.Categories {
		fmt.Println(c.Name, c.Bytes)
	}
	// Output:
	// activations 2KiB
	// weights 1KiB
}
