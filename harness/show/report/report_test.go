package report_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace"
)

func size(n device.Size) *device.Size { return &n }

func reportOf(figures ...compare.Figures) *compare.Report {
	r := &compare.Report{Schema: compare.Schema}
	for _, f := range figures {
		r.Runs = append(r.Runs, compare.Run{Figures: f})
	}
	return r
}

// runs is a report of two traces, its rows in no useful order.
func runs() *compare.Report {
	r := reportOf([]compare.Figures{
		{Trace: "one", TraceSHA256: "aa", Strategy: "never", Starts: true, Config: json.RawMessage(`{}`), LowerBound: 1 << 30,
			SearchedUpTo: 64 << 30, PeakReserved: 5, OOMs: 2, Device: 4 << 30},
		{Trace: "one", TraceSHA256: "aa", Strategy: "large", Starts: true, Config: json.RawMessage(`{}`), LowerBound: 1 << 30,
			MinCapacity: size(3 << 30), FailsAbove: size(4 << 30), PeakReserved: 3 << 30, Waste: 2. / 3, External: 0.125,
			DeviceCalls: 3, DeviceTime: 1_234_567},
		{Trace: "one", TraceSHA256: "aa", Strategy: "small", Starts: true, Config: json.RawMessage(`{"limit":1}`),
			LowerBound: 1 << 30, MinCapacity: size(3 << 29), PeakReserved: 3 << 29},
		{Trace: "one", TraceSHA256: "aa", Strategy: "refuses", Starts: true, Config: json.RawMessage(`{}`),
			LowerBound: 1 << 30, Refused: 7},
		{Trace: "one", TraceSHA256: "aa", Strategy: "least", Starts: true, Config: json.RawMessage(`{}`), LowerBound: 1 << 30,
			MinCapacity: size(5 << 28), PeakReserved: 1 << 29, OOMs: 1, Device: 1 << 30},
		{Trace: "two\x1b[31m", TraceSHA256: "bb", Strategy: "small", Starts: true, Config: json.RawMessage(`{}`),
			MinCapacity: size(2 << 20)},
	}...)
	r.Runs[1].NsPerOp = 99.6
	r.Runs[5].MetadataBytes = size(77)
	return r
}

func TestTablesAreSortedByMinimumCapacity(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, report.CompareTables(&out, runs()))
	want := `one: 0 events, sha256 aa
┌─────────────┬──────────────┬─────────┬───────────┬───────────────┬────────┬────────────┬──────────────┬─────────────┬───────┬────────────────────────────────────────────────────────────────────┐
│ strategy    │ min capacity │ × bound │ safe from │ peak reserved │  waste │ ext. frag. │ device calls │ device time │ ns/op │ notes                                                              │
├─────────────┼──────────────┼─────────┼───────────┼───────────────┼────────┼────────────┼──────────────┼─────────────┼───────┼────────────────────────────────────────────────────────────────────┤
│ lower bound │     1.00 GiB │   1.000 │         — │      1.00 GiB │      — │          — │            — │           — │     — │ live bytes alone                                                   │
├─────────────┼──────────────┼─────────┼───────────┼───────────────┼────────┼────────────┼──────────────┼─────────────┼───────┼────────────────────────────────────────────────────────────────────┤
│ small       │     1.50 GiB │   1.500 │         — │      1.50 GiB │  0.0 % │      0.0 % │            0 │        0 ns │     0 │                                                                    │
│ large       │     3.00 GiB │   3.000 │         — │      3.00 GiB │ 66.7 % │     12.5 % │            3 │     1.23 ms │   100 │ fails again at 4.00 GiB                                            │
│ least       │     1.25 GiB │   1.250 │         — │             — │      — │          — │            — │           — │     — │ FAILED: 1 OOM on 1.00 GiB                                          │
│ refuses     │            — │       — │         — │             — │      — │          — │            — │           — │     — │ FAILED: refuses 7 requests                                         │
│ never       │            — │       — │         — │             — │      — │          — │            — │           — │     — │ FAILED: 2 OOMs on 4.00 GiB, completes on no device up to 64.00 GiB │
└─────────────┴──────────────┴─────────┴───────────┴───────────────┴────────┴────────────┴──────────────┴─────────────┴───────┴────────────────────────────────────────────────────────────────────┘

`
	first, rest, _ := strings.Cut(out.String(), "\n\n")
	require.Equal(t, "small completes one with least memory: 1.50 GiB; large needs 2.00 × as much (3.00 GiB). never, "+
		"refuses and least fail.", first)
	require.True(t, strings.HasPrefix(rest, want), rest)
	require.NotContains(t, out.String(), "\x1b", "a name must not drive the terminal")
	require.Equal(t, 2, strings.Count(out.String(), "lower bound"))
}

func TestStrategyThatDoesNotStartSaysSo(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, report.CompareTables(&out,
		reportOf(compare.Figures{Trace: "one", Strategy: "large", MinCapacity: size(1 << 30), Device: 1 << 20})))
	require.Contains(t, out.String(), "│ FAILED: does not start on 1.00 MiB ")
}

// TestFailuresAboveTheMinimumDifferFromTheSafeCapacity has two capacities that round to the same
// text.
func TestFailuresAboveTheMinimumDifferFromTheSafeCapacity(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, report.CompareTables(&out, reportOf(compare.Figures{
		Trace: "one", Strategy: "large", Starts: true, MinCapacity: size(1 << 30), Device: 1 << 30,
		FailsAbove: size(3 << 30), SafeFrom: size(3<<30 + 2<<20),
	})))
	require.Contains(t, out.String(), `│ fails again at 3.00 GiB (2.00 MiB below "safe from") │`)
}

