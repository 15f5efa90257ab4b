package export_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/export"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

// picture is a file in the Chrome trace event format.
type picture struct {
	DisplayTimeUnit string         `json:"displayTimeUnit"`
	OtherData       map[string]any `json:"otherData"`
	TraceEvents     []drawnEvent   `json:"traceEvents"`
}

type drawnEvent struct {
	Phase    string         `json:"ph"`
	Process  int            `json:"pid"`
	Thread   *int           `json:"tid"`
	Name     string         `json:"name"`
	Time     float64        `json:"ts"`
	Duration *float64       `json:"dur"`
	Scope    string         `json:"s"`
	Args     map[string]any `json:"args"`
}

// painted writes a recording and reads it back under the rules of the format.
func painted(t *testing.T, r *export.Run) *picture {
	t.Helper()
	var out, again bytes.Buffer
	require.NoError(t, r.WritePerfetto(&out))
	require.NoError(t, r.WritePerfetto(&again))
	require.Equal(t, out.Bytes(), again.Bytes(), "the same again")
	decoder := json.NewDecoder(&out)
	decoder.DisallowUnknownFields()
	p := new(picture)
	require.NoError(t, decoder.Decode(p))
	require.Equal(t, "ns", p.DisplayTimeUnit)
	require.NoError(t, p.judge())
	return p
}

// judge checks the events of a picture: names, times, and that slices of a thread do not overlap.
func (p *picture) judge() error {
	names := map[string][]string{
		"M": {"process_name", "process_sort_index", "thread_name", "thread_sort_index"},
		"C": {"requested", "allocated", "active", "reserved"},
	}
	named := map[[2]int]bool{}
	top := map[[2]int]float64{} // end of the last slice of a thread
	for i, e := range p.TraceEvents {
		if e.Thread == nil || e.Name == "" || e.Time < 0 || e.Process != 1 && e.Process != 2 ||
			names[e.Phase] != nil && !slices.Contains(names[e.Phase], e.Name) {
			return fmt.Errorf("event %d: %+v", i, e)
		}
		key := [2]int{e.Process, *e.Thread}
		ok := false
		switch e.Phase {
		case "M":
			named[key], ok = true, true
		case "C":
			_, ok = e.Args["bytes"].(float64)
		case "i":
			ok = e.Scope == "p"
		case "X":
			ok = named[key] && e.Duration != nil && *e.Duration >= 0 && e.Time+1e-4 >= top[key]
			if ok {
				top[key] = e.Time + *e.Duration
			}
		}
		if !ok {
			return fmt.Errorf("event %d of thread %v, whose last slice ends at %v: %+v", i, key, top[key], e)
		}
	}
	return nil
}

// curve returns the highest value of a curve.
func (p *picture) curve(name string) (most float64) {
	for _, e := range p.TraceEvents {
		if e.Phase == "C" && e.Name == name {
			most = max(most, e.Args["bytes"].(float64))
		}
	}
	return most
}

// count returns how many events have a phase and a process.
func (p *picture) count(phase string, process int) (n int) {
	for _, e := range p.TraceEvents {
		if e.Phase == phase && e.Process == process {
			n++
		}
	}
	return n
}

func TestPicturesFollowTheFormat(t *testing.T) {
	const capacity = device.GiB
	for seed := range uint64(2) {
		tr := randomTrace(t, seed, 800)
		marks := 0
		for _, e := range tr.Events {
			if e.Kind == trace.Mark {
				marks++
			}
		}
		for _, s := range everySetup(t, capacity/8) {
			t.Run(fmt.Sprintf("%s/%d", s.Name, seed), func(t *testing.T) {
				r, res := recorded(t, tr, s, sim.Config{Capacity: capacity / 8}, replay.AtCompleted)
				p := painted(t, r)
				require.Equal(t, s.Name, p.OtherData["strategy"])
				require.InDelta(t, float64(res.Peak.Requested), p.curve("requested"), 0)
				require.InDelta(t, float64(res.Peak.Allocated), p.curve("allocated"), 0)
				require.InDelta(t, float64(res.Peak.Active), p.curve("active"), float64(res.Peak.Active)/20)
				require.LessOrEqual(t, p.curve("reserved"), float64(res.Peak.Reserved))
				require.Equal(t, int(res.Allocs)+marks, p.count("X", 1))
				require.Equal(t, int(res.OOMs), p.count("i", 1))
				require.NotZero(t, p.count("X", 2))
			})
		}
	}
}

