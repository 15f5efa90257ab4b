package torch_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/internal/fileio"
)

// vectorDir holds snapshots of programs of which everything is known.
const vectorDir = "testdata/vectors"

// truth is what such a program did. Numbers are those of JSON.
type truth struct {
	Base uint64  `json:"address_base"`
	Live [][]any `json:"live_when_recording_started"` // id, requested, stream, offset, block
	// "alloc", id, requested, stream, …; "free", id; "oom", id, requested, stream; "empty_cache"
	Events [][]any `json:"events_while_recording"`
}

// readTruth reads the truth about a vector.
func readTruth(t *testing.T, name string) *truth {
	t.Helper()
	f, err := os.Open(filepath.Join(vectorDir, name+".truth.json.xz"))
	require.NoError(t, err)
	defer f.Close()
	plain, err := fileio.NewReader(f)
	require.NoError(t, err)
	defer plain.Close()
	data, err := io.ReadAll(plain)
	require.NoError(t, err)
	w := &truth{}
	require.NoError(t, json.Unmarshal(data, w))
	return w
}

// load reads a snapshot that must be right.
func load(t *testing.T, path string) *torch.Snapshot {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	s, err := torch.Read(f, nil)
	require.NoError(t, err)
	return s
}

// pairing gives each allocation of the truth the one of the trace that it must be.
type pairing struct {
	t  *testing.T
	of map[float64]uint64
}

// pair notes that two allocations are the same.
func (p *pairing) pair(id any, ours uint64) { p.of[id.(float64)] = ours }

// n returns a number of JSON.
func n(x any) uint64 { return uint64(x.(float64)) }

// rounded returns a size as the allocator counts it.
func rounded(size uint64) device.Size { return device.Size((size + 511) / 512 * 512) }

// event compares an event of the trace with one of the truth.
func (p *pairing) event(e *trace.Event, row []any) {
	switch row[0] {
	case "alloc":
		require.Equal(p.t, trace.Alloc, e.Kind)
		require.EqualValues(p.t, n(row[2]), e.Size)
		require.EqualValues(p.t, n(row[3])<<12, e.Stream)
		p.pair(row[1], e.ID)
	case "free":
		require.Equal(p.t, trace.Free, e.Kind)
		require.Equal(p.t, p.of[row[1].(float64)], e.ID)
	case "oom":
		require.Equal(p.t, trace.Refused, e.Kind)
		require.Equal(p.t, rounded(n(row[2])), e.Size)
		require.EqualValues(p.t, n(row[3])<<12, e.Stream)
	case "empty_cache":
		require.Equal(p.t, trace.Trim, e.Kind)
	}
}

// TestTracesMatchTheCallsOfThePrograms compares traces with the truth, event by event.
func TestTracesMatchTheCallsOfThePrograms(t *testing.T) {
	for _, name := range []string{
		"full", "full_protocol5", "mid_start", "multi_stream_pending", "private_pool", "segment_free", "state_only",
	} {
		t.Run(name, func(t *testing.T) {
			s := load(t, filepath.Join(vectorDir, name+".pickle.xz"))
			w := readTruth(t, strings.TrimSuffix(name, "_protocol5"))
			results, err := torch.Traces(s)
			require.NoError(t, err)
			require.Len(t, results, 1)
			require.Empty(t, results[0].Report.Findings)
			p := pairing{t, map[float64]uint64{}}
			p.opening(&s.Devices[0], results[0].Trace, w)
			events := requests(results[0].Trace)
			var rows [][]any
			for _, row := range w.Events {
				switch row[0] {
				case "alloc", "free", "oom", "empty_cache":
					rows = append(rows, row)
				}
			}
			require.Len(t, events, len(rows))
			for i := range events {
				p.event(&events[i], rows[i])
			}
		})
	}
}

// opening compares what was live when the recording began, which the trace lists by stream and
// address.
func (p *pairing) opening(d *torch.Device, tr *trace.Trace, w *truth) {
	opening := torch.Interpret(d).Opening
	require.Len(p.t, opening, len(w.Live))
	at := map[uint64]int{}
	for id, o := range opening {
		require.EqualValues(p.t, trace.Event{
			Kind: trace.LiveAtStart, ID: uint64(id), Slot: uint32(id), Size: device.Size(o.Size),
			Stream: device.Stream(o.Stream),
			Time:   trace.NoTime,
		}, tr.Events[id])
		at[o.Addr] = id
	}
	for _, row := range w.Live {
		id, ok := at[w.Base+n(row[3])]
		require.True(p.t, ok)
		o := opening[id]
		require.Equal(p.t, n(row[1]), o.Size)
		require.EqualValues(p.t, n(row[2])<<12, o.Stream)
		if o.Granted != 0 {
			require.Equal(p.t, n(row[4]), o.Granted)
		}
		p.pair(row[0], uint64(id))
	}
}

