package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/show/report"
)

func newStrategies(catalogue setting.Catalogue) *cobra.Command {
	return &cobra.Command{
		Use:   "strategies [NAME]",
		Short: "List the strategies, or the presets and settings of one",
		Long: `Without NAME, list every strategy and preset. With NAME, describe its presets and its settings, with
defaults and the values that "vramyard tune" searches. The number after "semantics" rises when the
strategy places blocks in another way than before.`,
		Example: "  vramyard strategies\n  vramyard strategies tlsf",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return new(outputs).write(cmd.OutOrStdout(), func(w io.Writer) error { return listStrategies(w, catalogue) })
			}
			spec, ok := catalogue.Spec(args[0])
			if !ok {
				_, err := catalogue.Lookup(args[0], nil)
				if err == nil {
					err = fmt.Errorf("%q is a preset: want the strategy's own name", args[0])
				}
				return err
			}
			return new(outputs).write(cmd.OutOrStdout(), func(w io.Writer) error { return showStrategy(w, spec) })
		},
	}
}

// listStrategies writes one line for every name of the catalogue.
func listStrategies(w io.Writer, catalogue setting.Catalogue) error {
	var rows [][]any
	for _, s := range catalogue {
		if s.Given != nil {
			rows = append(rows, []any{s.Name + ":…", s.Doc})
		}
		for _, p := range s.Listed() {
			if p.Name == "" {
				rows = append(rows, []any{s.Name, p.Doc})
			} else {
				rows = append(rows, []any{s.Name + ":" + p.Name, p.Doc})
			}
		}
	}
	t := report.TextSheet([]report.Column{{Name: "name"}, {Name: "description"}}, rows...)
	_, err := fmt.Fprintln(w, t.Terminal(w))
	return err
}

// showStrategy writes the presets and settings of one strategy, and of its originals.
func showStrategy(w io.Writer, s setting.Spec) error {
	var presets, knobs [][]any
	for _, p := range s.Presets {
		name := s.Name
		if p.Name != "" {
			name += ":" + p.Name
		}
		presets = append(presets, []any{name, p.JSON, text.WrapSoft(p.Doc, 60)})
	}
	for _, k := range s.Knobs {
		var grid []string
		for _, value := range k.Grid {
			grid = append(grid, showValue(k, value))
		}
		tried := text.WrapSoft(strings.Join(grid, ", "), 28)
		knobs = append(knobs, []any{k.Name, k.Type, showValue(k, k.Default), tried, text.WrapSoft(k.Doc, 60)})
	}
	fmt.Fprintf(w, "%s: %s (semantics %d)\n\n", s.Name, s.Doc, s.Semantics)
	if len(presets) > 0 {
		t := report.TextSheet([]report.Column{{Name: "preset"}, {Name: "settings"}, {Name: "description"}}, presets...)
		fmt.Fprintf(w, "%s\n\n", t.Terminal(w))
	}
	t := report.TextSheet([]report.Column{{Name: "setting"}, {Name: "value"}, {Name: "default"}, {Name: "worth trying"},
		{Name: "meaning"}}, knobs...)
	_, err := fmt.Fprintln(w, t.Terminal(w))
	for _, o := range s.Originals {
		fmt.Fprintln(w)
		err = errors.Join(err, showStrategy(w, o))
	}
	return err
}

// showValue formats a JSON value of a setting for display: sizes with a
// unit, texts without quotes. A setting of no default shows a dash.
func showValue(k setting.Knob, value string) string {
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
