package trace_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// sameAfterWriting writes a trace as text, reads it back and compares.
func sameAfterWriting(t *testing.T, tr *trace.Trace) {
	t.Helper()
	var b bytes.Buffer
	if err := trace.Write(&b, tr); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	got, err := trace.Read(&b, tr.Header.Name, trace.Options{})
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	compare(t, got, tr, text)
}

// compare compares two traces up to what the form decides.
func compare(t *testing.T, got, want *trace.Trace, text string) {
	t.Helper()
	plain := func(t *trace.Trace) trace.Trace { // without the lines of the file
		return trace.Trace{Header: t.Header, Events: t.Events, Tags: t.Tags, Slots: t.Slots}
	}
	a, b := plain(got), plain(want)
	a.Header.Format, a.Header.Hash, b.Header.Format, b.Header.Hash = "", "", "", ""
	if !reflect.DeepEqual(a, b) {
		t.Fatalf("read\n%+v\nwrote\n%+v\nas\n%s", a, b, text)
	}
}

// hostile are texts that a careless writer breaks.
var hostile = []string{
	"plain", "two words", "", "=", "a=b", "t=5", "#", "#x", `"`, `"x"`, `a"b`, `\`, `\n`, "'", "`", "line\nbreak", "\r",
	"\t", "\x00",
	"\xff\xfe", "\ufffd", "\ufeff", "\u2028", "\u00a0", "é", "日本", " lead", "trail ", "stream=1", "0x5", "+5", "null",
	"hint=low#",
}

// anyTrace draws a trace with every kind of event.
func anyTrace(rng *rand.Rand) *trace.Trace {
	text := func() string { return hostile[rng.IntN(len(hostile))] }
	h := trace.Header{Name: text()}
	for range rng.IntN(3) {
		h.Meta = append(h.Meta, trace.Pair{Key: []string{"k", "name", "format", "a.b-c_1"}[rng.IntN(4)], Value: text()})
	}
	b := trace.NewBuilder(h)
	now := trace.NoTime
	for range rng.IntN(40) {
		e := trace.Event{Kind: trace.Kind(rng.IntN(21)), Time: trace.NoTime}
		if rng.IntN(2) == 0 {
			now = max(now, 0) + rng.Int64N(1000)
			e.Time = now
		}
		fill(rng, &e, b.Tag)
		_ = b.Add(e) // what the builder refuses is not in the trace
	}
	return canonical(b.Trace())
}

// fill draws the fields that the kind of an event has.
func fill(rng *rand.Rand, e *trace.Event, tag func(text string) uint32) {
	hostile := func() uint32 { return tag(hostile[rng.IntN(len(hostile))]) }
	id := rng.Uint64N(6)
	n := rng.Uint64() >> rng.IntN(64)
	switch e.Kind {
	case trace.Alloc:
		e.Hint, e.Arg = alloc.Hint(rng.IntN(3)), n>>1
		fallthrough
	case trace.LiveAtStart:
		e.ID = id
		fallthrough
	case trace.Refused:
		e.Size, e.Align, e.Stream, e.Tag = device.Size(n), device.Size(1)<<rng.IntN(20), device.Stream(id), hostile()
		if rng.IntN(2) == 0 {
			e.Site, e.Thread = rng.Uint64()>>rng.IntN(64), rng.Uint32()>>rng.IntN(32)
			e.Life = alloc.Lifetime(rng.IntN(4))
		}
	case trace.Free, trace.Completed:
		e.ID = id
	case trace.Use:
		e.ID, e.Stream = id, device.Stream(n)
	case trace.Mark, trace.Conf, trace.Pause, trace.Resume:
		e.Tag = hostile()
	case trace.Drain:
		e.Stream = device.Stream(n)
	case trace.PoolBegin:
		e.Arg, e.Stream = n, trace.AllStreams
		e.Tag = tag([]string{"", "no_split", "use_on_oom", "use_on_oom,no_split"}[rng.IntN(4)])
		if id > 2 {
			e.Stream = device.Stream(id)
		}
	case trace.Frontier, trace.PoolEnd, trace.PoolRelease, trace.Fault:
		e.Arg = n
	case trace.Print:
		e.Arg = n % 3
	case trace.BadFree:
		if e.ID, e.Size = id, device.Size(n); id > 3 {
			*e = trace.Event{Kind: trace.BadFree, Slot: trace.NoSlot, Arg: n, Time: e.Time}
		}
	}
}

