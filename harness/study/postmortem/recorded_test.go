package postmortem_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/postmortem"
	"github.com/vramyard/vramyard/harness/study/verify"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/strategies/caching"
)

// recordings returns the devices of a snapshot.
func recordings(t *testing.T, path string) []*postmortem.Recording {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	s, err := torch.Read(f, nil)
	require.NoError(t, err)
	return recordingsOf(t, s)
}

// recordingsOf returns the devices of a snapshot that was read.
func recordingsOf(t *testing.T, s *torch.Snapshot) (list []*postmortem.Recording) {
	t.Helper()
	var c caching.Config
	require.NoError(t, json.Unmarshal(torch.Config(s.Settings), &c))
	c, err := c.WithDefaults()
	require.NoError(t, err)
	sizes, err := c.BlockSizes()
	require.NoError(t, err)
	target := &verify.Target{
		Open: func(src device.Source, opening []alloc.Chunk) (verify.Seedable, error) {
			return caching.Open(src, c, opening)
		},
		Round: sizes.Round, Segment: sizes.Segment, Unsplit: sizes.Unsplit,
	}
	for i := range s.Devices {
		list = append(list, &postmortem.Recording{
			Snapshot: s, Timeline: timeline(s, &s.Devices[i]), Target: target, Promises: c.Promises(),
		})
	}
	return list
}

// timeline returns the timeline of a device, with the numbers of its trace's events.
func timeline(s *torch.Snapshot, d *torch.Device) *torch.Timeline {
	c := torch.Interpret(d)
	_, err := c.Trace(s)
	if err != nil {
		panic(err)
	}
	return c
}

const vectorDir = "../../trace/torch/testdata/vectors"

// sums counts what a history says that is live at an entry, and held.
func sums(h *torch.History, entry int) (live postmortem.Amount, held device.Size) {
	sizes := map[uint64]uint64{}
	for i := range entry {
		switch e := h.At(i); e.Action {
		case torch.ActionAlloc:
			sizes[e.Addr] = e.Size
		case torch.ActionFreeCompleted:
			delete(sizes, e.Addr)
		case torch.ActionSegmentAlloc:
			held += device.Size(e.Size)
		case torch.ActionSegmentFree:
			held -= device.Size(e.Size)
		}
	}
	for _, n := range sizes {
		live.Count++
		live.Bytes += device.Size(n)
	}
	return live, held
}

// TestRecordedRefusals looks at each request that a recording of the original allocator refused, on
// a device of 1 GiB.
func TestRecordedRefusals(t *testing.T) {
	r := recordings(t, filepath.Join(vectorDir, "segment_free.pickle.xz"))[0]
	entries := r.Refusals()
	require.Len(t, entries, 29)
	causes := map[postmortem.Cause]int{}
	tr, err := r.Timeline.Trace(r.Snapshot)
	require.NoError(t, err)
	for _, entry := range entries {
		why, err := r.AtEntry(entry)
		require.NoError(t, err)
		require.Equal(t, trace.Refused, tr.Events[why.Requester.Born].Kind)
		live, held := sums(&r.Timeline.Device.History, entry)
		require.Equal(t, live.Count, why.Live.Count)
		require.Equal(t, live.Bytes, why.Wanted)
		require.Equal(t, held, why.Reserved)
		require.Equal(t, device.GiB, held+*why.Device)
		require.Equal(t, why.Reserved, why.Live.Bytes+why.Free.Bytes)
		require.Empty(t, why.Empty, "what nobody used had gone back")
		require.NotEmpty(t, why.Plans)
		for _, b := range why.Plans[0].Blocks {
			require.True(t, b.Owner.Known)
			e := tr.Events[b.Owner.Born]
			require.Equal(t, []any{trace.Alloc, b.Owner.ID, b.Requested}, []any{e.Kind, e.ID, e.Size})
			require.Equal(t, why.Requester.Born-b.Owner.Born, b.Owner.Age)
		}
		causes[why.Cause]++
	}
	require.Equal(t, map[postmortem.Cause]int{
		postmortem.CauseRounding: 9, postmortem.CauseScattered: 3, postmortem.CauseTooLittle: 17,
	}, causes)
}

