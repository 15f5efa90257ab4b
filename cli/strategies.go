package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/internal/fileio"
)

func newStrategies(catalogue alloc.Catalogue) *cobra.Command {
	return &cobra.Command{
		Use:   "strategies [NAME]",
		Short: "List the strategies, or show presets and settings of one",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fileio.Write("-", cmd.OutOrStdout(), func(w io.Writer) error { return listStrategies(w, catalogue) })
			}
			spec, ok := catalogue.Spec(args[0])
			if !ok {
				_, err := catalogue.Lookup(args[0], nil)
				if err == nil {
					err = fmt.Errorf("%q is a preset: want the strategy's own name", args[0])
				}
				return err
			}
			return fileio.Write("-", cmd.OutOrStdout(), func(w io.Writer) error { return showStrategy(w, spec) })
		},
	}
}

// listStrategies writes one line for every name that can be asked for.
func listStrategies(w io.Writer, catalogue alloc.Catalogue) error {
	t := report.NewTable("name", "what it is")
	for _, s := range catalogue {
		if s.Given != nil {
			t.AppendRow(table.Row{s.Name + ":…", s.Doc})
		}
		for _, p := range s.Listed() {
			if p.Name == "" {
				t.AppendRow(table.Row{s.Name, p.Doc})
			} else {
				t.AppendRow(table.Row{s.Name + ":" + p.Name, p.Doc})
			}
		}
	}
	_, err := fmt.Fprintln(w, t.Render())
	return err
}

// showStrategy writes everything the catalogue knows about one strategy.
func showStrategy(w io.Writer, s alloc.Spec) error {
	presets := report.NewTable("preset", "settings", "what it is")
	wrap(presets, 0, 60)
	for _, p := range s.Presets {
		name := s.Name
		if p.Name != "" {
			name += ":" + p.Name
		}
		presets.AppendRow(table.Row{name, p.JSON, p.Doc})
	}
	knobs := report.NewTable("setting", "value", "default", "worth trying", "meaning")
	wrap(knobs, 0, 0, 28, 60)
	for _, k := range s.Knobs {
		var grid []string
		for _, value := range k.Grid {
			grid = append(grid, showValue(k, value))
		}
		knobs.AppendRow(table.Row{k.Name, k.Type, showValue(k, k.Default), strings.Join(grid, ", "), k.Doc})
	}
	if len(s.Presets) == 0 {
		_, err := fmt.Fprintf(w, "%s: %s\n\n%s\n", s.Name, s.Doc, knobs.Render())
		return err
	}
	_, err := fmt.Fprintf(w, "%s: %s\n\n%s\n\n%s\n", s.Name, s.Doc, presets.Render(), knobs.Render())
	return err
}

// wrap wraps the columns of a table from the second on at these widths, 0 for none, so that
// the table fits a window.
func wrap(t table.Writer, widths ...int) {
	var columns []table.ColumnConfig
	for i, w := range widths {
		if w > 0 {
			columns = append(columns, table.ColumnConfig{Number: i + 2, WidthMax: w, WidthMaxEnforcer: text.WrapSoft})
		}
	}
	t.SetColumnConfigs(columns)
}

// showValue returns a value of a setting, given in JSON, as a person writes it: sizes with a
// unit, texts without quotes. A setting of no default shows a dash.
func showValue(k alloc.Knob, value string) string {
	var plain string
	var n device.Size
	switch {
	case value == "" || value == `""` || value == "null":
		return "—"
	case k.Type == "size" && json.Unmarshal([]byte(value), &n) == nil:
		return n.String()
	case value == "true":
		return "yes"
	case value == "false":
		return "no"
	case json.Unmarshal([]byte(value), &plain) == nil:
		return plain
	}
	return value
}
