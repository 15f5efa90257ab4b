package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace/flat"
	"github.com/vramyard/vramyard/internal/units"
)

// none stands for a figure that does not exist.
const none = "—"

// CompareTables writes a table for each trace of the report, its strategies sorted by
// minimum capacity, the lower bound above them.
func CompareTables(w io.Writer, r *compare.Report) error {
	if err := placeLine(w, r.Device); err != nil {
		return err
	}
	if r.FreeAt == replay.AtRequested {
		if _, err := io.WriteString(w, "frees that streams delay are told when they are requested\n\n"); err != nil {
			return err
		}
	}
	style := StyleOf(w)
	for runs := r.Runs; len(runs) > 0; {
		n := sameTrace(runs)
		s := compareSheet(runs[:n])
		notes := ""
		for _, n := range s.Notes {
			notes += n + "\n"
		}
		if _, err := fmt.Fprintf(w, "%s\n\n%s\n%s\n%s\n", compareVerdict(style, runs[:n]), s.Title, s.Terminal(w, 1), notes); err != nil {
			return err
		}
		runs = runs[n:]
	}
	return nil
}

// placeLine writes a line that tells which GPU it is, or what [deviceLine] does.
func placeLine(w io.Writer, p replay.Target) error {
	if p.GPU == nil {
		return deviceLine(w, p.Config)
	}
	_, err := fmt.Fprintf(w, "device: %s\n\n", p.GPU)
	return err
}

// deviceLine writes a line that tells how the device differs from the default, if it does, in the
// form that --sim takes. Its capacity stands with the figures.
func deviceLine(w io.Writer, d sim.Config) error {
	d.Capacity = 0
	fields, err := deviceFields(d)
	if err != nil {
		return err
	}
	defaults, err := deviceFields(sim.Config{})
	if err != nil {
		return err
	}
	maps.DeleteFunc(fields, func(name string, value json.RawMessage) bool { return bytes.Equal(value, defaults[name]) })
	if len(fields) == 0 {
		return nil
	}
	text, err := json.Marshal(fields) // by name
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "device, but for its capacity: %s\n\n", text)
	return err
}

// deviceFields returns the fields of a device in JSON, those with defaults filled in.
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

// sameTrace returns how many runs from the first belong to its trace.
func sameTrace(runs []compare.Run) int {
	for i, r := range runs {
		if r.Trace != runs[0].Trace || r.TraceSHA256 != runs[0].TraceSHA256 {
			return i
		}
	}
	return len(runs)
}

