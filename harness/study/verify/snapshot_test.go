package verify_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/verify"
	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/strategies/caching"
)

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

// recordedTarget is the strategy with the settings of a snapshot.
func recordedTarget(t *testing.T, s *torch.Snapshot) *verify.Target {
	t.Helper()
	var c caching.Config
	require.NoError(t, json.Unmarshal(torch.Config(s.Settings), &c))
	c, err := c.WithDefaults()
	require.NoError(t, err)
	sizes, err := c.BlockSizes()
	require.NoError(t, err)
	return &verify.Target{
		Open: func(src device.Source, opening []alloc.Chunk) (verify.Seedable, error) {
			return caching.Open(src, c, opening)
		},
		Round: sizes.Round, Unsplit: sizes.Unsplit,
	}
}

// vectorDir holds snapshots of programs of which everything is known.
const vectorDir = "../../trace/torch/testdata/vectors"

func TestCachingPredictsSnapshots(t *testing.T) {
	for name, c := range map[string]struct{ allocs, missed, segments int }{
		"full": {66, 0, 3}, "full_protocol5": {66, 0, 3}, "mid_start": {2288, 0, 46},
		"multi_stream_pending": {211, 0, 10}, "skip_free_requested": {211, 0, 10}, "segment_free": {176, 0, 134},
		// Its private pools went back before it was written, so nothing tells which segments they
		// had.
		"private_pool": {820, 63, 35},
	} {
		t.Run(name, func(t *testing.T) {
			s := load(t, filepath.Join(vectorDir, name+".pickle.xz"))
			h, err := verify.FromTimeline(torch.Interpret(&s.Devices[0]))
			require.NoError(t, err)
			res, err := verify.Run(h, recordedTarget(t, s))
			require.NoError(t, err)
			require.Equal(t, c.allocs, res.Allocs)
			require.Equal(t, c.segments, res.Segments)
			require.Equal(t, c.missed, res.Allocs-res.Predicted, "%v", res.First)
			require.Equal(t, c.missed, res.UnknownPool, "in segments whose pool is not told")
			require.Zero(t, res.Inconsistent, res.FirstInconsistency)
			require.Equal(t, res.Recorded, res.Reserved)
		})
	}
}

func TestSnapshotsWithoutHistoryAreNotVerified(t *testing.T) {
	s := load(t, filepath.Join(vectorDir, "state_only.pickle.xz"))
	_, err := verify.FromTimeline(torch.Interpret(&s.Devices[0]))
	require.ErrorIs(t, err, verify.ErrNoHistory)
}

// handmade is a device with two segments of one stream, the second in a private pool.
func handmade(pool [2]uint64) *torch.Device {
	d := &torch.Device{Segments: []torch.Segment{
		{Addr: 1 << 21, Total: 1 << 21},
		{Addr: 1 << 22, Total: 1 << 21, Pool: pool, Blocks: []torch.Block{
			{Addr: 1 << 22, Size: 512, Requested: 9, State: torch.ActiveAllocated},
		}},
	}}
	d.History.Streams = []int64{0}
	return d
}

// TestRequestsOfPrivatePoolsAreServedThere takes a segment for a pool although another one has
// room.
func TestRequestsOfPrivatePoolsAreServedThere(t *testing.T) {
	for pool, missed := range map[[2]uint64]int{{0, 7}: 0, {0, 0}: 2} {
		d := handmade(pool)
		d.History.Append(torch.Entry{Action: torch.ActionSegmentAlloc, Addr: 1 << 22, Size: 1 << 21})
		d.History.Append(torch.Entry{Action: torch.ActionAlloc, Addr: 1 << 22, Size: 9})
		d.History.Append(torch.Entry{Action: torch.ActionAlloc, Addr: 1 << 21, Size: 10})
		d.History.Append(torch.Entry{Action: torch.ActionFreeRequested, Addr: 1 << 21, Size: 10})
		d.History.Append(torch.Entry{Action: torch.ActionFreeCompleted, Addr: 1 << 21, Size: 10})
		h, err := verify.FromTimeline(torch.Interpret(d))
		require.NoError(t, err)
		res, err := verify.Run(h, recordedTarget(t, &torch.Snapshot{}))
		require.NoError(t, err)
		require.Equal(t, missed, res.Allocs-res.Predicted, "%v", res.First)
	}
}