// TestRecordedRefusalInWords has one of them in full: with 39.23 MiB less, its segment of 52 MiB
// would have gone back.
func TestRecordedRefusalInWords(t *testing.T) {
	r := recordings(t, filepath.Join(vectorDir, "segment_free.pickle.xz"))[0]
	why, err := r.AtEntry(494)
	require.NoError(t, err)
	var text strings.Builder
	require.NoError(t, report.Postmortem(&text, why))
	require.Equal(t, `no room for 33.00 MiB on stream 0: `+
		`free memory would suffice, but it is scattered: 31.27 MiB free in 2 holes, the largest 18.50 MiB, and 8.00 MiB left on the device
  requested       33.00 MiB: a hole of 33.00 MiB, or 34.00 MiB from the device
  device          1016.00 MiB held, 8.00 MiB left
  live            984.73 MiB in 9 blocks, 29.14 MiB of that rounding
  free            31.27 MiB in 2 holes, the largest 18.50 MiB (external fragmentation 40.8 %); usable here 31.27 MiB, the largest 18.50 MiB
  pinned          31.27 MiB are free in partly used regions, by owner:
                  31.27 MiB (31.27 MiB by this owner alone) by 2 blocks of 82.73 MiB in 2 regions: unknown
  room            without 1 block of 39.23 MiB: a hole of 52.00 MiB at 0x7f0016400000
                  39.23 MiB, live, stream 0, id 96, allocated 27 events before: unknown
  room            without 1 block of 39.23 MiB: 1 region of 52.00 MiB would be returned
                  39.23 MiB, live, stream 0, id 96, allocated 27 events before: unknown
`, text.String())
}

// TestBothWaysToTheEndAgree compares the segments of files with what their histories lead to.
func TestBothWaysToTheEndAgree(t *testing.T) {
	for _, name := range []string{"full", "mid_start", "multi_stream_pending", "skip_free_requested", "segment_free",
		"private_pool"} {
		r := recordings(t, filepath.Join(vectorDir, name+".pickle.xz"))[0]
		h, err := verify.FromTimeline(r.Timeline)
		require.NoError(t, err)
		chunks, err := verify.HeapAt(h, r.Target, len(r.Timeline.Steps))
		require.NoError(t, err)
		want := r.AtEnd(alloc.Request{Size: device.TiB}, nil)
		got := postmortem.Explain(&postmortem.Heap{Chunks: chunks}, postmortem.Need{Block: device.TiB}, nil)
		require.Equal(t, want.Reserved, got.Reserved, name)
		require.Equal(t, want.Free, got.Free, name)
		require.Equal(t, want.Largest, got.Largest, name)
		require.Equal(t, want.Live.Count+want.Pending.Count, got.Live.Count, name)
		require.Equal(t, postmortem.CauseTooLittle, want.Cause)
	}
}

// TestStacksOfARecording asks for more than a recording with stacks has room for.
func TestStacksOfARecording(t *testing.T) {
	r := recordings(t, filepath.Join(vectorDir, "full.pickle.xz"))[0]
	none := device.Size(0)
	why := r.AtEnd(alloc.Request{Size: 21 * device.MiB}, &none)
	require.Equal(t, postmortem.CauseScattered, why.Cause)
	require.NotEmpty(t, why.Pins)
	for _, p := range why.Pins {
		require.NotEmpty(t, p.Stack)
		require.Regexp(t, `^.+:\d+ .+$`, p.Stack[0])
	}
	plan := why.Plans[0]
	require.Equal(t, postmortem.WayRegions, plan.Way)
	for _, b := range plan.Blocks {
		require.Equal(t, b.Owner.Stack, r.Stacks().Places(b.Owner.ID))
	}
}

