package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace/flat"
	"github.com/vramyard/vramyard/internal/units"
)

// ReplayText writes the figures of a replay as a table of names and values.
func ReplayText(w io.Writer, r *replay.Result) error {
	groups := replayRows(r)
	t := TextSheet([]Column{{}, {Number: true}}, slices.Concat(groups...)...)
	var rules []int
	n := 0
	for _, g := range groups {
		n += len(g)
		rules = append(rules, n)
	}
	out := &lines{w: w}
	out.printf("%s\n\n", replayVerdict(StyleOf(w), r))
	if r.Device != nil && r.Device.GPU != nil {
		out.printf("device: %s\n", r.Device.GPU)
	}
	out.printf("%s on %s, sha256 %.12s\n%s\n", r.Strategy, units.Printable(r.Trace), r.TraceSHA256,
		t.Terminal(w, rules...))
	if r.FirstFailure != nil {
		out.printf("%s\n", strings.Join(failureLines(r), "\n  "))
	}
	if len(r.OOMReport) > 0 {
		out.printf("at the first OOM:\n%s", r.OOMReport)
	}
	return out.err
}

// ReplayTable returns the figures of a replay as a flat table with one row.
func ReplayTable(r *replay.Result) *flat.Table { return flat.Of([]*replay.Result{r}) }

// replayRows returns the figures in groups.
func replayRows(r *replay.Result) [][][]any {
	return [][][]any{memoryRows(r), driverRows(r), countRows(r), streamRows(r), deviceRows(r), timeRows(r)}
}

// driverRows returns the figures of a GPU's driver.
func driverRows(r *replay.Result) [][]any {
	if r.Driver == nil {
		return nil
	}
	d := r.Driver
	return [][]any{
		{"driver (" + d.Source + "): in use before", units.Bytes(d.Before)},
		{"driver: most in use, all programs", units.Bytes(d.Peak)},
		{"driver: in use after", units.Bytes(d.After)},
	}
}

func memoryRows(r *replay.Result) [][]any {
	rows := [][]any{
		{"lower bound", units.Bytes(r.LowerBound)},
		{"peak requested", units.Bytes(r.Peak.Requested)},
		{"peak allocated", units.Bytes(r.Peak.Allocated)},
		{"peak active", units.Bytes(r.Peak.Active)},
		{"peak reserved", units.Bytes(r.Peak.Reserved)},
		{"at the end: requested", units.Bytes(r.Now.Requested)},
		{"at the end: allocated", units.Bytes(r.Now.Allocated)},
		{"at the end: active", units.Bytes(r.Now.Active)},
		{"at the end: reserved", units.Bytes(r.Now.Reserved)},
		{"reservation waste", waste(r)},
		{"internal fragmentation at peak", units.Percent(r.InternalFragmentation)},
		{"external fragmentation, peak", units.Percent(r.ExternalFragmentationPeak)},
		{"external fragmentation at peak reserved", units.Percent(r.ExternalFragmentationAtPeak)},
	}
	if x := r.ExternalFragmentationAtOOM; x != nil {
		rows = append(rows, []any{"external fragmentation at first OOM", units.Percent(*x)})
	}
	rows = append(rows,
		[]any{"headroom at peak reserved", units.Bytes(r.Headroom.AtPeak)},
		[]any{"headroom at the end", units.Bytes(r.Headroom.Final)})
	if n := r.MetadataBytes; n != nil {
		rows = append(rows, []any{"metadata on the host", units.Bytes(*n)})
	}
	if n, ok := r.Counters.Get("inactive_split_bytes.all.peak"); ok {
		rows = append(rows, []any{"PyTorch's inactive_split_bytes, peak", units.Bytes(device.Size(n))})
	}
	return rows
}

// waste returns the reservation waste, which failed replays lack because their peaks cover only a
// part of the trace.
func waste(r *replay.Result) string {
	if r.Failures() > 0 {
		return none
	}
	return units.Percent(r.ReservationWaste)
}

func countRows(r *replay.Result) [][]any {
	rows := [][]any{
		{"events", r.Events},
		{"granted", r.Allocs},
		{"freed", r.Frees},
		{"out of memory", r.OOMs},
		{"refused sizes", r.Refused},
		{"zero bytes refused", r.Nulls},
	}
	if r.IllegalFrees > 0 {
		rows = append(rows, []any{"illegal frees refused", r.IllegalFrees})
	}
	if r.Ignored > 0 {
		rows = append(rows, []any{"events this strategy ignores", r.Ignored})
	}
	if n, ok := r.Counters.Get("num_alloc_retries"); ok {
		rows = append(rows, []any{"PyTorch's num_alloc_retries", n})
	}
	return rows
}

