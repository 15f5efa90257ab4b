package replay_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

// run replays a text trace.
func run(t *testing.T, text, strategy, config string, c sim.Config, o replay.Options) (*replay.Result, error) {
	t.Helper()
	events, err := trace.Read(strings.NewReader(text), "test.trace", trace.Options{})
	require.NoError(t, err)
	setup, err := strategies.All().Lookup(strategy, json.RawMessage(config))
	require.NoError(t, err)
	dev, err := sim.New(c)
	require.NoError(t, err)
	return replay.Run(events, setup, dev, o)
}

// worked is a trace small enough to follow by hand in a pool of 8192 bytes: 1 lies at
// 0-1024, 2 at 1024-1280, 3 at 1280-3328; the tail of 4864 bytes is free.
const worked = `a 1 1000
a 2 256
a 3 2000
f 1
a 4 5000
f 2
`

const workedPool = `{"limit":8192}`

func TestFiguresOfAWorkedExample(t *testing.T) {
	r, err := run(t, worked, "bfc", workedPool, sim.Config{Capacity: 16384}, replay.Options{Figures: true})
	require.NoError(t, err)
	require.Equal(t, device.Size(7256), r.LowerBound, "2, 3 and 4; 1 is freed before")
	require.Equal(t, 6, r.Events)
	require.Equal(t, []uint64{3, 2, 1, 0}, []uint64{r.Allocs, r.Frees, r.OOMs, r.Refused})
	require.Equal(t, replay.Now{Requested: 2000, Allocated: 2048, Active: 2048, Reserved: 8192}, r.Now)
	require.Equal(t, replay.Peak{Requested: 3256, Allocated: 3328, Active: 3328, Reserved: 8192, Charged: 8192}, r.Peak)
	require.InDelta(t, 1-3256./3328, r.InternalFragmentation, 1e-12)
	require.InDelta(t, 1-3256./8192, r.ReservationWaste, 1e-12)
	require.InDelta(t, 1-4864./6144, r.ExternalFragmentationPeak, 1e-12, "at the end: holes of 1280 and 4864")
	require.InDelta(t, 1-4864./5888, *r.ExternalFragmentationAtOOM, 1e-12, "holes of 1024 and 4864")
	require.Zero(t, r.ExternalFragmentationAtPeak, "after the first request what is free is one piece")
	require.Equal(t, replay.Headroom{AtPeak: 7168, Final: 4864}, r.Headroom)
	require.Equal(t, replay.CallsByKind{Reserve: 1}, r.CallsByKind)
	require.Equal(t, uint64(1), r.DeviceCalls)
	free := device.Size(8192)
	require.Equal(t, &replay.FirstFailure{
		Event: 4, ID: 4, Size: 5000, Error: "alloc: out of memory", Reason: "limit reached",
		DeviceFree: &free, LargestHole: 4864, Free: 5888,
	}, r.FirstFailure)
	require.NotNil(t, r.MetadataBytes)
	require.Equal(t, []replay.Point{
		{Event: 0, Requested: 1000, Allocated: 1024, Reserved: 8192},
		{Event: 1, Requested: 1256, Allocated: 1280, Reserved: 8192},
		{Event: 2, Requested: 3256, Allocated: 3328, Reserved: 8192},
		{Event: 3, Requested: 2256, Allocated: 2304, Reserved: 8192},
		{Event: 4, Requested: 2256, Allocated: 2304, Reserved: 8192, OOMs: 1},
		{Event: 5, Requested: 2000, Allocated: 2048, Reserved: 8192},
	}, r.Series.Points)
}

func TestPlacementsAndFinalState(t *testing.T) {
	var placements, final bytes.Buffer
	_, err := run(t, worked+"a 5 0\na 6 9 align=1MiB\nprint stats\nprint map\n", "bfc", workedPool, sim.Config{},
		replay.Options{Placements: &placements, Final: &final})
	require.NoError(t, err)
	// Columns 15 (1280 of 8192 bytes) to 40 (3280) hold requested bytes.
	rendering := "O " + strings.Repeat("_", 15) + strings.Repeat("*", 26) + strings.Repeat("_", 59) + "\n"
	require.Equal(t, `1 0 1024
2 1024 256
3 1280 2048
4 OOM
5 NULL
6 INVALID
P 3 2048 3328 2048 8192 8192 4864 16384 0.20833333333333334
`+rendering, placements.String())
	require.Equal(t, `S num_allocs 3
S bytes_in_use 2048
S peak_bytes_in_use 3328
S largest_alloc_size 2048
S bytes_limit 8192
S pool_bytes 8192
S peak_pool_bytes 8192
S largest_free_chunk 4864
S next_region_bytes 16384
S num_regions 1
S num_chunks 3
S num_free_chunks 2
S timestamped_queue_len 0
S device_allocs 1
S device_frees 0
S device_alloc_failures 0
S fragmentation 0.20833333333333334
`+rendering+`R 0 8192
C 0 1280 0 0 2 0 -1
C 1280 2048 1 2000 -1 0 3
C 3328 4864 0 0 4 0 -1
`, final.String())
}