// canonical drops tags that no event uses: the builder keeps those of refused events.
func canonical(t *trace.Trace) *trace.Trace {
	b := trace.NewBuilder(t.Header)
	for _, e := range t.Events {
		e.Tag = b.Tag(t.TagOf(&e))
		if err := b.Add(e); err != nil {
			panic(err)
		}
	}
	return b.Trace()
}

func TestWrittenTracesReadBack(t *testing.T) {
	kinds := map[trace.Kind]int{}
	for seed := range uint64(3000) {
		tr := anyTrace(rand.New(rand.NewPCG(seed, 0)))
		for _, e := range tr.Events {
			kinds[e.Kind]++
		}
		sameAfterWriting(t, tr)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	for k := range trace.Kinds {
		if kinds[k] == 0 {
			t.Errorf("no trace had a %s event", k)
		}
	}
}

// TestWrittenTextIsReadable holds the written form itself.
func TestWrittenTextIsReadable(t *testing.T) {
	const text = `# vramyard-trace 1
# name=example
# source=by hand
# odd=" x"
live 7 2097152 stream=1
a 0 1000 align=512 stream=1 hint=low before=3 tag="layer 3" site=0xfedcba9876543210 thread=7 life=step t=5
use 0 2
mark "step 1" t=6
trim
f 0
done 0
badfree 0
badfree 0 +8
badfree 0x7f0000000000
badfree null
frontier 9
drain 1
pool begin 1
pool begin 2 stream=4
pool end 1
pool release 1
refused 5 tag=x site=0x1 thread=2 life=mark
fault
fault 3
clear
print stats
print map
print totals
`
	var b bytes.Buffer
	if err := trace.Write(&b, read(t, text)); err != nil {
		t.Fatal(err)
	}
	if b.String() != text {
		t.Errorf("got\n%s", b.String())
	}
}

func TestWriteRefusesWhatTheFormCannotHold(t *testing.T) {
	for _, c := range []struct {
		tr   trace.Trace
		want string
	}{
		{trace.Trace{Header: trace.Header{Meta: []trace.Pair{{Key: "a b"}}}},
			`header key "a b": want letters, digits and _ . -`},
		{trace.Trace{Events: []trace.Event{{Kind: 99}}}, "event 0: unknown kind of event 99"},
		{trace.Trace{Events: []trace.Event{{Kind: trace.Print, Arg: 7}}}, "event 0: print of unknown number 7"},
		{trace.Trace{Tags: []string{"", strings.Repeat("x", 16<<20)}, Events: []trace.Event{{Kind: trace.Mark, Tag: 1}}},
			"event 0: line is longer than 16777216 bytes"},
	} {
		if err := trace.Write(&bytes.Buffer{}, &c.tr); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// full is a writer without room.
type full struct{}

var errFull = errors.New("no space left")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWritersReportTheErrorOfTheFile(t *testing.T) {
	tr := read(t, "a 0 5\nf 0\n")
	if err := trace.Write(full{}, tr); !errors.Is(err, errFull) {
		t.Errorf("Write: %v", err)
	}
	if err := trace.WriteCSV(full{}, tr); !errors.Is(err, errFull) {
		t.Errorf("WriteCSV: %v", err)
	}
	if err := trace.NewRecorder(full{}).Close(); !errors.Is(err, errFull) {
		t.Errorf("Recorder: %v", err)
	}
}

const exampleCSV = `# format=memtrace-1
# name=small
# device=cpu
# mark,0,phase fwd
# mark,2,phase bwd, second half
# mark,2,again
# mark,3,end
seq,op,id,bytes,stream,time_us,tag
0,a,0,4096,0,7,weight:linear
1,a,1,512,3,7,
2,f,0,4096,0,9,
`

func TestCSVBecomesEvents(t *testing.T) {
	tr := read(t, exampleCSV)
	mark := func(tag uint32) trace.Event {
		return trace.Event{Kind: trace.Mark, Slot: trace.NoSlot, Tag: tag, Time: trace.NoTime}
	}
	want := []trace.Event{
		mark(1),
		{Kind: trace.Alloc, Size: 4096, Tag: 2, Time: 7000},
		{Kind: trace.Alloc, Slot: 1, ID: 1, Size: 512, Stream: 3, Time: 7000},
		mark(3), mark(4),
		{Kind: trace.Free, Time: 9000},
		mark(5),
	}
	if !reflect.DeepEqual(tr.Events, want) {
		t.Errorf("got  %+v\nwant %+v", tr.Events, want)
	}
	if tags := []string{"", "phase fwd", "weight:linear", "phase bwd, second half", "again", "end"}; !reflect.DeepEqual(
		tr.Tags, tags) {
		t.Errorf("tags %q", tr.Tags)
	}
	if h := tr.Header; h.Name != "small" || h.Format != "csv" ||
		!reflect.DeepEqual(h.Meta, []trace.Pair{{Key: "device", Value: "cpu"}}) {
		t.Errorf("header %+v", h)
	}
	sameAfterWriting(t, tr)
}

func TestCSVIsWrittenAsItWasRead(t *testing.T) {
	origins := `# format=memtrace-1
# name=origins
seq,op,id,bytes,stream,time_us,tag,site,thread
0,a,0,4096,0,7,weight,0xfedcba9876543210,
1,a,1,512,3,7,,,4294967295
2,a,2,512,3,7,,,
3,f,0,4096,0,9,,,
`
	lives := `# format=memtrace-1
# name=lives
seq,op,id,bytes,stream,time_us,tag,site,thread,life
0,a,0,4096,0,7,weight,0xfedcba9876543210,,run
1,a,1,512,3,7,,,,
2,f,0,4096,0,9,,,,
`
	for _, text := range []string{exampleCSV, origins, lives} {
		var b bytes.Buffer
		if err := trace.WriteCSV(&b, read(t, text)); err != nil {
			t.Fatal(err)
		}
		if b.String() != text {
			t.Errorf("got\n%s", b.String())
		}
		sameAfterWriting(t, read(t, text))
	}
}

func TestCSVRefusesWhatItCannotHold(t *testing.T) {
	for text, want := range map[string]string{
		"a 0 5\ntrim":     "csv: event 1: trim events cannot be held",
		"a 0 5 align=512": "csv: event 0: an allocation has only size, stream and tag: no alignment, hint or bound",
		"a 0 0":           "csv: event 0: an allocation of 0 bytes cannot be held",
		"a 0 5 t=1":       "csv: event 0: time 1 ns is no whole number of microseconds",
		"a 0 5 tag=a,b":   `csv: event 0: tag "a,b": a comma cannot be held`,
		"mark x t=1000": "csv: event 0: a mark cannot have a time: want a text trace (.trace) or Parquet (.parquet), " +
			"which keep it",
		`mark "a\nb"`:        `csv: event 0: text "a\nb": it must be printable and begin and end without a blank`,
		"#format=x\nmark x":  `csv: header pair "format"="x" cannot be held`,
		"#name=\xff\nmark x": `csv: name "\xff": it must be printable and begin and end without a blank`,
	} {
		var b bytes.Buffer
		if err := trace.WriteCSV(&b, read(t, text)); err == nil || err.Error() != want || b.Len() > 0 {
			t.Errorf("%q: %v and %d bytes, want %s", text, err, b.Len(), want)
		}
	}
}

func TestDialectsBecomeEvents(t *testing.T) {
	none := trace.NoSlot
	for _, c := range []struct {
		dialect, text string
		want          []trace.Event
	}{
		{"bfc", "# x\na 0 5\na 1 6 512\nu 2 7 256\nt 3 8 9\nf 0\nf 0\nf 99\ns 4\nc\np\no\n", []trace.Event{
			{Kind: trace.Alloc, Size: 5}, {Kind: trace.Alloc, Slot: 1, ID: 1, Size: 6, Align: 512},
			{Kind: trace.Alloc, Slot: 2, ID: 2, Size: 7, Align: 256, Hint: alloc.HintHigh},
			{Kind: trace.Alloc, Slot: 3, ID: 3, Size: 8, Arg: 9}, {Kind: trace.Free},
			{Kind: trace.Frontier, Slot: none, Arg: 4}, {Kind: trace.ClearStats, Slot: none},
			{Kind: trace.Print, Slot: none, Arg: trace.PrintStats}, {Kind: trace.Print, Slot: none, Arg: trace.PrintMap},
		}},
		{"xdl", "a 5 0\nf 4\nf 5\n", []trace.Event{{Kind: trace.Alloc, ID: 5}, {Kind: trace.Free, ID: 5}}},
		{"torch", "a 0 5 3\nr 0 2\nf 0\nr 0 2\nw 1 6 2\ng 2 8\nd 1\ne\n" +
			"b 7\nb 8 1\nc 9 2\nm 4\no 5\ns 6\nn 7\nx 7\nt\n", []trace.Event{
			{Kind: trace.Alloc, Size: 5, Stream: 3}, {Kind: trace.Use, Stream: 2}, {Kind: trace.Free},
			{Kind: trace.Alloc, Slot: 1, ID: 1, Size: 6, Stream: 2}, {Kind: trace.Alloc, Slot: 2, ID: 2, Size: 8},
			{Kind: trace.Drain, Slot: none, Stream: 1}, {Kind: trace.Trim, Slot: none},
			{Kind: trace.PoolBegin, Slot: none, Arg: 7, Stream: trace.AllStreams},
			{Kind: trace.PoolBegin, Slot: none, Arg: 8, Stream: 1},
			{Kind: trace.PoolBegin, Slot: none, Arg: 9, Stream: 2},
			{Kind: trace.PoolBegin, Slot: none, Arg: 4, Stream: trace.AllStreams},
			{Kind: trace.PoolBegin, Slot: none, Arg: 5, Stream: trace.AllStreams, Tag: 1},
			{Kind: trace.PoolBegin, Slot: none, Arg: 6, Stream: trace.AllStreams, Tag: 2},
			{Kind: trace.PoolEnd, Slot: none, Arg: 7}, {Kind: trace.PoolRelease, Slot: none, Arg: 7},
			{Kind: trace.Print, Slot: none, Arg: trace.PrintTotals},
		}},
	} {
		for i := range c.want {
			c.want[i].Time = trace.NoTime
		}
		tr := readAs(t, c.dialect, c.text)
		if !reflect.DeepEqual(tr.Events, c.want) || tr.Header.Format != c.dialect {
			t.Errorf("%s: got  %+v\nwant %+v", c.dialect, tr.Events, c.want)
		}
	}
}

func TestLowerBoundSaturates(t *testing.T) {
	for text, want := range map[string]device.Size{
		"":                               0,
		"a 0 5\na 1 6\nf 0\na 2 3":       11,
		"live 0 5\na 1 6\nf 0\nf 1":      11,
		"a 0 16383PiB\na 1 16383PiB":     math.MaxUint64,
		"a 0 10EiB\nf 0\na 0 10EiB\nf 0": 10 << 60,
	} {
		if got := read(t, text).LowerBound(); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	if got := read(t, "a 0 10EiB\na 1 10EiB\nf 0\nf 1\na 2 7").Info(); got.End != 7 || got.Peak != math.MaxUint64 {
		t.Errorf("after an overflow %d bytes live, peak %d", got.End, got.Peak)
	}
}

func TestInfo(t *testing.T) {
	tr := read(t, "# k=v\nlive 9 100 tag=w\nmark m t=1000\na 0 5 stream=2 tag=x t=2000\na 1 100 t=2500\nuse 0 1\nf 0 "+
		"t=4000\na 2 1")
	got := tr.Info()
	want := trace.Info{
		Name: "t", Format: "text", Hash: tr.Header.Hash, Meta: []trace.Pair{{Key: "k", Value: "v"}}, Events: 7,
		Kinds: []trace.KindCount{
			{Kind: "alloc", Count: 3}, {Kind: "free", Count: 1}, {Kind: "use", Count: 1}, {Kind: "live-at-start", Count: 1},
			{Kind: "mark", Count: 1},
		},
		Allocs: 4, Slots: 4, Marks: 1, History: true,
		Streams: []trace.StreamCount{
			{Stream: 0, Allocs: 3, Bytes: 201}, {Stream: 1, Uses: 1}, {Stream: 2, Allocs: 1, Bytes: 5},
		},
		Tags: []trace.TagCount{{Tag: "", Allocs: 2, Bytes: 101}, {Tag: "w", Allocs: 1, Bytes: 100},
			{Tag: "x", Allocs: 1, Bytes: 5}},
		Sizes: trace.SizeInfo{Distinct: 3, Min: 1, Median: 5, Max: 100, Total: 206},
		Peak:  205, PeakAt: 3, PeakLive: 3, End: 201, EndLive: 3, Timed: true, Duration: 3000,
		Lives: trace.LifeInfo{Freed: 1, Kept: 3, MedianEvents: 3, P90Events: 3, MaxEvents: 3, Timed: 1, MedianTime: 2000,
			P90Time: 2000, MaxTime: 2000},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	empty := read(t, "").Info()
	if empty.PeakAt != -1 || empty.Timed || empty.Duration != 0 || empty.Tags != nil || empty.Kinds == nil ||
		empty.Streams == nil {
		t.Errorf("empty trace: %+v", empty)
	}
}

func TestRecordedTracesAreReplayable(t *testing.T) {
	var b bytes.Buffer
	r := trace.NewRecorder(&b)
	granted := func(q alloc.Request, a device.Addr) wrap.Operation {
		return wrap.Operation{Kind: wrap.OpAlloc, Request: q, Block: alloc.Block{Addr: a, Size: 512}}
	}
	bad := alloc.ErrInvalidFree
	for _, op := range []wrap.Operation{
		granted(alloc.Request{Size: 500, Align: 256, Stream: 1, Hint: alloc.HintHigh, Before: 3, Tag: 77,
			Origin: alloc.OriginOf(0xab, 5).WithLifetime(alloc.LifeStep)}, 0x1000),
		{Kind: wrap.OpAlloc, Request: alloc.Request{Size: 1 << 40}, Err: alloc.ErrOutOfMemory},
		{Kind: wrap.OpFree, Addr: 0x1010, Err: bad},
		{Kind: wrap.OpFree, Addr: 0x1000},
		{Kind: wrap.OpFree, Addr: 0x1000, Err: bad},
		{Kind: wrap.OpFree, Addr: 0x1010, Err: bad},
		{Kind: wrap.OpFree, Err: bad},
		granted(alloc.Request{Size: 1}, 0x1000),
		{Kind: wrap.OpUse, Addr: 0x1000, Stream: 3},
		{Kind: wrap.OpUse, Addr: 0x1010, Stream: 3, Err: bad},
		{Kind: wrap.OpFree, Addr: 0x1000},
		{Kind: wrap.OpTrim, Err: errors.New("two\nlines")},
		{Kind: wrap.OpFrontier, Count: 8},
		{Kind: wrap.OpClear},
		{Kind: wrap.OpPoll},
		{Kind: wrap.OpBeginPool, Pool: 3, Stream: 2},
		{Kind: wrap.OpBeginPool, Pool: 4, Stream: power.AllStreams},
		{Kind: wrap.OpBeginPool, Pool: 5, Stream: 1, Options: power.PoolOptions{UseOnOOM: true, NoSplit: true}},
		{Kind: wrap.OpEndPool, Pool: 3},
		{Kind: wrap.OpEndPool, Pool: 3, Err: alloc.ErrInvalidPool},
		{Kind: wrap.OpReleasePool, Pool: 3},
		{Kind: wrap.OpConfigure, Settings: "max_split_size_mb:20"},
		{Kind: wrap.OpConfigure, Settings: "a b", Err: alloc.ErrInvalidSettings},
	} {
		r.Record(op)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	const want = `# vramyard-trace 1
a 0 500 align=256 stream=1 hint=high before=3 tag=77 site=0xab thread=5 life=step
a 1 1099511627776 # refused: alloc: out of memory
badfree 0 +16 # failed: alloc: invalid free
f 0
badfree 0 # failed: alloc: invalid free
badfree 0x1010 # failed: alloc: invalid free
badfree null # failed: alloc: invalid free
a 2 1
use 2 3
# use of 0x1010 by stream 3 failed
f 2
trim # failed: "two\nlines"
frontier 8
clear
poll
pool begin 3 stream=2
pool begin 4
pool begin 5 stream=1 options=use_on_oom,no_split
pool end 3
# pool-end 3 failed
pool release 3
conf max_split_size_mb:20
# conf "a b" failed
`
	if b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
	if tr := read(t, b.String()); len(tr.Events) != 20 {
		t.Errorf("%d events read back, want 20", len(tr.Events))
	}
}