// requests returns the events that the program made.
func requests(tr *trace.Trace) (list []trace.Event) {
	for _, e := range tr.Events {
		switch e.Kind {
		case trace.Alloc, trace.Free, trace.Refused, trace.Trim:
			list = append(list, e)
		}
	}
	return list
}

// TestDelayedFreesAreCompleted compares a recording with requested frees and one without: each
// block is reusable at the same moment in both.
func TestDelayedFreesAreCompleted(t *testing.T) {
	full := load(t, filepath.Join(vectorDir, "multi_stream_pending.pickle.xz"))
	bare := load(t, filepath.Join(vectorDir, "skip_free_requested.pickle.xz"))
	results, err := torch.Traces(full)
	require.NoError(t, err)
	others, err := torch.Traces(bare)
	require.NoError(t, err)
	require.Empty(t, others[0].Report.Findings)
	late := map[uint64]bool{}
	for _, e := range results[0].Trace.Events {
		if e.Kind == trace.Completed {
			late[e.ID] = true
		}
	}
	require.Len(t, late, results[0].Report.Delayed)
	var want []trace.Event
	for _, e := range results[0].Trace.Events {
		switch {
		case e.Kind == trace.Free && late[e.ID]:
			continue
		case e.Kind == trace.Completed:
			e.Kind = trace.Free
		}
		e.Time = trace.NoTime
		want = append(want, e)
	}
	pending := results[0].Report.EndPending.Count
	require.Equal(t, 1, pending)
	want = want[:len(want)-pending]
	got := others[0].Trace.Events
	for i := range got {
		got[i].Time = trace.NoTime
	}
	require.Equal(t, want, got)
}

// snapshots is the variable that names a folder with recordings of real programs: X.pickle.xz, and
// beside those with a history the same as X.csv.gz, made by another program.
const snapshots = "VRAMYARD_SNAPSHOTS"

// TestRecordings compares real recordings with what another program made of them, event by event.
func TestRecordings(t *testing.T) {
	dir := os.Getenv(snapshots)
	if dir == "" {
		t.Skip(snapshots + " names no folder of recordings")
	}
	compared := 0
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		name, ok := strings.CutSuffix(path, ".pickle.xz")
		if err != nil || !ok {
			return err
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			results, err := torch.Traces(load(t, path))
			require.NoError(t, err)
			require.Len(t, results, 1)
			t.Log(results[0].Report)
			require.Empty(t, results[0].Report.Findings)
			if _, err := os.Stat(name + ".csv.gz"); err != nil {
				require.LessOrEqual(t, results[0].Report.Entries, 1, "%s.csv.gz is missing", name)
				return
			}
			other, err := trace.Open(name+".csv.gz", trace.Options{})
			require.NoError(t, err)
			sameTrace(t, other, results[0].Trace)
			compared++
		})
		return nil
	}))
	require.NotZero(t, compared)
}

// sameTrace compares the requests of two traces, whose ids may differ. The other program finds
// neither pools nor emptied caches.
func sameTrace(t *testing.T, want, got *trace.Trace) {
	t.Helper()
	only := func(tr *trace.Trace) (list []trace.Event) {
		for _, e := range tr.Events {
			switch e.Kind {
			case trace.Mark, trace.Trim, trace.PoolBegin, trace.PoolEnd, trace.PoolRelease:
			default:
				list = append(list, e)
			}
		}
		return list
	}
	a, b := only(want), only(got)
	require.Len(t, b, len(a))
	ids := map[uint64]uint64{}
	start := int64(-1)
	for i := range a {
		if a[i].Kind == trace.Alloc || a[i].Kind == trace.LiveAtStart {
			ids[a[i].ID] = b[i].ID
		}
		if b[i].Kind == trace.LiveAtStart {
			require.Equal(t, trace.Alloc, a[i].Kind)
			require.True(t, strings.HasPrefix(want.TagOf(&a[i]), "preexisting"))
		} else {
			if start < 0 {
				start = a[i].Time
			}
			require.Equal(t, a[i].Kind, b[i].Kind, "event %d", i)
			if a[i].Kind == trace.Alloc {
				require.Equal(t, a[i].Time-start, b[i].Time, "event %d", i)
			} // the other program has the times at which frees were completed
		}
		require.Equal(t, a[i].Size, b[i].Size, "event %d", i)
		require.Equal(t, a[i].Stream, b[i].Stream, "event %d", i)
		require.Equal(t, ids[a[i].ID], b[i].ID, "event %d", i)
	}
}
