package trace_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/vramyard/vramyard/harness/trace"
)

func ExampleRead() {
	text := `
# vramyard-trace 1
a 0 2MiB tag=weights
mark "step 1"
a 1 512KiB tag=activations
f 1
`
	t, err := trace.Read(strings.NewReader(text), "example.txt", trace.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	info := t.Info()
	fmt.Println(info.Name, info.Events, "events, peak", t.LowerBound(), "at event", info.PeakAt)
	for _, k := range info.Kinds {
		fmt.Println(k.Count, k.Kind)
	}

	_, err = trace.Read(strings.NewReader("a 0 -5\n"), "broken.txt", trace.Options{Dialect: "xdl"})
	fmt.Println(err)
	// Output:
	// example 4 events, peak 2.50MiB at event 2
	// 2 alloc
	// 1 free
	// 1 mark
	// broken.txt:1: size "-5": want bytes, as a number or with a unit such as "512KiB", "2MiB", "80GiB"
}

func ExampleWrite() {
	b := trace.NewBuilder(trace.Header{Name: "two blocks"})
	for id := range uint64(2) {
		if err := b.Alloc(id, 1000, 0); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(b.Free(0), b.Free(0))
	if err := trace.Write(os.Stdout, b.Trace()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// <nil> id 0 is freed already
	// # vramyard-trace 1
	// # name=two blocks
	// a 0 1000
	// a 1 1000
	// f 0
}
