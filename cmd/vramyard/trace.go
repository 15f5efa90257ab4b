package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/harness/report"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/outfile"
)

func newTrace() *cobra.Command {
	c := &cobra.Command{
		Use:   "trace",
		Short: "Look at traces, change their form, make them up",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError(fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath()))
			}
			return usageError("missing command: want info, convert, gen or classes")
		},
	}
	c.AddCommand(newTraceInfo(), newTraceConvert(), newTraceGen(), newTraceClasses())
	return c
}

func newTraceInfo() *cobra.Command {
	var dialect, jsonFile string
	c := &cobra.Command{
		Use:   "info TRACE...",
		Short: "Show what is in a trace",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(onceFromStdin(args), checkOutputs(args, output{"json", jsonFile, false})); err != nil {
				return err
			}
			infos := make([]trace.Info, len(args))
			for i, a := range args {
				t, err := openTrace(a, dialect, cmd.InOrStdin())
				if err != nil {
					return err
				}
				infos[i] = t.Info()
			}
			if jsonFile != "" {
				if err := writeJSON(jsonFile, cmd.OutOrStdout(), infos); err != nil || jsonFile == "-" {
					return err
				}
			}
			return outfile.Write("-", cmd.OutOrStdout(), func(w io.Writer) error { return report.TraceInfo(w, infos) })
		},
	}
	c.Flags().StringVar(&dialect, "dialect", "", dialectUsage)
	c.Flags().StringVar(&jsonFile, "json", "", `write the figures as JSON to this file, "-" for standard output`)
	return c
}

// dialectUsage describes the flag --dialect.
const dialectUsage = "form of the trace if it is neither text nor CSV: bfc, xdl or torch"

// toUsage describes the flag --to.
const toUsage = "form of the output: text or csv"

func newTraceConvert() *cobra.Command {
	var dialect, to string
	c := &cobra.Command{
		Use:   "convert TRACE OUT",
		Short: "Write a trace in another form",
		Long: `Write a trace in another form: text, made to be read and edited by hand, or CSV.
Without --to, the name of OUT decides: CSV if it ends in .csv, .csv.gz or .csv.zst.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			write, err := traceWriter(to, args[1])
			if err != nil {
				return err
			}
			t, err := openTrace(args[0], dialect, cmd.InOrStdin())
			if err != nil {
				return err
			}
			return outfile.Write(args[1], cmd.OutOrStdout(), func(w io.Writer) error { return write(w, t) })
		},
	}
	c.Flags().StringVar(&dialect, "dialect", "", dialectUsage)
	c.Flags().StringVar(&to, "to", "", toUsage)
	return c
}

// traceWriter returns what writes the form asked for.
func traceWriter(to, path string) (func(io.Writer, *trace.Trace) error, error) {
	if to == "" {
		to = "text"
		name := strings.ToLower(path)
		if name = strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst"); strings.HasSuffix(name, ".csv") {
			to = "csv"
		}
	}
	switch to {
	case "text":
		return trace.Write, nil
	case "csv":
		return trace.WriteCSV, nil
	}
	return nil, flagError("to", fmt.Errorf("unknown form %q: want text or csv", to))
}