// TestFreeMemoryAtTheEnd asks for what a recording has room for, in a hole and on the device.
func TestFreeMemoryAtTheEnd(t *testing.T) {
	r := recordings(t, filepath.Join(vectorDir, "full.pickle.xz"))[0]
	free := device.GiB
	for _, size := range []device.Size{device.MiB, 15 * device.MiB, 900 * device.MiB} {
		why := r.AtEnd(alloc.Request{Size: size}, &free)
		require.Equal(t, postmortem.CauseNone, why.Cause)
		var text strings.Builder
		require.NoError(t, report.Postmortem(&text, why))
		require.True(t, strings.HasPrefix(text.String(), "room for "), text.String())
	}
}

// TestPendingIsDistinguishedFromLive looks at the end of a recording in which a stream still uses
// one block.
func TestPendingIsDistinguishedFromLive(t *testing.T) {
	r := recordings(t, filepath.Join(vectorDir, "multi_stream_pending.pickle.xz"))[0]
	why := r.AtEnd(alloc.Request{Size: device.GiB, Stream: 20480}, nil)
	require.Equal(t, postmortem.Amount{Count: 1, Bytes: 3072}, why.Pending)
	require.Equal(t, 26, why.Live.Count)
	require.Len(t, why.Streams, 4)
	for _, s := range why.Streams {
		require.Equal(t, s.Stream == 20480, s.Usable > 0)
	}
}

func TestEntriesThatAreNoRefusal(t *testing.T) {
	r := recordings(t, filepath.Join(vectorDir, "segment_free.pickle.xz"))[0]
	for _, entry := range []int{-1, 0, 63, 1 << 20} {
		_, err := r.AtEntry(entry)
		require.ErrorIs(t, err, postmortem.ErrNoRefusal)
	}
	require.Empty(t, recordings(t, filepath.Join(vectorDir, "full.pickle.xz"))[0].Refusals())
	state := recordings(t, filepath.Join(vectorDir, "state_only.pickle.xz"))[0]
	require.Empty(t, state.Refusals())
	require.Equal(t, postmortem.CauseTooLittle, state.AtEnd(alloc.Request{Size: device.TiB}, nil).Cause)
}

// refusing is a made-up recording.
func refusing(segments []torch.Segment, entries ...torch.Entry) *postmortem.Recording {
	d := &torch.Device{Segments: segments}
	d.History.Streams = []int64{0}
	for _, e := range entries {
		d.History.Append(e)
	}
	s := &torch.Snapshot{Strings: []string{""}}
	return &postmortem.Recording{Snapshot: s, Timeline: timeline(s, d), Target: &verify.Target{}}
}

func TestRefusalsWithoutSegments(t *testing.T) {
	r := refusing(nil, torch.Entry{Action: torch.ActionOOM, Addr: 5 << 20, Size: 7 << 20})
	why, err := r.AtEntry(0)
	require.NoError(t, err)
	require.Equal(t, postmortem.CauseTooLittle, why.Cause)
	require.Contains(t, why.Verdict, "2.00 MiB too small")
	require.Empty(t, why.Plans)
	require.Empty(t, why.Pins)
}

// TestRefusalsAtTheEnd has two refusals behind the last change; the file is their heap.
func TestRefusalsAtTheEnd(t *testing.T) {
	segment := torch.Segment{Addr: 1 << 30, Total: 20 << 20, Large: true, Blocks: []torch.Block{
		{Addr: 1 << 30, Size: 12 << 20}, {Addr: 1<<30 + 12<<20, Size: 8 << 20, Requested: 8<<20 - 9,
			State: torch.ActiveAllocated},
	}}
	r := refusing([]torch.Segment{segment},
		torch.Entry{Action: torch.ActionOOM, Addr: 1 << 20, Size: 13 << 20},
		torch.Entry{Action: torch.ActionOOM, Addr: 0, Size: 21 << 20})
	require.Equal(t, []int{0, 1}, r.Refusals())
	first, err := r.AtEntry(0)
	require.NoError(t, err)
	require.Equal(t, postmortem.CauseScattered, first.Cause)
	require.Equal(t, 8*device.MiB, first.Plans[0].Bytes)
	require.Equal(t, -1, first.Plans[0].Blocks[0].Owner.Born)
	second, err := r.AtEntry(1)
	require.NoError(t, err)
	require.Equal(t, postmortem.CauseTooLittle, second.Cause)
	require.Empty(t, second.Plans)
}
