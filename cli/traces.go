package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/internal/units"
)

// tracesSchema names the form of [traceList] in JSON.
const tracesSchema = "vramyard-traces/1"

// traceList is the traces inside the program, as JSON.
type traceList struct {
	Schema     string           `json:"schema"`
	Provenance provenance.Build `json:"provenance"` // of the program
	Traces     []innerTrace     `json:"traces"`
}

// innerTrace is a trace inside the program.
type innerTrace struct {
	Name       string      `json:"name"`
	Events     int         `json:"events"`
	LowerBound device.Size `json:"lower_bound_bytes"` // most live bytes
	Streams    int         `json:"stream_count"`      // with requests
	Doc        string      `json:"description"`
}

// traceColumns are the columns of the list.
var traceColumns = []report.ColumnOf[innerTrace]{
	report.Texts("trace", "", func(t innerTrace) string { return t.Name }),
	report.Texts("events", "", func(t innerTrace) string { return fmt.Sprint(t.Events) }).AtRight(),
	report.Texts("lower bound", "most live bytes", func(t innerTrace) string {
		return units.Bytes(t.LowerBound)
	}).AtRight(),
	report.Texts("streams", "", func(t innerTrace) string { return fmt.Sprint(t.Streams) }).AtRight(),
	report.Texts("description", "", func(t innerTrace) string { return t.Doc }),
}

func newTraces() *cobra.Command {
	var files outputs
	c := &cobra.Command{
		Use:   "traces",
		Short: "List the traces inside the program",
		Long: `List the traces inside the program, which every command accepts by name in place of a file, with their numbers
of events, peak live bytes, and the recorded training program.`,
		Example: "  vramyard replay --strategy caching meta_llama7b_lora",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := files.check(); err != nil {
				return err
			}
			l := traceList{Schema: tracesSchema, Provenance: provenance.Read()}
			for _, about := range workload.Recordings() {
				t, err := workload.OpenRecording(about.Name)
				if err != nil {
					return err
				}
				i, err := trace.Describe(t)
				if err != nil {
					return err
				}
				l.Traces = append(l.Traces, innerTrace{i.Name, i.Events, i.Peak, len(i.Streams), about.Doc})
			}
			files.json(l)
			return files.write(cmd.OutOrStdout(), func(w io.Writer) error {
				t := report.NewSheet("", traceColumns, l.Traces)
				_, err := fmt.Fprintln(w, t.Terminal(w))
				return err
			})
		},
	}
	files.add(c, "json", `also write the list as JSON to this file, "-" for standard output instead of the table`)
	return c
}
