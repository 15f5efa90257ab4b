package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace/flat"
	"github.com/vramyard/vramyard/internal/units"
)

// none is the text of a missing figure.
const none = "—"

// CompareTables writes a table for each trace: the lower bound, then the strategies by minimum
// capacity.
func CompareTables(w io.Writer, r *compare.Report) error {
	out := &lines{w: w}
	out.target(r.Device)
	if r.FreeAt == replay.AtRequested {
		out.printf("delayed frees take effect when requested\n\n")
	}
	for runs := range byTrace(r.Runs) {
		s := compareSheet(runs, r.Learned)
		out.printf("%s\n\n", compareVerdict(StyleOf(w), runs))
		out.sheet(&s, 1)
		out.printf("\n")
	}
	return out.err
}

// target writes the GPU, or the differences of the simulated device from the default in the form of
// --sim, without its capacity.
func (l *lines) target(t replay.Target) {
	if t.GPU != nil {
		l.printf("device: %s\n\n", t.GPU)
		return
	}
	t.Config.Capacity = 0
	fields, err := deviceFields(t.Config)
	defaults, errDefaults := deviceFields(sim.Config{})
	maps.DeleteFunc(fields, func(name string, value json.RawMessage) bool { return bytes.Equal(value, defaults[name]) })
	text, errText := json.Marshal(fields) // keys are sorted
	if l.err = errors.Join(l.err, err, errDefaults, errText); len(fields) > 0 {
		l.printf("device settings except the capacity: %s\n\n", text)
	}
}

func deviceFields(d sim.Config) (fields map[string]json.RawMessage, err error) {
	text, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	if d, err = sim.ParseConfig(text); err != nil {
		return nil, err
	}
	if text, err = json.Marshal(d); err != nil {
		return nil, err
	}
	return fields, json.Unmarshal(text, &fields)
}

func byTrace(runs []compare.Run) iter.Seq[[]compare.Run] {
	return adjacent(runs, func(a, b compare.Run) bool { return a.Trace == b.Trace && a.TraceSHA256 == b.TraceSHA256 })
}

// adjacent yields the maximal runs of elements equal to the first of the run.
func adjacent[T any](list []T, same func(first, other T) bool) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for len(list) > 0 {
			n := slices.IndexFunc(list, func(other T) bool { return !same(list[0], other) })
			if n < 0 {
				n = len(list)
			}
			if !yield(list[:n]) {
				return
			}
			list = list[n:]
		}
	}
}

// The columns of a comparison, some shared with other tables.
var (
	runStrategy = Texts("strategy", "name and preset", func(r compare.Run) string { return r.Strategy }).
			top(func(compare.Run) Cell { return textCell("lower bound") })
	runMinCapacity = figures("min capacity", "the smallest device on which the trace completes, bytes",
		func(r compare.Run) Cell { return optional(r.MinCapacity, bytesCell) }).
		top(func(r compare.Run) Cell { return bytesCell(r.LowerBound) })
	runTimesBound = figures("× bound", "minimum capacity / lower bound", func(r compare.Run) Cell {
		if r.MinCapacity == nil || r.LowerBound == 0 {
			return missingCell()
		}
		return fixedCell(float64(*r.MinCapacity)/float64(r.LowerBound), 3)
	}).top(func(compare.Run) Cell { return fixedCell(1, 3) })
	runSafeFrom = figures("safe from",
		"the smallest capacity such that no tried capacity from there up to 1.25 times it fails, bytes",
		func(r compare.Run) Cell { return optional(r.SafeFrom, bytesCell) })
	runPeakReserved = figures("peak reserved", "peak of the bytes reserved from the device",
		completed(func(r compare.Run) Cell { return bytesCell(r.PeakReserved) })).
		top(func(r compare.Run) Cell { return bytesCell(r.LowerBound) })
	runWaste = figures("waste", "1 - peak requested / peak reserved",
		completed(func(r compare.Run) Cell { return percentCell(r.Waste) }))
	runExternal = figures("ext. frag.", "highest 1 - largest free chunk / free bytes",
		completed(func(r compare.Run) Cell { return percentCell(r.External) }))
	runMetadata = figures("metadata", "host memory of the strategy at the end, bytes",
		completed(func(r compare.Run) Cell { return optional(r.MetadataBytes, bytesCell) }))
	runDeviceCalls = figures("device calls", "calls to the device of all kinds",
		completed(func(r compare.Run) Cell { return countCell(r.DeviceCalls) }))
	runDeviceTime = figures("device time", "time of the device calls by the cost model of the device, nanoseconds",
		completed(func(r compare.Run) Cell { return number(units.Nanoseconds(r.DeviceTime), float64(r.DeviceTime)) }))
	runNsPerOp = figures("ns/op", "CPU time for each Alloc or Free, bookkeeping included, nanoseconds: the median of "+
		"three replays",
		completed(func(r compare.Run) Cell { return fixedCell(r.NsPerOp, 0) }))
	runNsPerOpByRef = figures(byRef, "the same in replays that free by reference, if the strategy supports it",
		completed(func(r compare.Run) Cell {
			return optional(r.NsPerOpByRef, func(ns float64) Cell { return fixedCell(ns, 0) })
		}))
	runNotes = ColumnOf[compare.Run]{
		Column: Column{Name: "notes", Meaning: "failures and limits of the figures"},
		Cell: func(r compare.Run) Cell {
			c := textCell(notes(r))
			if !r.Completed() {
				c.Tone = Bad
			}
			return c
		},
		Top: func(compare.Run) Cell { return textCell("live bytes alone") },
	}
)