// churn is a trace of n blocks of growing size with one large block in the middle.
func churn(t *testing.T, n, live int) *trace.Trace {
	t.Helper()
	b := trace.NewBuilder(trace.Header{Name: "churn", Format: "text"})
	for i := range n {
		size := device.Size(512 + i%7*512)
		if i == n/2 {
			size = 64 * device.MiB
		}
		require.NoError(t, b.Alloc(uint64(i), size, 0))
		if i >= live {
			require.NoError(t, b.Free(uint64(i-live)))
		}
	}
	return b.Trace()
}

// TestLargePicturesKeepPeaks draws more blocks than there is room for.
func TestLargePicturesKeepPeaks(t *testing.T) {
	for _, c := range []struct{ blocks, live, left int }{
		{1000, 256, 1000 - 255}, {1000, 600, 300}, {150_000, 10, 100_000},
	} {
		tr := churn(t, c.blocks, c.live)
		s, err := strategies.All().Lookup("bfc", nil)
		require.NoError(t, err)
		r, res := recorded(t, tr, s.ForCapacity(device.GiB), sim.Config{Capacity: device.GiB}, "")
		p := painted(t, r)
		drawn := p.count("X", 1)
		require.Equal(t, c.blocks, drawn+int(p.OtherData["blocks_not_drawn"].(float64)))
		require.GreaterOrEqual(t, drawn, c.left)
		require.LessOrEqual(t, drawn, 100_000)
		require.InDelta(t, float64(res.Peak.Requested), p.curve("requested"), 0)
		large := 0
		for _, e := range p.TraceEvents {
			if e.Name == "64MiB" {
				large++
			}
		}
		require.Equal(t, 1, large, "the largest block is drawn")
		require.Less(t, p.count("C", 1), 4*(1<<16)+4)
	}
}

// TestManyCallsKeepTheLongest draws more calls to the device than there is room for.
func TestManyCallsKeepTheLongest(t *testing.T) {
	s, err := strategies.All().Lookup("slab", json.RawMessage(`{"max_class_bytes":"256"}`))
	require.NoError(t, err)
	r, res := recorded(t, churn(t, 60_000, 3), s.ForCapacity(device.GiB), sim.Config{Capacity: device.GiB}, "")
	require.Greater(t, res.DeviceCalls, uint64(100_000))
	p := painted(t, r)
	require.Equal(t, 100_000, p.count("X", 2))
}

var errDisk = errors.New("no space left")

// fullAfter is a disk that is full after this number of bytes.
type fullAfter int

func (f *fullAfter) Write(b []byte) (int, error) {
	if *f -= fullAfter(len(b)); *f < 0 {
		return 0, errDisk
	}
	return len(b), nil
}

var _ io.Writer = (*fullAfter)(nil)

func TestFullDiskFailsThePicture(t *testing.T) {
	r := example(t, "bfc", alloc.Request{Size: 1000})
	room := fullAfter(100)
	require.ErrorIs(t, r.WritePerfetto(&room), errDisk)
}

// example is a recording of some requests, which are freed again but for the last.
func example(t *testing.T, strategy string, requests ...alloc.Request) *export.Run {
	t.Helper()
	b := trace.NewBuilder(trace.Header{Name: "example", Format: "text"})
	for i, q := range requests {
		require.NoError(t, b.AllocRequest(uint64(i), q, fmt.Sprintf("tensor %d", i)))
	}
	for i := range requests[1:] {
		require.NoError(t, b.Free(uint64(i)))
	}
	s, err := strategies.All().Lookup(strategy, nil)
	require.NoError(t, err)
	r, _ := recorded(t, b.Trace(), s.ForCapacity(device.GiB), sim.Config{Capacity: device.GiB}, "")
	return r
}
