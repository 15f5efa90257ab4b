package parquet_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/parquet"
	"github.com/vramyard/vramyard/strategies"
)

// texts are tags and values that a careless writer breaks.
var texts = []string{
	"plain", "two words", "", "a,b", `"x"`, `\n`, "line\nbreak", "\x00", "\ufffd", "\ufeff", "日本", " lead", "<b>&",
	strings.Repeat("long ", 9000),
}

// anyTrace draws a trace. A plain one has neither illegal frees nor faults.
func anyTrace(seed uint64, plain bool) *trace.Trace {
	rng := rand.New(rand.NewPCG(seed, 0))
	text := func() string { return texts[rng.IntN(len(texts))] }
	h := trace.Header{Name: "t" + text()}
	for range rng.IntN(3) {
		h.Meta = append(h.Meta, trace.Pair{Key: []string{"k", "name", "a.b-c_1"}[rng.IntN(3)], Value: text()})
	}
	var list []trace.Event
	var tags []string
	b := trace.NewBuilder(h)
	now := trace.NoTime
	for range rng.IntN(200) {
		n := rng.Uint64() >> rng.IntN(64)
		e := trace.Event{
			Kind: trace.Kind(rng.IntN(18)), ID: rng.Uint64N(12), Time: trace.NoTime, Size: device.Size(n),
			Stream: device.Stream(n * 31 >> rng.IntN(64)), Arg: n * 7, Align: device.Size(n & 4096),
			Hint: alloc.Hint(rng.IntN(3)),
		}
		if plain && (e.Kind == trace.BadFree || e.Kind == trace.Fault) {
			continue
		}
		if e.Kind == trace.Print {
			e.Arg %= 3
		}
		if seed%2 == 0 && (e.Kind == trace.Alloc || e.Kind == trace.LiveAtStart || e.Kind == trace.Refused) {
			e.Site, e.Thread = rng.Uint64()>>rng.IntN(64), rng.Uint32N(3)
			if seed%4 == 0 {
				e.Life = alloc.Lifetime(rng.IntN(4))
			}
		}
		if rng.IntN(2) == 0 {
			now = max(now, 0) + rng.Int64N(1000)
			e.Time = now
		}
		if e.Kind == trace.BadFree && e.ID > 7 {
			e.Slot = trace.NoSlot
		}
		if b.Add(e) == nil { // what the builder refuses is not in the trace
			tag := text()
			if e.Kind == trace.PoolBegin {
				tag = []string{"", "no_split", "use_on_oom,no_split"}[rng.IntN(3)]
			}
			list, tags = append(list, e), append(tags, tag)
		}
	}
	b = trace.NewBuilder(h)
	for i, e := range list {
		e.Tag = b.Tag(tags[i])
		if err := b.Add(e); err != nil {
			panic(err)
		}
	}
	return b.Trace()
}

// written returns the bytes of a trace.
func written(t testing.TB, src trace.Source) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, parquet.Write(&b, src))
	return b.Bytes()
}

// open opens bytes as a file.
func open(t testing.TB, data []byte) *parquet.File {
	t.Helper()
	f, err := parquet.Open(bytes.NewReader(data), int64(len(data)), "x.parquet", nil)
	require.NoError(t, err)
	return f
}

func TestWrittenTracesReadBack(t *testing.T) {
	kinds := map[trace.Kind]int{}
	for seed := range uint64(400) {
		tr := anyTrace(seed, false)
		for _, e := range tr.Events {
			kinds[e.Kind]++
		}
		data := written(t, tr)
		got, err := open(t, data).Trace()
		require.NoError(t, err)
		require.Equal(t, parquet.Format, got.Header.Format)
		require.Len(t, got.Header.Hash, 64)
		require.Equal(t, data, written(t, tr), "seed %d", seed)
		got.Header.Format, got.Header.Hash = "", ""
		require.Equal(t, tr, got, "seed %d", seed)
	}
	require.Len(t, kinds, 18)
}

// TestStreamedTracesAreTheSame walks files and compares them with the traces in memory: all but the
// slots is the same, and a replay sees no difference.
func TestStreamedTracesAreTheSame(t *testing.T) {
	setup, err := strategies.All().Lookup("caching", nil)
	require.NoError(t, err)
	for seed := range uint64(150) {
		tr := anyTrace(seed, true)
		f := open(t, written(t, tr))
		require.True(t, f.Streams())
		require.Equal(t, len(tr.Events), f.Head().Events)
		var text [2]strings.Builder
		require.NoError(t, trace.Write(&text[0], tr))
		require.NoError(t, trace.Write(&text[1], f))
		require.Equal(t, text[0].String(), text[1].String())
		var results [2]string
		for i, src := range []trace.Source{tr, f} {
			dev, err := sim.New(sim.Config{Capacity: device.GiB})
			require.NoError(t, err)
			var out strings.Builder
			r, err := replay.Run(src, setup, dev, replay.Options{Figures: true, Placements: &out, Final: &out})
			if err != nil {
				results[i] = err.Error()
				continue
			}
			r.NsPerOp, r.TraceSHA256 = 0, ""
			figures, err := json.Marshal(r)
			require.NoError(t, err)
			results[i] = out.String() + string(figures)
		}
		require.Equal(t, results[0], results[1], "seed %d", seed)
	}
}