// completed returns a column function that is empty for failed runs, whose figures cover only a
// part of the trace.
func completed(cell func(compare.Run) Cell) func(compare.Run) Cell {
	return func(r compare.Run) Cell {
		if !r.Completed() {
			return missingCell()
		}
		return cell(r)
	}
}

// compareColumns are the columns of a comparison.
var compareColumns = []ColumnOf[compare.Run]{
	runStrategy, runMinCapacity, runTimesBound, runSafeFrom, runPeakReserved, runWaste, runExternal, runDeviceCalls,
	runDeviceTime, runNsPerOp, runNsPerOpByRef, runNotes,
}

// compareSheet returns the table of one trace. The training is nil if no strategy learned.
func compareSheet(runs []compare.Run, training *compare.Training) Sheet {
	runs = slices.Clone(runs)
	slices.SortStableFunc(runs, byMinimumCapacity)
	title := fmt.Sprintf("%s: %d events, sha256 %.12s", units.Printable(runs[0].Trace), runs[0].Events,
		runs[0].TraceSHA256)
	columns := compareColumns
	if !slices.ContainsFunc(runs, func(r compare.Run) bool { return r.NsPerOpByRef != nil }) {
		columns = without(columns, byRef)
	}
	s := sheetWithTop(runs[0], title, columns, runs)
	s.Notes = append(recordedNotes(runs), learnedNotes(runs[0].TraceSHA256, training)...)
	return s
}

// Failure describes why a run failed, or returns "".
func Failure(r *compare.Run) string {
	var all []string
	switch {
	case r.Rejects != "":
		all = append(all, "rejects a change of the settings")
	case !r.Starts:
		all = append(all, "does not start on "+units.Bytes(r.Device))
	}
	if r.OOMs > 0 {
		all = append(all, units.Several(r.OOMs, "OOM")+" on "+units.Bytes(r.Device))
	}
	if r.Refused > 0 {
		all = append(all, "refuses "+units.Several(r.Refused, "request"))
	}
	if len(all) == 0 {
		return ""
	}
	return "FAILED: " + strings.Join(all, ", ")
}

// notes describes the limits of the figures of a row. A failure comes first.
func notes(r compare.Run) string {
	var all []string
	if failure := Failure(&r); failure != "" {
		all = append(all, failure)
	}
	if r.MinCapacity == nil && r.Refused == 0 {
		all = append(all, "completes on no device up to "+units.Bytes(r.SearchedUpTo))
	}
	if r.FailsAbove != nil {
		all = append(all, failsAgain(&r))
	}
	if r.SelfTimed {
		all = append(all, "timed in its own process")
	}
	return strings.Join(all, ", ")
}

// failsAgain describes the largest capacity that failed above the minimum. If it rounds to the same
// text as the capacity from which the run is safe, it gives the difference.
func failsAgain(r *compare.Run) string {
	text := "fails again at " + units.Bytes(*r.FailsAbove)
	if safe := r.SafeFrom; safe != nil && *safe > *r.FailsAbove && units.Bytes(*safe) == units.Bytes(*r.FailsAbove) {
		text += fmt.Sprintf(" (%s below %q)", units.Bytes(*safe-*r.FailsAbove), runSafeFrom.Name)
	}
	return text
}

// byMinimumCapacity orders runs by minimum capacity, then by reserved peak, then by name. Runs
// without a minimum follow, failed runs come last.
func byMinimumCapacity(a, b compare.Run) int {
	rank := func(r compare.Run) device.Size {
		if r.MinCapacity == nil {
			return ^device.Size(0)
		}
		return *r.MinCapacity
	}
	failed := func(r compare.Run) int {
		if r.Completed() {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(failed(a), failed(b)), cmp.Compare(rank(a), rank(b)),
		cmp.Compare(a.PeakReserved, b.PeakReserved), cmp.Compare(a.Strategy, b.Strategy))
}

// CompareTable returns the runs of the report for programs that analyse them, one row for each. If
// strategies learned, the last column has the hash of the trace that they learned from.
func CompareTable(r *compare.Report) *flat.Table {
	type row struct {
		*compare.Run
		Provenance provenance.Build `json:"provenance"`
	}
	type learned struct {
		row
		LearnedFrom string `json:"learned_from_sha256"`
	}
	rows := make([]learned, len(r.Runs))
	for i := range rows {
		rows[i] = learned{row{&r.Runs[i], r.Provenance}, r.Runs[i].LearnedFrom}
	}
	if r.Learned != nil {
		return flat.Of(rows)
	}
	plain := make([]row, len(rows))
	for i := range rows {
		plain[i] = rows[i].row
	}
	return flat.Of(plain)
}

// learnedNotes names the training trace and the strategies that learned from it, below the table of
// a trace with a hash.
func learnedNotes(hash string, t *compare.Training) []string {
	if t == nil {
		return nil
	}
	note := fmt.Sprintf("Learned from %s, %d events, sha256 %.12s: %s.", units.Printable(t.Trace), t.Events,
		t.TraceSHA256, strings.Join(t.Strategies, ", "))
	if t.TraceSHA256 == hash {
		note += " That is this trace itself, so its whole future was known."
	}
	return []string{note}
}
