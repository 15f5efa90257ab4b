package report

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/compare"
	"github.com/vramyard/vramyard/harness/tune"
)

// TuneTables writes what a search found: the best points beside the preset, their figures on
// each trace, and what each setting was worth.
func TuneTables(w io.Writer, r *tune.Result) error {
	how := "by descent"
	if r.Whole {
		how = "all of them"
	}
	best := NewTable("", "× bound", "ns/op", "settings that differ from the preset")
	rightAlign(best, 2, 3)
	points := []struct {
		name string
		tune.Point
	}{{r.Strategy, r.Preset}, {"least memory", r.Smallest}, {"least time", r.Fastest}}
	for _, p := range points {
		best.AppendRow(table.Row{p.name, mean(p.TimesBound), strconv.FormatFloat(p.NsPerOp, 'f', 0, 64), settings(p.Config)})
	}
	traces := NewTable("trace", "point", "min capacity", "× bound", "peak reserved", "metadata", "device calls", "ns/op", "notes")
	rightAlign(traces, 3, 4, 5, 6, 7, 8)
	for i, t := range r.Preset.Runs {
		for _, p := range points {
			traces.AppendRow(tuneRow(t.Trace, p.name, p.Runs[i]))
		}
		traces.AppendSeparator()
	}
	worth := NewTable("setting", "value", "every other value: memory, time")
	for _, k := range r.Worth {
		worth.AppendRow(table.Row{k.Setting, plain(k.Value), others(k)})
	}
	if err := deviceLine(w, r.Device); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, `%s: %d of %s grid points evaluated, %s; %d refused by the strategy
%s

%s

What each setting was worth: the point of least memory with one setting changed
%s

vramyard replay --strategy %s --config %s TRACE
`, r.Strategy, r.Evaluated, strconv.FormatFloat(r.Space, 'g', 4, 64), how, r.Refused,
		best.Render(), traces.Render(), worth.Render(), ShellWord(r.Strategy), ShellWord(string(r.Smallest.Config)))
	return err
}

// tuneRow returns the cells of one point on one trace.
func tuneRow(trace, point string, run compare.Run) table.Row {
	cells := row(compareRow(run))
	metadata := none
	if run.MetadataBytes != nil {
		metadata = Bytes(*run.MetadataBytes)
	}
	return table.Row{Printable(trace), point, cells[1], cells[2], cells[3], metadata, cells[6], cells[7], cells[8]}
}

// mean returns a factor with three decimals, none if there is none.
func mean(x *float64) string {
	if x == nil {
		return none
	}
	return strconv.FormatFloat(*x, 'f', 3, 64)
}

// settings returns the fields of a configuration as a person writes them.
func settings(config json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(config, &fields) != nil || len(fields) == 0 {
		return none
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		all = append(all, name+"="+plain(string(fields[name])))
	}
	return strings.Join(all, " ")
}

// plain returns a JSON value as a person writes it: texts without quotes, and numbers that
// are a whole number of binary units with their unit.
func plain(value string) string {
	var text string
	if json.Unmarshal([]byte(value), &text) == nil {
		return Printable(text)
	}
	if n, err := strconv.ParseUint(value, 10, 64); err == nil && n >= 1<<10 {
		return device.Size(n).String()
	}
	return value
}

// others returns what the single changes of a setting do.
func others(k tune.Worth) string {
	if len(k.Others) == 0 {
		return none
	}
	var all []string
	for _, o := range k.Others {
		memory := "completes less"
		if o.Memory != nil {
			memory = change(*o.Memory)
		}
		all = append(all, fmt.Sprintf("%s %s, %s", plain(o.Value), memory, change(o.Time)))
	}
	return strings.Join(all, "; ")
}

// change returns a factor as a change in percent, with its sign.
func change(factor float64) string {
	return fmt.Sprintf("%+.1f %%", 100*(factor-1))
}

// ShellWord returns s as a shell reads it: in quotes, where it needs them.
func ShellWord(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("/._-+:@,=", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