// TestPiecesAreDescribedAndCutAsTheWhole compares what is said of a walked file, its steps and
// random parts of it with the same of the trace in memory.
func TestPiecesAreDescribedAndCutAsTheWhole(t *testing.T) {
	for seed := range uint64(300) {
		tr := anyTrace(seed, true)
		f := open(t, written(t, tr))
		in, err := trace.Describe(f)
		require.NoError(t, err)
		require.Equal(t, parquet.Format, in.Format)
		in.Format, in.Hash = "", ""
		require.Equal(t, tr.Info(), in, "seed %d", seed)

		rng := rand.New(rand.NewPCG(seed, 1))
		span := trace.Span{First: rng.IntN(len(tr.Events) + 1)}
		span.End = span.First + rng.IntN(len(tr.Events)-span.First+1)
		if seed%4 == 0 && len(tr.Events) > 0 {
			span.Stream = &tr.Events[rng.IntN(len(tr.Events))].Stream
		}
		whole, err := trace.Cut(tr, span, 0)
		require.NoError(t, err)
		walked, err := trace.Cut(f, span, 0)
		require.NoError(t, err)
		if span.Stream == nil && len(whole.Events) == len(tr.Events) {
			walked.Header.Format, walked.Header.Hash = "", "" // the part is the whole
		}
		walked.Header.Format = ""
		require.Equal(t, whole, walked, "seed %d, %+v", seed, span)

		from := rng.Int64N(60_000)
		times, timed, err := trace.InTime(tr, from, from+20_000)
		require.NoError(t, err)
		walkedTimes, walkedTimed, err := trace.InTime(f, from, from+20_000)
		require.NoError(t, err)
		require.Equal(t, times, walkedTimes)
		require.Equal(t, timed, walkedTimed)
	}
}

// TestSlotsAreAsFewAsLiveBlocks walks a trace of many allocations of which few live at once.
func TestSlotsAreAsFewAsLiveBlocks(t *testing.T) {
	var b trace.Builder
	for i := range uint64(50_000) {
		require.NoError(t, b.Alloc(i*1e12, 100, 0))
		if i >= 10 {
			require.NoError(t, b.Free((i-10)*1e12))
		}
	}
	f := open(t, written(t, b.Trace()))
	most := uint32(0)
	require.NoError(t, f.Batches(func(events []trace.Event) error {
		for _, e := range events {
			most = max(most, e.Slot)
		}
		return nil
	}))
	require.Equal(t, uint32(10), most)
}

func TestManyGroupsAndPlainTags(t *testing.T) {
	var b trace.Builder
	for i := range uint64(1_100_000) {
		tag := ""
		if i%8 == 0 {
			tag = fmt.Sprint("frame ", i, strings.Repeat(" deeper", 40))
		}
		require.NoError(t, b.AllocRequest(i, alloc.Request{Size: device.Size(i)}, tag))
	}
	tr := b.Trace()
	got, err := open(t, written(t, tr)).Trace()
	require.NoError(t, err)
	require.Equal(t, tr.Tags, got.Tags)
	require.Equal(t, tr.Events, got.Events)
}

// TestManyWalksAtOnce walks one file from several goroutines, each of which meets tags that the
// others may have met.
func TestManyWalksAtOnce(t *testing.T) {
	b := trace.NewBuilder(trace.Header{Name: "tags"})
	for i := range uint64(30_000) {
		require.NoError(t, b.AllocRequest(i, alloc.Request{Size: 1}, fmt.Sprint("tag ", i/7)))
	}
	tr := b.Trace()
	var want strings.Builder
	require.NoError(t, trace.Write(&want, tr))
	f := open(t, written(t, tr))
	got := make([]strings.Builder, 4)
	errs := make([]error, len(got))
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() { errs[i] = trace.Write(&got[i], f) })
	}
	wg.Wait()
	for i := range got {
		require.NoError(t, errs[i])
		require.Equal(t, want.String(), got[i].String())
	}
}

// TestPyarrowFilesAreRead reads a file of ours that pyarrow 25.0.0 has read and written again
// (pq.write_table(pq.read_table(...), compression="zstd")): its pages are of another form, its
// whole numbers are not said to have a sign, and the metadata are there still.
func TestPyarrowFilesAreRead(t *testing.T) {
	data, err := os.ReadFile("testdata/pyarrow.parquet")
	require.NoError(t, err)
	want, err := os.ReadFile("testdata/pyarrow.trace")
	require.NoError(t, err)
	f := open(t, data)
	require.Equal(t, "small", f.Head().Header.Name)
	for _, src := range []trace.Source{f, whole(t, f)} {
		var text strings.Builder
		require.NoError(t, trace.Write(&text, src))
		require.Equal(t, "# vramyard-trace 1\n# name=small\n"+string(want), text.String())
	}
}

// whole puts the trace of a file into memory.
func whole(t testing.TB, f *parquet.File) *trace.Trace {
	t.Helper()
	tr, err := f.Trace()
	require.NoError(t, err)
	return tr
}