func TestFinalStateOfAStrategyThatLacksFigures(t *testing.T) {
	var final bytes.Buffer
	_, err := run(t, "a 1 20000\n", "buddy", `{"compat":"xdl","region_bytes":65536}`, sim.Config{},
		replay.Options{Final: &final})
	require.NoError(t, err)
	for _, line := range []string{
		"S bytes_limit -1\n", "S timestamped_queue_len -1\n", "R 0 65536\n", "C 0 32768 1 20000 -1 0 1\n",
		"C 32768 32768 0 0 1 0 -1\n",
	} {
		require.Contains(t, final.String(), line)
	}
}

func TestStopAtTheFirstOOM(t *testing.T) {
	r, err := run(t, worked, "bfc", workedPool, sim.Config{}, replay.Options{StopAtOOM: true})
	require.NoError(t, err)
	require.True(t, r.Stopped)
	require.Equal(t, uint64(1), r.Frees)
}

func TestLatencyIsMeasuredOnRequest(t *testing.T) {
	r, err := run(t, worked, "bfc", workedPool, sim.Config{}, replay.Options{Latency: true})
	require.NoError(t, err)
	require.Equal(t, uint64(4), r.Latency.Alloc.Count)
	require.Equal(t, uint64(2), r.Latency.Free.Count)
	require.LessOrEqual(t, r.Latency.Alloc.P50, r.Latency.Alloc.Max)
	require.Zero(t, r.NsPerOp)
	require.Positive(t, r.Latency.NsPerOp)
}

func TestCounterexampleEvents(t *testing.T) {
	r, err := run(t, `a 1 1000
badfree 1 +256
badfree null
badfree 0x99
f 1
badfree 1
fault 1
a 2 5MiB
a 3 100
f 3
trim
frontier 3
a 4 100
use 4 1
drain 1
clear
a 5 100
`, "bfc:growth", ``, sim.Config{}, replay.Options{Figures: true})
	require.NoError(t, err)
	require.Equal(t, uint64(4), r.IllegalFrees)
	require.Equal(t, uint64(1), r.CallsByKind.Refused, "the fault")
	require.Positive(t, r.CallsByKind.Release, "the trim")
	require.Equal(t, uint64(2), r.Ignored, "streams: use and drain")
	require.Equal(t, 5*device.MiB+200, r.Peak.Requested, "clearing the strategy's peaks leaves the replay's")
}

func TestFaultsOfACounterexample(t *testing.T) {
	for _, c := range []struct {
		text    string
		refused uint64
		oom     uint64
	}{
		{"# fault-nth=1\na 1 1000\n", 1, 0},                  // BFC asks again, for less
		{"# fault-nth=3\na 1 1000\nf 1\n", 0, 0},             // never reached
		{"# fault-nth=2\na 1 1000\nf 1\n", 0, 0},             // the release when the strategy is closed
		{"a 1 1000\nfault 5\n", 0, 0},                        // likewise
		{"fault 90\na 1 1000\nf 1\nfault 0\na 2 9\n", 69, 1}, // from 1 MiB in steps of 0.9 to 1024 bytes
	} {
		r, err := run(t, c.text, "bfc", `{"limit":"1MiB"}`, sim.Config{}, replay.Options{})
		require.NoError(t, err, c.text)
		require.Equal(t, c.refused, r.CallsByKind.Refused, c.text)
		require.Equal(t, c.oom, r.OOMs, c.text)
	}
	_, err := run(t, "# fault-nth=two\na 1 1\n", "bfc", ``, sim.Config{}, replay.Options{})
	require.EqualError(t, err, "test: header fault-nth=two: want the number of a device call")
}

