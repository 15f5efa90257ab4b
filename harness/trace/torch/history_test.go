package torch_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/torch"
)

// builder makes a snapshot of one device by hand.
type builder struct {
	s torch.Snapshot
	d torch.Device
	t int64

	stack uint32 // of the entries to come
}

// one is a builder whose times begin at 1000 microseconds and go up by one with each entry.
func one() *builder { return &builder{t: 1000} }

// add adds an entry.
func (b *builder) add(a torch.Action, addr, size uint64, stream int64) *builder {
	h := &b.d.History
	i := 0
	for ; i < len(h.Streams) && h.Streams[i] != stream; i++ {
	}
	if i == len(h.Streams) {
		h.Streams = append(h.Streams, stream)
	}
	h.Append(torch.Entry{Action: a, Addr: addr, Size: size, Stream: uint16(i), Time: b.t, Stack: b.stack})
	b.t++
	return b
}

func (b *builder) alloc(addr, size uint64) *builder {
	return b.add(torch.ActionAlloc, addr, size, 0)
}

func (b *builder) request(addr, size uint64) *builder {
	return b.add(torch.ActionFreeRequested, addr, size, 0)
}

func (b *builder) complete(addr, size uint64) *builder {
	return b.add(torch.ActionFreeCompleted, addr, size, 0)
}

func (b *builder) free(addr, size uint64) *builder {
	return b.request(addr, size).complete(addr, size)
}

// segment adds a segment of the end.
func (b *builder) segment(s torch.Segment, blocks ...torch.Block) *builder {
	s.Blocks = blocks
	b.d.Segments = append(b.d.Segments, s)
	return b
}

// block is a block that the program has at the end.
func block(addr, size uint64) torch.Block {
	return torch.Block{Addr: addr, Size: (size + 511) / 512 * 512, Requested: size, State: torch.ActiveAllocated}
}

// result converts the snapshot.
func (b *builder) result(t *testing.T) torch.Result {
	t.Helper()
	b.s.Devices = []torch.Device{b.d}
	r, err := torch.Traces(&b.s)
	require.NoError(t, err)
	require.Len(t, r, 1)
	return r[0]
}

// lines returns the events of a trace in its text form, without the header and the times.
func lines(t *testing.T, tr *trace.Trace) []string {
	t.Helper()
	var b strings.Builder
	plain := trace.Trace{Events: append([]trace.Event(nil), tr.Events...), Tags: tr.Tags, Slots: tr.Slots}
	for i := range plain.Events {
		plain.Events[i].Time = trace.NoTime
	}
	require.NoError(t, trace.Write(&b, &plain))
	var list []string
	for line := range strings.Lines(b.String()) {
		if !strings.HasPrefix(line, "#") {
			list = append(list, strings.TrimSpace(line))
		}
	}
	return list
}

// small is the segment in which most of the tests' blocks lie.
var small = torch.Segment{Addr: 1 << 21, Total: 1 << 21}

const base = 1 << 21

func TestOpeningStateIsSolvedBackwards(t *testing.T) {
	r := one().
		request(base+512, 100).                               // live at the start
		alloc(base+1024, 7).free(base+1024, 7).               // a life inside
		complete(base, 300).                                  // pending at the start: a ring that cuts a free in two
		complete(base+512, 100).                              // late
		alloc(base, 40).                                      // stays
		segment(small, block(base, 40), block(base+2048, 9)). // the second one is in no entry
		result(t)
	require.Equal(t, []string{
		"live 0 300", "live 1 100", "live 2 9", "f 0", "f 1", "a 3 7", "f 3", "done 0", "done 1", "a 4 40",
	}, lines(t, r.Trace))
	require.Equal(t, 1, r.Report.Opening.Pending.Count)
	require.EqualValues(t, 109, r.Report.Opening.Live.Bytes)
	require.Empty(t, r.Report.Findings)
	require.Equal(t, "it begins between the request of a free and its completion", r.Report.Wrapped)
	require.Contains(t, r.Report.String(), "the history probably lost its oldest entries: it begins between")
}