// The columns of a comparison, some of which other tables have too.
var (
	runStrategy = ColumnOf[compare.Run]{
		Column: Column{Name: "strategy", Meaning: "name and preset"},
		Cell:   func(r compare.Run) Cell { return words(r.Strategy) },
		Top:    func(compare.Run) Cell { return words("lower bound") },
	}
	runMinCapacity = ColumnOf[compare.Run]{
		Column: Column{"min capacity", "the smallest device on which the trace completes, bytes", true},
		Cell: func(r compare.Run) Cell {
			if r.MinCapacity == nil {
				return lacking()
			}
			return bytesCell(*r.MinCapacity)
		},
		Top: func(r compare.Run) Cell { return bytesCell(r.LowerBound) },
	}
	runTimesBound = ColumnOf[compare.Run]{
		Column: Column{"× bound", "minimum capacity in lower bounds", true},
		Cell: func(r compare.Run) Cell {
			if r.MinCapacity == nil || r.LowerBound == 0 {
				return lacking()
			}
			return fixedCell(float64(*r.MinCapacity)/float64(r.LowerBound), 3)
		},
		Top: func(compare.Run) Cell { return fixedCell(1, 3) },
	}
	runSafeFrom = ColumnOf[compare.Run]{
		Column: Column{"safe from", "the smallest device from which on nothing that was tried fails up to 1.25 times it, bytes", true},
		Cell: func(r compare.Run) Cell {
			if r.SafeFrom == nil {
				return lacking()
			}
			return bytesCell(*r.SafeFrom)
		},
	}
	runPeakReserved = ColumnOf[compare.Run]{
		Column: Column{"peak reserved", "most bytes held from the device", true},
		Cell:   completed(func(r compare.Run) Cell { return bytesCell(r.PeakReserved) }),
		Top:    func(r compare.Run) Cell { return bytesCell(r.LowerBound) },
	}
	runWaste = ColumnOf[compare.Run]{
		Column: Column{"waste", "1 - peak requested / peak reserved", true},
		Cell:   completed(func(r compare.Run) Cell { return percentCell(r.Waste) }),
	}
	runExternal = ColumnOf[compare.Run]{
		Column: Column{"ext. frag.", "highest 1 - largest free chunk / free bytes", true},
		Cell:   completed(func(r compare.Run) Cell { return percentCell(r.External) }),
	}
	runMetadata = ColumnOf[compare.Run]{
		Column: Column{"metadata", "host memory of the strategy at the end, bytes", true},
		Cell: completed(func(r compare.Run) Cell {
			if r.MetadataBytes == nil {
				return lacking()
			}
			return bytesCell(*r.MetadataBytes)
		}),
	}
	runDeviceCalls = ColumnOf[compare.Run]{
		Column: Column{"device calls", "calls to the device of all kinds", true},
		Cell:   completed(func(r compare.Run) Cell { return countCell(r.DeviceCalls) }),
	}
	runDeviceTime = ColumnOf[compare.Run]{
		Column: Column{"device time", "time of the device calls by the cost model of the device, nanoseconds", true},
		Cell:   completed(func(r compare.Run) Cell { return number(units.Nanoseconds(r.DeviceTime), float64(r.DeviceTime)) }),
	}
	runNsPerOp = ColumnOf[compare.Run]{
		Column: Column{"ns/op", "CPU time for each Alloc or Free, bookkeeping included, nanoseconds: the median of three replays", true},
		Cell:   completed(func(r compare.Run) Cell { return fixedCell(r.NsPerOp, 0) }),
	}
	runNotes = ColumnOf[compare.Run]{
		Column: Column{Name: "notes", Meaning: "what the figures leave out"},
		Cell: func(r compare.Run) Cell {
			c := words(notes(r))
			if !r.Completed() {
				c.Tone = Bad
			}
			return c
		},
		Top: func(compare.Run) Cell { return words("live bytes alone") },
	}
)

// completed returns the cell of a figure of the measuring replay. A run in which requests failed has none: it would
// be the figure of a part of the trace.
func completed(cell func(compare.Run) Cell) func(compare.Run) Cell {
	return func(r compare.Run) Cell {
		if !r.Completed() {
			return lacking()
		}
		return cell(r)
	}
}

// compareColumns are the columns of a comparison, from the left.
var compareColumns = []ColumnOf[compare.Run]{
	runStrategy, runMinCapacity, runTimesBound, runSafeFrom, runPeakReserved, runWaste, runExternal, runDeviceCalls, runDeviceTime, runNsPerOp, runNotes,
}

// compareSheet returns the table of one trace.
func compareSheet(runs []compare.Run) Sheet {
	runs = slices.Clone(runs)
	slices.SortStableFunc(runs, byMinimumCapacity)
	title := fmt.Sprintf("%s: %d events, sha256 %.12s", units.Printable(runs[0].Trace), runs[0].Events, runs[0].TraceSHA256)
	s := sheetBelow(runs[0], NewSheet(title, compareColumns, runs), compareColumns)
	s.Notes = recordedNotes(runs)
	return s
}

// Failure describes why a run has not completed. It is empty for one that has.
func Failure(r *compare.Run) string {
	var all []string
	if !r.Starts {
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
		all = append(all, "completes on nothing up to "+units.Bytes(r.SearchedUpTo))
	}
	if r.FailsAbove != nil {
		all = append(all, "fails again at "+units.Bytes(*r.FailsAbove))
	}
	if r.SelfTimed {
		all = append(all, "timed in its own process")
	}
	return strings.Join(all, ", ")
}

// byMinimumCapacity orders runs by minimum capacity, those without one last, equals by what they reserve, then by
// name. Runs that failed stand behind all others.
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

// CompareTable returns the runs of the report for programs that analyse them, one row for each.
func CompareTable(r *compare.Report) *flat.Table { return flat.Of(r.Runs) }