// streamRows returns figures by stream, if there are several.
func streamRows(r *replay.Result) [][]any {
	var rows [][]any
	if r.PeakPending > 0 {
		rows = append(rows, []any{"peak pending", units.Bytes(r.PeakPending)})
	}
	if r.CrossStreamWaits > 0 {
		rows = append(rows, []any{"waits of one stream for another", r.CrossStreamWaits})
	}
	if len(r.Streams) < 2 {
		return rows
	}
	for _, s := range r.Streams[:min(len(r.Streams), mostStreams)] {
		rows = append(rows, []any{
			fmt.Sprintf("stream %d: granted / peak requested / peak allocated", uint64(s.Stream)),
			fmt.Sprintf("%d / %s / %s", s.Allocs, units.Bytes(s.PeakRequested), units.Bytes(s.PeakAllocated)),
		})
	}
	if more := len(r.Streams) - mostStreams; more > 0 {
		rows = append(rows, []any{"further streams", more})
	}
	return rows
}

// mostStreams bounds the streams in a table; JSON has all.
const mostStreams = 16

// deviceRows returns the driver calls by kind, with their time by the cost model.
func deviceRows(r *replay.Result) [][]any {
	rows := [][]any{{"device calls", deviceCell(r.DeviceCalls, r.DeviceTime)}}
	for kind, n := range r.Calls {
		call := device.Call(kind)
		if n.Done > 0 || r.DeviceTimes[kind] > 0 && n.Failed == 0 || call == device.CallReserve ||
			call == device.CallRelease {
			rows = append(rows, []any{"device: " + call.String(), deviceCell(n.Done, r.DeviceTimes[kind])})
		}
		if n.Failed > 0 {
			rows = append(rows, []any{"device: " + call.String() + " refused", n.Failed})
		}
	}
	return rows
}

// deviceCell formats a number of calls and their time.
func deviceCell(n, ns uint64) string {
	if n == 0 && ns == 0 {
		return "0"
	}
	return fmt.Sprintf("%d in %s", n, units.Nanoseconds(ns))
}

func timeRows(r *replay.Result) [][]any {
	rows := [][]any{{"time per operation", perOp(r.NsPerOp)}}
	if r.NsPerOpByRef != nil {
		rows = append(rows, []any{"freeing by reference", perOp(*r.NsPerOpByRef)})
	}
	if r.SelfTimed {
		rows = append(rows, []any{"of which round trips to the plug-in", "none: timed in its process"})
	}
	if l := r.Latency; l != nil {
		rows = append(rows,
			[]any{"Alloc p50 / p99 / p99.9 / max", quantiles(l.Alloc)},
			[]any{"Free p50 / p99 / p99.9 / max", quantiles(l.Free)},
			[]any{"of which reading the clock", strconv.FormatInt(l.Clock, 10) + " ns"},
			[]any{"time per operation, latencies measured", measured(l, r)})
	}
	return rows
}

func perOp(ns float64) string { return units.Fixed(ns, 1) + " ns" }

// measured returns the time of an operation with latency measurement, and the overhead of
// measuring.
func measured(l *replay.Latency, r *replay.Result) string {
	if r.NsPerOp == 0 {
		return perOp(l.NsPerOp)
	}
	return fmt.Sprintf("%s, %.2f ×", perOp(l.NsPerOp), l.NsPerOp/r.NsPerOp)
}

func quantiles(q replay.Quantiles) string {
	return fmt.Sprintf("%d / %d / %d / %d ns", q.P50, q.P99, q.P999, q.Max)
}

// ReplayFailure describes the failed requests, or returns "".
func ReplayFailure(r *replay.Result) string {
	var all []string
	if r.OOMs > 0 {
		all = append(all, units.Several(r.OOMs, "OOM"))
	}
	if r.Refused > 0 {
		all = append(all, "refuses "+units.Several(r.Refused, "request"))
	}
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("%s, the first at event %d of %d", strings.Join(all, ", "), r.FirstFailure.Event, r.Events)
}

// failureLines describes the first failed request.
func failureLines(r *replay.Result) []string {
	f := r.FirstFailure
	which := "the only failure"
	if n := r.Failures(); n > 1 {
		which = fmt.Sprintf("first of %d failures", n)
	}
	first := fmt.Sprintf("%s: event %d, allocation %d of %s: %s", which, f.Event, f.ID, units.Bytes(f.Size), f.Error)
	if f.Reason != "" {
		first += fmt.Sprintf(" (%s)", f.Reason)
	}
	free := "device unlimited"
	if f.DeviceFree != nil {
		free = "device free " + units.Bytes(*f.DeviceFree)
	}
	return []string{first, fmt.Sprintf("%s free in held regions, largest hole %s, %s", units.Bytes(f.Free),
		units.Bytes(f.LargestHole), free)}
}