func TestWhatIsPendingAtTheEndIsCompletedLast(t *testing.T) {
	b := block(base, 40)
	b.State = torch.ActivePendingFree
	r := one().alloc(base, 40).request(base, 40).alloc(base+512, 8).
		segment(small, b, block(base+512, 8)).result(t)
	require.Equal(t, []string{"a 0 40", "f 0", "a 1 8", "done 0"}, lines(t, r.Trace))
	require.Equal(t, torch.Amount{Count: 1, Bytes: 40}, r.Report.EndPending)
	require.Equal(t, 1, r.Report.Delayed)
}

func TestFreesWithoutRequestsAreWhereTheyComplete(t *testing.T) {
	r := one().complete(base+512, 3).alloc(base, 40).complete(base, 40).segment(small).result(t)
	require.Equal(t, []string{"live 0 3", "f 0", "a 1 40", "f 1"}, lines(t, r.Trace))
	require.Empty(t, r.Report.Findings)
	require.Contains(t, r.Report.String(), "not in the file: when frees were requested")
}

func TestStreamsRefusalsMarksAndTimes(t *testing.T) {
	b := one().add(torch.ActionAlloc, base, 40, 4096).add(torch.ActionOOM, 1<<20, 5120, 0)
	b.s.Strings = []string{"", "forward"}
	b.s.Annotations = []torch.Annotation{
		{Name: 1, Start: true, Time: 900}, {Name: 1, Time: 1001}, {Name: 1, Start: true, Device: 1, Time: 1000},
	}
	b.s.Settings = []torch.Setting{{Key: "PYTORCH_CUDA_ALLOC_CONF", Value: "max_split_size_mb:64", Text: true}}
	seg := small
	seg.Stream = 4096
	r := b.segment(seg, block(base, 40)).result(t)
	require.Equal(t, []string{
		"mark forward", "a 0 40 stream=4096", `mark "forward end"`, "refused 5120 tag=rounded",
	}, lines(t, r.Trace))
	require.Equal(t, []int64{0, 0, 1000, 1000}, []int64{
		r.Trace.Events[0].Time, r.Trace.Events[1].Time, r.Trace.Events[2].Time, r.Trace.Events[3].Time,
	})
	for key, want := range map[string]string{
		torch.KeyStreams: "4096,0", torch.KeyConfig: `{"conf":"max_split_size_mb:64"}`,
		torch.KeyStarted: "1000",
	} {
		got, _ := r.Trace.Header.Get(key)
		require.Equal(t, want, got, key)
	}
	require.EqualValues(t, 3<<20, r.Report.Capacity)
}

func TestSegmentsAreSolvedBackwards(t *testing.T) {
	big := torch.Segment{Addr: 1 << 30, Total: 40 << 20, Large: true, Expandable: true, Pool: [2]uint64{0, 3}}
	r := one().
		add(torch.ActionSegmentFree, 1<<25, 20<<20, 0).
		add(torch.ActionSegmentAlloc, base, 1<<21, 0).alloc(base, 10).
		add(torch.ActionSegmentMap, 1<<30+20<<20, 20<<20, 0).
		add(torch.ActionSegmentUnmap, 1<<30+40<<20, 60<<20, 0).
		segment(small, block(base, 10)).segment(big).result(t)
	require.Empty(t, r.Report.Findings)
	require.EqualValues(t, 100<<20, r.Report.Opening.Reserved)
	require.EqualValues(t, 102<<20, r.Report.Peak)
	require.EqualValues(t, 42<<20, r.Report.End)
	require.Equal(t, [][2]uint64{{0, 3}}, r.Report.Pools)
	require.Contains(t, r.Report.String(), "private pools 0.3: a strategy without private pools")
	pools, _ := r.Trace.Header.Get(torch.KeyPools)
	require.Contains(t, pools, "0.3: a strategy")
}

