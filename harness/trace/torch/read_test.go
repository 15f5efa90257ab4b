package torch_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/internal/fileio"
)

const snapshotVectorDir = "testdata/vectors"

// content returns what a compressed file holds.
func content(t testing.TB, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	plain, err := fileio.NewReader(f)
	require.NoError(t, err)
	defer plain.Close()
	data, err := io.ReadAll(plain)
	require.NoError(t, err)
	return data
}

// read reads a snapshot that must be right.
func read(t testing.TB, data []byte) *torch.Snapshot {
	t.Helper()
	s, err := torch.Read(bytes.NewReader(data), nil)
	require.NoError(t, err)
	return s
}

// vectors returns the names of the snapshots of which the truth is known.
func vectors(t testing.TB) []string {
	t.Helper()
	names, err := filepath.Glob(snapshotVectorDir + "/*.pickle.xz")
	require.NoError(t, err)
	require.Len(t, names, 8)
	return names
}

// truth is what the program did that a snapshot is of.
type snapshotTruth struct {
	Base   uint64  `json:"address_base"`
	Live   [][]any `json:"live_when_recording_started"` // id, requested, stream, offset, block
	Events [][]any `json:"events_while_recording"`      // "alloc", id, requested, stream, offset, block; "free", id; …
}

// given is an allocation as the program saw it.
type given struct {
	addr, requested, block uint64
	stream                 int64
}

// allocation decodes an allocation of the truth, from its id on.
func (w *snapshotTruth) allocation(row []any) (id float64, g given) {
	n := func(i int) uint64 { return uint64(row[i].(float64)) }
	return row[0].(float64), given{addr: w.Base + n(3), requested: n(1), block: n(4), stream: int64(n(2) << 12)}
}

// TestVectorsMatchTheProgram compares what is read with what the program did.
func TestVectorsMatchTheProgram(t *testing.T) {
	truths := map[string]string{"full_protocol5": "full", "skip_free_requested": "multi_stream_pending"}
	for _, path := range vectors(t) {
		name := strings.TrimSuffix(filepath.Base(path), ".pickle.xz")
		t.Run(name, func(t *testing.T) {
			s := read(t, content(t, path))
			if other, ok := truths[name]; ok {
				name = other
			}
			var w snapshotTruth
			require.NoError(t, json.Unmarshal(content(t, snapshotVectorDir+"/"+name+".truth.json.xz"), &w))
			live := map[float64]given{}
			for _, row := range w.Live {
				id, g := w.allocation(row)
				live[id] = g
			}
			var want []given
			for _, row := range w.Events {
				switch row[0] {
				case "alloc":
					id, g := w.allocation(row[1:])
					live[id] = g
					want = append(want, g)
				case "free":
					delete(live, row[1].(float64))
				}
			}
			require.Len(t, s.Devices, 1)
			require.Empty(t, s.Unknown)
			d := &s.Devices[0]
			if name != "state_only" {
				require.Equal(t, want, allocated(&d.History, want))
			}
			require.ElementsMatch(t, values(live), blocksOf(d))
		})
	}
}

// values returns the values of a map in no order.
func values(live map[float64]given) []given {
	var all []given
	for _, g := range live {
		all = append(all, g)
	}
	return all
}

// allocated returns the allocations of a history. Blocks are as large as want says, because a
// history does not.
func allocated(h *torch.History, want []given) []given {
	var all []given
	for i := range h.Len() {
		if e := h.At(i); e.Action == torch.ActionAlloc {
			g := given{addr: e.Addr, requested: e.Size, stream: h.Streams[e.Stream]}
			if len(all) < len(want) {
				g.block = want[len(all)].block
			}
			all = append(all, g)
		}
	}
	return all
}

// blocksOf returns the blocks that the program has.
func blocksOf(d *torch.Device) []given {
	var all []given
	for _, seg := range d.Segments {
		for _, b := range seg.Blocks {
			if b.State == torch.ActiveAllocated {
				all = append(all, given{addr: b.Addr, requested: b.Requested, block: b.Size, stream: seg.Stream})
			}
		}
	}
	return all
}

// TestProtocolsAgree reads what Python before and after 3.14 writes.
func TestProtocolsAgree(t *testing.T) {
	require.Equal(t, read(t, content(t, snapshotVectorDir+"/full.pickle.xz")),
		read(t, content(t, snapshotVectorDir+"/full_protocol5.pickle.xz")))
}

// TestFormsAgree reads one snapshot in the other forms that occur: as PyTorch's own writer has it,
// which takes one batch for a list of any length, by older Python, as JSON, and in parts.
func TestFormsAgree(t *testing.T) {
	full := read(t, content(t, snapshotVectorDir+"/full.pickle.xz"))
	for _, form := range []string{"protocol2.pickle.xz", "protocol3.pickle.gz", "json.xz", "wrapped.pickle.xz"} {
		f, err := os.Open("testdata/forms/" + form)
		require.NoError(t, err)
		s, err := torch.Read(f, nil)
		require.NoError(t, err, form)
		require.NoError(t, f.Close())
		require.Equal(t, dump(full), dump(s), form)
	}
	parts := read(t, content(t, "testdata/forms/segments.pickle.xz"))
	require.Equal(t, full.Devices[0].Segments[0].Addr, parts.Devices[0].Segments[0].Addr)
	require.Len(t, parts.Devices[0].Segments, len(full.Devices[0].Segments))
	require.Zero(t, parts.Devices[0].History.Len())
}

// TestSegmentsAreTiled looks at what every snapshot promises.
func TestSegmentsAreTiled(t *testing.T) {
	for _, path := range vectors(t) {
		for _, d := range read(t, content(t, path)).Devices {
			checkTiled(t, path, &d)
		}
	}
}

func checkTiled(t *testing.T, path string, d *torch.Device) {
	t.Helper()
	require.True(t, slices.IsSortedFunc(d.Segments, func(a, b torch.Segment) int {
		return int(int64(a.Addr - b.Addr))
	}), path)
	for _, seg := range d.Segments {
		at, allocated := seg.Addr, uint64(0)
		for _, b := range seg.Blocks {
			require.Equal(t, at, b.Addr, path)
			at += b.Size
			if b.State == torch.ActiveAllocated {
				allocated += b.Size
			}
		}
		require.Equal(t, seg.Addr+seg.Total, at, path)
		require.Equal(t, seg.Allocated, allocated, path)
	}
}

// TestRecordings reads recordings of real programs, which are not in the repository.
func TestSnapshotRecordings(t *testing.T) {
	dir := os.Getenv("VRAMYARD_SNAPSHOTS")
	if dir == "" {
		t.Skip("set VRAMYARD_SNAPSHOTS to a directory with snapshots, as docs/verify.md says")
	}
	n := 0
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.Contains(path, ".pickle") {
			return err
		}
		n++
		s := read(t, content(t, path))
		entries, segments := 0, 0
		for _, d := range s.Devices {
			checkTiled(t, path, &d)
			entries += d.History.Len()
			segments += len(d.Segments)
		}
		t.Logf("%s: %d entries, %d segments, %d frames in %d stacks, ignored %v", filepath.Base(path), entries, segments,
			len(s.Frames)-1, s.Calls.Len()-1, s.Unknown)
		return nil
	}))
	require.NotZero(t, n, "no snapshots in %s", dir)
}
