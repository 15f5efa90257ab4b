package report_test

import (
	"fmt"
	"os"

	"github.com/vramyard/vramyard/harness/show/report"
)

func ExampleNewSheet() {
	type run struct {
		strategy string
		failures int
	}
	sheet := report.NewSheet("runs", []report.ColumnOf[run]{
		report.Texts("strategy", "its name", func(r run) string { return r.strategy }),
		report.Texts("failures", "refused requests", func(r run) string { return fmt.Sprint(r.failures) }).AtRight(),
	}, []run{{"bfc", 0}, {"caching:expandable", 12}})
	fmt.Print(sheet.Terminal(os.Stdout))
	// Output:
	// ┌────────────────────┬──────────┐
	// │ strategy           │ failures │
	// ├────────────────────┼──────────┤
	// │ bfc                │        0 │
	// │ caching:expandable │       12 │
	// └────────────────────┴──────────┘
}