func TestInconsistentEntriesAreCountedAndBridged(t *testing.T) {
	for name, c := range map[string]struct {
		b     *builder
		lines []string
		says  string
	}{
		"allocated where another one lives": {
			one().alloc(base, 40).alloc(base, 50).segment(small, block(base, 50)), []string{"a 0 40", "f 0", "a 1 50"},
			"1 allocations at the address of a live one, which is assumed to be freed; the first at 0x200000 in entry 1",
		},
		"allocated where another one is pending": {
			one().alloc(base, 40).request(base, 40).alloc(base, 50).segment(small, block(base, 50)),
			[]string{"a 0 40", "f 0", "done 0", "a 1 50"}, "1 allocations at the address of a live one",
		},
		"freed twice": {
			one().alloc(base, 40).free(base, 40).free(base, 40).segment(small), []string{"a 0 40", "f 0"},
			"1 frees of addresses that are not live, left out; the first at 0x200000 in entry 3",
		},
		"requested twice": {
			one().alloc(base, 40).request(base, 40).free(base, 40).segment(small), []string{"a 0 40", "f 0", "done 0"},
			"1 frees of blocks that were already freed, left out",
		},
		"completed alone": {
			one().alloc(base, 40).complete(base, 40).alloc(base, 4).free(base, 4).segment(small),
			[]string{"a 0 40", "f 0", "a 1 4", "f 1"}, "1 completed frees without a requested free, taken for frees",
		},
		"another size": {
			one().alloc(base, 40).free(base, 41).segment(small), []string{"a 0 40", "f 0"},
			"1 frees or final blocks of another size than their allocation",
		},
		"a final block without allocation": {
			one().alloc(base, 40).free(base, 40).segment(small, block(base, 40)), []string{"a 0 40", "f 0"},
			"1 final blocks in use whose allocation is not recorded; the first at 0x200000 in the final state",
		},
		"no final block": {
			one().alloc(base, 40).segment(small), []string{"a 0 40"},
			"1 allocations that are live at the end without a final block",
		},
		"outside of segments": {
			one().alloc(base-512, 40).free(base-512, 40).segment(small), []string{"a 0 40", "f 0"},
			"1 allocations outside every known segment",
		},
		"segments that overlap": {
			one().alloc(base, 40).segment(small, block(base, 40)).segment(small), []string{"a 0 40"},
			"1 final segments that overlap another one or are not a valid range",
		},
		"a segment from nowhere": {
			one().add(torch.ActionSegmentAlloc, 1<<30, 1<<21, 0).alloc(base, 40).segment(small, block(base, 40)),
			[]string{"a 0 40"}, "1 segments taken or returned against other entries; the first at 0x40000000 in entry 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.b.result(t)
			require.Equal(t, c.lines, lines(t, r.Trace))
			again, err := r.Timeline.Trace(&c.b.s)
			require.NoError(t, err)
			require.Equal(t, c.lines, lines(t, again), "the timeline is unchanged")
			require.Contains(t, r.Report.String(), c.says)
			require.Positive(t, r.Report.Inconsistencies())
			doubt, _ := r.Trace.Header.Get(torch.KeyFinding)
			require.Contains(t, r.Report.String(), doubt)
			raw, err := json.Marshal(r.Report)
			require.NoError(t, err)
			require.Contains(t, string(raw), `"schema":"vramyard-snapshot-report/1"`)
		})
	}
}

func TestTimesThatGoBackAreMovedUp(t *testing.T) {
	b := one().alloc(base, 40)
	b.t = 500
	r := b.free(base, 40).segment(small).result(t)
	require.Equal(t, []int64{0, 0}, []int64{r.Trace.Events[0].Time, r.Trace.Events[1].Time})
	require.Contains(t, r.Report.String(), "2 decreasing times")
}

