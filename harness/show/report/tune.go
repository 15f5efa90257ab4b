package report

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/study/tune"
	"github.com/vramyard/vramyard/harness/trace/flat"
	"github.com/vramyard/vramyard/internal/units"
)

// TuneTables writes the result of a search: the best points and the preset, their figures on each
// trace, and the worth of each setting.
func TuneTables(w io.Writer, r *tune.Result) error {
	how := "by descent"
	if r.Whole {
		how = "exhaustively"
	}
	points := []tunePoint{{r.Strategy, r.Preset}, {"least memory", r.Smallest}, {"least time", r.Fastest}}
	best, worth := NewSheet("", tuneBest, points), NewSheet("", tuneEffects, r.Effects)
	var runs []tuneRun
	var rules []int // after the points of each trace
	for i := range r.Preset.Runs {
		for _, p := range points {
			runs = append(runs, tuneRun{p.name, p.Runs[i]})
		}
		rules = append(rules, len(runs))
	}
	traces := NewSheet("", tuneRuns, runs)
	out := &lines{w: w}
	out.target(r.Device)
	out.printf(`%s

%s: %d of %s grid points evaluated, %s; %d refused by the strategy
%s

%s

The effect of each setting: the point of least memory with one setting changed
%s

vramyard replay --strategy %s --config %s TRACE
`, tuneVerdict(StyleOf(w), r), r.Strategy, r.Evaluated, strconv.FormatFloat(r.Space, 'g', 4, 64), how, r.Refused,
		best.Terminal(w), traces.Terminal(w, rules...), worth.Terminal(w), ShellWord(r.Strategy),
		ShellWord(string(r.Smallest.Config)))
	return out.err
}

// settingRow is a run of an evaluated setting.
type settingRow struct {
	// preset, smallest, fastest: measured again; evaluated: as measured in the search
	Point      string          `json:"point"`
	Settings   json.RawMessage `json:"settings"`       // settings that differ from the preset
	TimesBound *float64        `json:"times_bound"`    // over all traces
	Completed  int             `json:"completed"`      // number of traces
	MeanNs     float64         `json:"mean_ns_per_op"` // over all traces
	compare.Run
}

// TuneTable returns the points as a flat table with a row for each point and trace: first the best
// points, measured again, then all evaluated ones.
func TuneTable(r *tune.Result) *flat.Table {
	var rows []settingRow
	add := func(name string, p *tune.Point) {
		for _, run := range p.Runs {
			rows = append(rows, settingRow{name, p.Config, p.TimesBound, p.Completed, p.NsPerOp, run})
		}
	}
	add("preset", &r.Preset)
	add("smallest", &r.Smallest)
	add("fastest", &r.Fastest)
	for i := range r.Searched {
		add("evaluated", &r.Searched[i])
	}
	return flat.Of(rows)
}

// tunePoint is a named point of the result.
type tunePoint struct {
	name string
	tune.Point
}

// tuneBest are the columns of the best points.
var tuneBest = []ColumnOf[tunePoint]{
	Texts("point", "the preset, or the objective that the point is best at", func(p tunePoint) string { return p.name }),
	figures("× bound", "geometric mean of minimum capacity in lower bounds", func(p tunePoint) Cell {
		return ratioOf(p.TimesBound)
	}),
	figures("ns/op", "geometric mean of the nanoseconds for each operation", tuneTime),
	{Column: Column{Name: "settings that differ from the preset"}, Cell: func(p tunePoint) Cell {
		return Cell{Text: settings(p.Config)}
	}},
}

// tuneTime returns the time of a point, if all of its runs completed.
func tuneTime(p tunePoint) Cell {
	if slices.ContainsFunc(p.Runs, func(r compare.Run) bool { return !r.Completed() }) {
		return missingCell()
	}
	return fixedCell(p.NsPerOp, 0)
}

// tuneRun is a run of a named point.
type tuneRun struct {
	point string
	run   compare.Run
}

var tuneRuns = append([]ColumnOf[tuneRun]{
	Texts("trace", "", func(r tuneRun) string { return r.run.Trace }),
	Texts("point", "", func(r tuneRun) string { return r.point }),
}, runsOf(runMinCapacity, runTimesBound, runPeakReserved, runMetadata, runDeviceCalls, runDeviceTime, runNsPerOp,
	runNotes)...)

// runsOf adapts columns of runs to runs of points.
func runsOf(columns ...ColumnOf[compare.Run]) (all []ColumnOf[tuneRun]) {
	for _, c := range columns {
		all = append(all, mapColumn(c, func(r tuneRun) compare.Run { return r.run }))
	}
	return all
}

var tuneEffects = []ColumnOf[tune.SettingEffect]{
	Texts("setting", "", func(w tune.SettingEffect) string { return w.Setting }),
	{Column: Column{Name: "value"}, Cell: func(w tune.SettingEffect) Cell { return Cell{Text: plain(w.Value)} }},
	{Column: Column{Name: "every other value: memory, time"}, Cell: func(w tune.SettingEffect) Cell {
		return Cell{Text: others(w)}
	}},
}

// settings formats the fields of a configuration.
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

// plain formats a JSON value: strings without quotes, and multiples of binary units with their
// unit.
func plain(value string) string {
	var text string
	if json.Unmarshal([]byte(value), &text) == nil {
		return units.Printable(text)
	}
	if n, err := strconv.ParseUint(value, 10, 64); err == nil && n >= 1<<10 {
		return device.Size(n).String()
	}
	return value
}

// others formats the single changes of a setting.
func others(k tune.SettingEffect) string {
	if len(k.Others) == 0 {
		return none
	}
	var all []string
	for _, o := range k.Others {
		memory := "completes fewer traces"
		if o.Memory != nil {
			memory = change(*o.Memory)
		}
		all = append(all, fmt.Sprintf("%s %s, %s", plain(o.Value), memory, change(o.Time)))
	}
	return strings.Join(all, "; ")
}

// change formats a factor as a signed percentage.
func change(factor float64) string {
	return fmt.Sprintf("%+.1f %%", 100*(factor-1))
}

// ShellWord quotes s for a shell where needed.
func ShellWord(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("/._-+:@,=", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