func TestImpossibleEntriesAreReported(t *testing.T) {
	d := handmade([2]uint64{})
	d.History.Append(torch.Entry{Action: torch.ActionAlloc, Addr: 1 << 30, Size: 9})
	h, err := verify.FromTimeline(torch.Interpret(d))
	require.NoError(t, err)
	res, err := verify.Run(h, recordedTarget(t, &torch.Snapshot{}))
	require.NoError(t, err)
	require.Equal(t, "event 0: allocation 1 of 9B at 0x40000000 lies in no segment", res.FirstInconsistency)
	require.Equal(t, []int{1, 0, 1}, []int{res.Allocs, res.Predicted, res.Inconsistent})

	d = handmade([2]uint64{})
	d.History.Append(torch.Entry{Action: torch.ActionAlloc, Addr: 1 << 30})
	_, err = verify.FromTimeline(torch.Interpret(d))
	require.EqualError(t, err, "entry 0: an allocation of 0 bytes: want more than 0 and less than 2^60")
}

// TestImpossibleStepsAreSkipped makes the segments of a recording newer than its history, as with
// threads: the rest is still predicted.
func TestImpossibleStepsAreSkipped(t *testing.T) {
	s := load(t, filepath.Join(vectorDir, "multi_stream_pending.pickle.xz"))
	d := &s.Devices[0]
	seg := &d.Segments[len(d.Segments)-1]
	seg.Blocks = append(seg.Blocks[:0:0], seg.Blocks...)
	b := seg.Blocks[0]
	b.State, b.Requested = torch.ActiveAllocated, b.Size
	half := b
	half.Addr, half.Requested = b.Addr+b.Size/2, b.Size/2
	seg.Blocks = append(seg.Blocks, b, half)
	h, err := verify.FromTimeline(torch.Interpret(d))
	require.NoError(t, err)
	res, err := verify.Run(h, recordedTarget(t, s))
	require.NoError(t, err)
	require.Positive(t, res.Inconsistent)
	require.Contains(t, res.FirstInconsistency, "opening state: allocation 0 of ")
	require.Equal(t, 211, res.Allocs)
	require.Greater(t, res.Predicted, 150, "%v", res.First)
}

// snapshots is the variable that names a folder with recordings of real programs: X.pickle.xz, and
// beside those with a history what another program made of it, X.csv.gz and X.addr.gz.
const snapshots = "VRAMYARD_SNAPSHOTS"

// TestSnapshotsMatchReferenceHistories compares what is made of real recordings with what another
// program made of them, step by step, and holds the strategy to them.
func TestSnapshotsMatchReferenceHistories(t *testing.T) {
	dir := os.Getenv(snapshots)
	if dir == "" {
		t.Skip(snapshots + " names no folder of recordings")
	}
	allocs, files := 0, 0
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		name, ok := strings.CutSuffix(path, ".addr.gz")
		if err != nil || !ok {
			return err
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			s := load(t, name+".pickle.xz")
			h, err := verify.FromTimeline(torch.Interpret(&s.Devices[0]))
			require.NoError(t, err)
			sameHistory(t, open(t, name+".csv.gz", path), h)
			res, err := verify.Run(h, recordedTarget(t, s))
			require.NoError(t, err)
			t.Logf("%d of %d predicted, %d of %d segments; peak reserved %d, recorded %d",
				res.Predicted, res.Allocs, res.PredictedSegments, res.Segments, res.Reserved, res.Recorded)
			require.True(t, res.All(), "%v", res.First)
			require.Equal(t, res.Recorded, res.Reserved)
			allocs += res.Allocs
			files++
		})
		return nil
	}))
	t.Logf("%d allocations in %d recordings", allocs, files)
	require.NotZero(t, files)
}

// sameHistory compares two histories whose events and ids are counted in different ways.
func sameHistory(t *testing.T, want, got *verify.History) {
	t.Helper()
	require.Equal(t, want.Segments, got.Segments)
	require.Len(t, got.Blocks, len(want.Blocks))
	ids := map[uint64]uint64{}
	for i, b := range want.Blocks {
		ids[b.ID] = got.Blocks[i].ID
		b.ID, b.Size = got.Blocks[i].ID, got.Blocks[i].Size
		require.Equal(t, b, got.Blocks[i])
	}
	require.Len(t, got.Steps, len(want.Steps))
	for i, s := range want.Steps {
		if s.Kind == verify.Alloc {
			ids[s.ID] = got.Steps[i].ID
		}
		s.Event = got.Steps[i].Event
		if s.Kind == verify.Alloc || s.Kind == verify.Free {
			s.ID = ids[s.ID]
		}
		require.Equal(t, s, got.Steps[i])
	}
}