func TestWithoutHistory(t *testing.T) {
	seg := torch.Segment{Addr: 1 << 30, Total: 20 << 20, Large: true}
	hole := torch.Block{Addr: 1<<30 + 4<<20, Size: 16 << 20}
	r := one().segment(small, block(base, 40), torch.Block{Addr: base + 512, Size: 1<<21 - 512}).
		segment(seg, block(1<<30, 4<<20), hole).result(t)
	require.Equal(t, []string{"live 0 40", "live 1 4194304"}, lines(t, r.Trace))
	require.Equal(t, []torch.Heap{{
		Segments: 2, Reserved: 22 << 20, Allocated: 4<<20 + 512, Requested: 4<<20 + 40,
		Free: 18<<20 - 512, Holes: 2, Largest: 16 << 20, Split: 18<<20 - 512,
		Pinned: 2, PinnedBy: 4<<20 + 512, Held: 18<<20 - 512,
	}}, r.Report.Heaps)
	require.InDelta(t, 0.111, r.Report.Heaps[0].External(), 0.001)
	require.Zero(t, (&torch.Heap{}).External())
}

func TestDevicesAreApart(t *testing.T) {
	a := one().alloc(base, 40).segment(small, block(base, 40))
	b := one().alloc(base, 50).segment(small, block(base, 50))
	b.d.Ordinal = 2
	empty := torch.Device{Ordinal: 1, Segments: []torch.Segment{{Addr: base, Total: 1 << 21}}}
	r, err := torch.Traces(&torch.Snapshot{Devices: []torch.Device{a.d, empty, b.d}})
	require.NoError(t, err)
	require.Len(t, r, 2, "nothing happened on the device between")
	require.Equal(t, []int{0, 2}, []int{r[0].GPU, r[1].GPU})
	require.Equal(t, []string{"a 0 50"}, lines(t, r[1].Trace))
	require.Equal(t, "cuda:2", torch.PartOf(2))
}

func TestConf(t *testing.T) {
	set := func(pairs ...string) (list []torch.Setting) {
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, torch.Setting{Key: pairs[i], Value: pairs[i+1]})
		}
		return list
	}
	const key = "PYTORCH_CUDA_ALLOC_CONF"
	for want, s := range map[string][]torch.Setting{
		"": set(key, "", "max_split_size", "-1", "garbage_collection_threshold", "0.0", "expandable_segments", "False"),
		// of an earlier call
		"a:b,expandable_segments:True": set(key, "a:b", "expandable_segments", "True"),
		"expandable_segments:False":    set(key, "expandable_segments:False", "expandable_segments", "False"),
		"max_split_size_mb:64,garbage_collection_threshold:0.8,expandable_segments:True": set(
			"max_split_size", "67108864", "garbage_collection_threshold", "0.8", "expandable_segments", "True"),
		"c:d": set("PYTORCH_ALLOC_CONF", "c:d"),
	} {
		require.Equal(t, want, torch.Conf(s))
	}
}

// BenchmarkSolve converts a history of a million entries.
// TestOrderOfSegments tells the order in which CUDA places segments on Linux from others.
func TestOrderOfSegments(t *testing.T) {
	for want, addrs := range map[string][]uint64{
		torch.OrderFalling: {9, 7, 8, 5, 3}, "": {1, 3, 2, 4}, "one": {5}, "as often": {5, 4, 6},
	} {
		b := one()
		for _, a := range addrs {
			b.add(torch.ActionSegmentAlloc, a*32<<20, 20<<20, 0)
		}
		b.alloc(addrs[0]*32<<20, 1<<20)
		got, _ := b.result(t).Trace.Header.Get(torch.KeyOrder)
		require.Equal(t, want == torch.OrderFalling, got == torch.OrderFalling, want)
	}
}

func BenchmarkSolve(b *testing.B) {
	m := one()
	m.d.Segments = []torch.Segment{{Addr: base, Total: 1 << 40, Large: true}}
	const blocks = 4096
	for i := range uint64(334_000) {
		addr := base + i*7919%blocks<<20
		if i >= blocks {
			m.free(addr, 4096)
		}
		m.alloc(addr, 4096)
	}
	m.s.Devices = []torch.Device{m.d}
	b.ReportAllocs()
	for b.Loop() {
		r, err := torch.Traces(&m.s)
		if err != nil || len(r) != 1 {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(m.d.History.Len())*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mentries/s")
}