// liar is a strategy that breaks the contract in one way.
type liar struct {
	wrap.Forwarder
	how string
}

func (l *liar) Stats() alloc.Stats {
	s := l.Forwarder.Stats()
	switch l.how {
	case "requested":
		s.Requested++
	case "allocated":
		s.Allocated--
	case "reserved":
		s.Reserved += 256
	case "live":
		s.Live++
	}
	return s
}

func (l *liar) Free(a device.Addr) error {
	if l.how == "free" {
		return alloc.ErrInvalidFree
	}
	if err := l.Forwarder.Free(a); l.how != "accepts" {
		return err
	}
	return nil
}

func (l *liar) Close() error {
	if l.how == "leak" {
		return nil
	}
	if err := l.Forwarder.Close(); err != nil {
		return err
	}
	if l.how == "close" {
		return errors.New("not today")
	}
	return nil
}

func TestABrokenContractIsAnError(t *testing.T) {
	for how, want := range map[string]string{
		"requested": "the strategy counts 2001 requested bytes, the replay 2000",
		"allocated": "allocated bytes",
		"reserved":  "reserved bytes",
		"live":      "live blocks",
		"free":      "event 3: free of live allocation 1: alloc: invalid free",
		"leak":      "close left 8192 bytes reserved",
		"close":     "close: not today",
		"accepts":   "event 6: illegal free of 0x10: got <nil>",
		"":          "",
	} {
		spec := setting.SpecOf("liar", "", func(src device.Source, _ struct{}) (*liar, error) {
			setup, err := strategies.All().Lookup("bfc", json.RawMessage(workedPool))
			require.NoError(t, err)
			s, err := setup.New(src)
			return &liar{wrap.Forward(s, nil), how}, err
		})
		setup, err := setting.Catalogue{spec}.Lookup("liar", nil)
		require.NoError(t, err)
		dev, err := sim.New(sim.Config{})
		require.NoError(t, err)
		events, err := trace.Read(strings.NewReader(worked+"badfree 0x10\n"), "x", trace.Options{})
		require.NoError(t, err)
		_, err = replay.Run(events, setup, dev, replay.Options{})
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want, how)
		require.ErrorContains(t, err, "liar on x: ", how)
	}
}

func TestWriterErrorsAreReported(t *testing.T) {
	for _, o := range []replay.Options{{Placements: full{}}, {Final: full{}}} {
		_, err := run(t, worked, "bfc", workedPool, sim.Config{}, o)
		require.ErrorIs(t, err, errFull)
	}
}

var errFull = errors.New("disk full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestAStrategyThatCannotBeBuilt(t *testing.T) {
	_, err := run(t, worked, "slab:blaze", ``, sim.Config{Capacity: device.MiB}, replay.Options{})
	require.ErrorIs(t, err, device.ErrOutOfMemory)
}

func TestSeriesIsBoundedAndKeepsPeaks(t *testing.T) {
	var text strings.Builder
	for i := range 20000 {
		size := 256
		if i == 12345 {
			size = 1 << 20
		}
		fmt.Fprintf(&text, "a %d %d\nf %d\n", i, size, i)
	}
	r, err := run(t, text.String(), "bfc", `{"limit":"4MiB"}`, sim.Config{}, replay.Options{Figures: true})
	require.NoError(t, err)
	points := r.Series.Points
	require.LessOrEqual(t, len(points), replay.MaxPoints)
	require.Greater(t, len(points), replay.MaxPoints/2-1)
	require.Equal(t, 39999, points[len(points)-1].Event)
	var peak device.Size
	last := -1
	for _, p := range points {
		require.Greater(t, p.Event, last)
		require.LessOrEqual(t, p.Event-last, r.Series.Stride)
		last = p.Event
		peak = max(peak, p.Requested)
	}
	require.Equal(t, device.Size(1<<20), peak)
}

// TestFreeOfNullMayBeIgnored replays a free of null through a strategy that ignores it and one that
// refuses it.
func TestFreeOfNullMayBeIgnored(t *testing.T) {
	for _, name := range []string{"bfc", "tlsf"} {
		res, err := run(t, "a 1 1000\nbadfree null\nf 1\n", name, `{"limit":1048576}`, sim.Config{}, replay.Options{})
		require.NoError(t, err, name)
		require.EqualValues(t, 1, res.IllegalFrees, name)
	}
}