func TestCSVHasEmptyFieldsForWhatDoesNotExist(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, report.CompareTable(runs()).WriteCSV(&out))
	rows, err := csv.NewReader(&out).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 7)
	column := func(name string, row int) string {
		for i, n := range rows[0] {
			if n == name {
				return rows[row][i]
			}
		}
		t.Fatalf("no column %s", name)
		return ""
	}
	require.Equal(t, "", column("min_capacity_bytes", 1))
	require.Equal(t, "3221225472", column("min_capacity_bytes", 2))
	require.Equal(t, "4294967296", column("failure_above_bytes", 2))
	require.Equal(t, "0.125", column("external_fragmentation_peak", 2))
	require.Equal(t, `{"limit":1}`, column("config", 3))
	require.Equal(t, "77", column("metadata_bytes", 6))
	require.Equal(t, "1234567", column("device_time_ns", 2))
}

func TestReplayTableCountsEachKindOfDeviceCall(t *testing.T) {
	r := &replay.Result{
		DeviceCalls: 1010, DeviceTime: 2_000_000_000,
		Calls: device.Calls{
			device.CallReserve: {Done: 3, Failed: 4}, device.CallMap: {Done: 1000}, device.CallCreateHandle: {Failed: 3},
		},
		DeviceTimes: device.Times{device.CallReserve: 70_000, device.CallMap: 1_450_000, device.CallTrimPool: 999},
	}
	var out bytes.Buffer
	require.NoError(t, report.ReplayText(&out, r))
	for _, want := range []string{
		`│ device calls\s+│\s+1010 in 2\.00 s │`, `│ device: reserve\s+│\s+3 in 70\.00 µs │`,
		`│ device: reserve refused\s+│\s+4 │`,
		`│ device: release\s+│\s+0 │`, `│ device: map\s+│\s+1000 in 1\.45 ms │`,
		`│ device: create-handle refused\s+│\s+3 │`,
		`│ device: trim-pool\s+│\s+0 in 999 ns │`,
	} {
		require.Regexp(t, want, out.String())
	}
	require.NotRegexp(t, `device: (unmap|create-handle) +│`, out.String())
}

func TestReplayTableShowsTheFirstFailure(t *testing.T) {
	x := 0.25
	r := &replay.Result{
		Strategy: "bfc", Trace: "one", ExternalFragmentationAtOOM: &x, MetadataBytes: size(2048), IllegalFrees: 3,
		NsPerOp: 50, OOMs: 1, Refused: 2, Events: 9, ReservationWaste: 0.5,
		Counters: replay.Counters{{Name: "num_alloc_retries", Value: 17},
			{Name: "inactive_split_bytes.all.peak", Value: 3 << 20}},
		Latency: &replay.Latency{Alloc: replay.Quantiles{P50: 1, P99: 2, P999: 3, Max: 4}, NsPerOp: 100},
		FirstFailure: &replay.FirstFailure{
			Event: 5, ID: 6, Size: 1 << 20, Error: "alloc: out of memory", Reason: "limit reached", Free: 2 << 20,
			LargestHole: 1 << 19,
		},
	}
	var out bytes.Buffer
	require.NoError(t, report.ReplayText(&out, r))
	require.True(t, strings.HasPrefix(out.String(), "FAILED: 1 OOM, refuses 2 requests, the first at event 5 of 9\n\n"+
		"bfc on one"), out.String())
	require.Regexp(t, `reservation waste +│ +— │`, out.String())
	for _, want := range []string{
		"external fragmentation at first OOM", "25.0 %", "2.00 KiB", "illegal frees refused",
		"PyTorch's num_alloc_retries             │               17 │",
		"PyTorch's inactive_split_bytes, peak", "3.00 MiB", "1 / 2 / 3 / 4 ns", "100.0 ns, 2.00 ×",
		"first of 3 failures: event 5, allocation 6 of 1.00 MiB: alloc: out of memory (limit reached)\n" +
			"  2.00 MiB free in held regions, largest hole 512.00 KiB, device unlimited\n",
	} {
		require.Contains(t, out.String(), want)
	}
	r.FirstFailure.DeviceFree = size(3 << 20)
	r.NsPerOp = 0 // nothing to compare with
	out.Reset()
	require.NoError(t, report.ReplayText(&out, r))
	require.Contains(t, out.String(), "device free 3.00 MiB")
	require.Contains(t, out.String(), " 100.0 ns │")
}

func TestTraceInfoShowsHostileNamesAsText(t *testing.T) {
	b := trace.NewBuilder(trace.Header{Name: "odd\nname", Format: "text"})
	require.NoError(t, b.AllocRequest(1, alloc.Request{Size: 1000}, "tag\x1b]0;x\a"))
	events := b.Trace()
	var out bytes.Buffer
	info := events.Info()
	require.NoError(t, report.TraceInfo(&out, &info))
	require.NotContains(t, out.String(), "\x1b")
	require.Contains(t, out.String(), `"odd\nname"`)
	require.Contains(t, out.String(), "1000 B")
}

var errFull = errors.New("disk full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriterErrorsAreReturned(t *testing.T) {
	require.ErrorIs(t, report.CompareTables(full{}, runs()), errFull)
	require.ErrorIs(t, report.CompareTable(runs()).WriteCSV(full{}), errFull)
	require.ErrorIs(t, report.ReplayText(full{}, &replay.Result{}), errFull)
	require.ErrorIs(t, report.TraceInfo(full{}, &trace.Info{}), errFull)
}
