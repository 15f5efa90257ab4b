package stats_test

import (
	"fmt"
	"log"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/stats"
)

// Two strategies ran over eight traces.
func Example() {
	table := stats.Table{File: "results.parquet"}
	for i := range 8 {
		run := stats.Run{Trace: fmt.Sprint("trace ", i)}
		table.Rows = append(table.Rows,
			stats.Row{Run: run, Strategy: "bfc", MinCapacity: new(device.Size(100 + i))},
			stats.Row{Run: run, Strategy: "tlsf", MinCapacity: new(device.Size(98 + i))})
	}
	a, b, err := stats.Pick([]stats.Table{table}, "bfc", "tlsf")
	if err != nil {
		log.Fatal(err)
	}
	r, err := stats.Compare(a, b, stats.Options{})
	if err != nil {
		log.Fatal(err)
	}
	f := r.Figures[0]
	fmt.Printf("%s is lower on %d of %d: %.4f (%.4f to %.4f)\n", r.B.Strategy, f.Less, f.Traces, *f.Mean, *f.Low, *f.High)
	// Output: tlsf is lower on 8 of 8: 0.9807 (0.9803 to 0.9810)
}
