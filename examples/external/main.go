// Command external compares a strategy that lives outside Vramyard's module with those
// inside: a pool of equal pages against BFC, on a trace file.
//
//	external TRACE
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

// run compares on one trace file.
func run(w io.Writer, path string) error {
	all := append(strategies.All(), alloc.SpecOf("pages", "equal pages", New))
	pages, err := all.Lookup("pages", json.RawMessage(`{"page":"2MiB"}`))
	if err != nil {
		return err
	}
	bfc, err := all.Lookup("bfc", nil)
	if err != nil {
		return err
	}
	t, err := trace.Open(path, trace.Options{})
	if err != nil {
		return err
	}
	r, err := compare.Compare(context.Background(), []*trace.Trace{t}, []alloc.Setup{pages, bfc}, compare.Options{})
	if err != nil {
		return err
	}
	return report.CompareTables(w, r)
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: external TRACE")
		os.Exit(2)
	}
	if err := run(os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "external:", err)
		os.Exit(1)
	}
}
