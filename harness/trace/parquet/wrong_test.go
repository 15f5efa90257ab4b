package parquet_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	parquetgo "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/parquet"
	"github.com/vramyard/vramyard/internal/budget"
)

// like is a row as the package writes it.
type like struct {
	Kind   string `parquet:"kind,dict"`
	ID     uint64 `parquet:"id"`
	Size   uint64 `parquet:"size_bytes"`
	Stream uint64 `parquet:"stream"`
	Align  uint64 `parquet:"align_bytes"`
	Hint   string `parquet:"hint,dict"`
	Arg    uint64 `parquet:"arg"`
	Time   int64  `parquet:"time_ns"`
	Tag    string `parquet:"tag,plain"`
}

// from is a row with the place that an allocation comes from.
type from struct {
	like
	Site   uint64 `parquet:"site"`
	Thread uint64 `parquet:"thread"`
}

// forged returns a file of rows of any type with the given metadata, in pairs of key and value.
func forged[T any](t testing.TB, rows []T, meta ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquetgo.NewGenericWriter[T](&b)
	_, err := w.Write(rows)
	require.NoError(t, err)
	for i := 0; i < len(meta); i += 2 {
		w.SetKeyValueMetadata(meta[i], meta[i+1])
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

// described returns the metadata of a file with so many events.
func described(events string) []string {
	return []string{"vramyard.version", "1", "vramyard.header", "[]", "vramyard.events", events}
}

// read reads bytes, whole and by walking, and returns both errors in one line each.
func read(data []byte) (whole, walked string) {
	text := func(err error) string {
		if err == nil {
			return ""
		}
		return err.Error()
	}
	f, err := parquet.Open(bytes.NewReader(data), int64(len(data)), "x.parquet", nil)
	if err != nil {
		return text(err), text(err)
	}
	_, err = f.Trace()
	return text(err), text(f.Batches(func([]trace.Event) error { return nil }))
}

func TestFilesWithoutATraceAreRefused(t *testing.T) {
	type optional struct {
		Kind *string `parquet:"kind"`
	}
	type signed struct {
		Kind string `parquet:"kind"`
		ID   int64  `parquet:"id"`
	}
	type more struct {
		like
		Extra int64 `parquet:"extra"`
	}
	type lived struct {
		from
		Life string `parquet:"life,dict"`
	}
	type sited struct {
		like
		Site uint64 `parquet:"site"`
	}
	good := []like{{Kind: "alloc"}, {Kind: "free"}}
	whole := forged(t, good, described(`{"alloc":1,"free":1}`)...)
	for want, data := range map[string][]byte{
		"x.parquet: the Parquet data is truncated": []byte("PAR1"),
		"x.parquet: no Parquet file":               bytes.Repeat([]byte("PAR2"), 5),
		"x.parquet: the metadata lack vramyard.version: want a file that was written as a trace": forged(t, good),
		`x.parquet: version "2" of the trace format: want 1`: forged(t, good,
			"vramyard.version", "2"),
		"x.parquet: the metadata lack vramyard.header": forged(t, good,
			"vramyard.version", "1"),
		"x.parquet: metadata vramyard.header: unexpected end of JSON input": forged(t, good,
			"vramyard.version", "1", "vramyard.header", "["),
		"x.parquet: metadata vramyard.events count 3 events, the file has 2 rows": forged(t, good,
			described(`{"alloc":3}`)...),
		`x.parquet: metadata vramyard.events: -1 events of kind "alloc"`: forged(t, good,
			described(`{"alloc":-1}`)...),
		`x.parquet: metadata vramyard.events: 2 events of kind "foo"`: forged(t, good,
			described(`{"foo":2}`)...),
		"x.parquet: column kind is optional STRING: want required STRING": forged(t,
			[]optional{}, described(`{}`)...),
		"x.parquet: column id is INT(64,true): want required INT(64,false)": forged(t,
			[]signed{}, described(`{}`)...),
		`x.parquet: column "extra" is not known there: want the columns kind, id, size_bytes, stream, align`: forged(t,
			[]more{}, described(`{}`)...),
		"x.parquet: column thread is missing": forged(t,
			[]sited{}, described(`{}`)...),
		`x.parquet: row 1: unknown life "long"`: forged(t, []lived{
			{from: from{like: like{Kind: "alloc"}}}, {from{like: like{Kind: "alloc", ID: 1}}, "long"},
		}, described(`{"alloc":2}`)...),
		"x.parquet: row 1: thread 4294967296: want at most 4294967295": forged(t, []from{
			{like: like{Kind: "alloc"}}, {like{Kind: "alloc", ID: 1}, 5, 1 << 32},
		}, described(`{"alloc":2}`)...),
	} {
		got, _ := read(data)
		require.True(t, strings.HasPrefix(got, want), "got  %s\nwant %s", got, want)
	}
	huge := []byte("PAR1\x29\xfc\xff\xff\xff\xff\x07\x07\x00\x00\x00PAR1") // a list of 2^31 - 1 columns
	got, _ := read(huge)
	require.Equal(t, "x.parquet: the Parquet data is corrupt: the description at the end claims more than it has", got)

	var packed bytes.Buffer
	w := parquetgo.NewGenericWriter[like](&packed, parquetgo.Compression(&parquetgo.Gzip))
	_, err := w.Write(good)
	require.NoError(t, err)
	for i, m := 0, described(`{"alloc":1,"free":1}`); i < len(m); i += 2 {
		w.SetKeyValueMetadata(m[i], m[i+1])
	}
	require.NoError(t, w.Close())
	got, _ = read(packed.Bytes())
	require.Equal(t, "x.parquet: column kind: compressed with GZIP: want zstd", got)

	got, walked := read(whole)
	require.Empty(t, got+walked)
}

func TestWrongEventsAreNamedByTheirRow(t *testing.T) {
	for _, c := range []struct {
		whole, walked string // of errors behind "x.parquet: "
		counts        string
		rows          []like
	}{
		{"row 2: id 5 is freed already", "row 2: free of id 5, which is not live", `{"alloc":1,"free":2}`,
			[]like{{Kind: "alloc", ID: 5}, {Kind: "free", ID: 5}, {Kind: "free", ID: 5}}},
		{"row 2: id 5 is freed already", "row 2: use of id 5, which is freed already",
			`{"alloc":1,"free":1,"use":1,"completed":1}`,
			[]like{{Kind: "alloc", ID: 5}, {Kind: "free", ID: 5}, {Kind: "use", ID: 5}, {Kind: "completed", ID: 5}}},
		{"row 0: id 5 was never allocated", "row 0: free of id 5, which is not live", `{"free":1}`,
			[]like{{Kind: "free", ID: 5}}},
		{"row 1: id 5 is still live", "row 1: id 5 is still live", `{"alloc":2}`,
			[]like{{Kind: "alloc", ID: 5}, {Kind: "alloc", ID: 5}}},
		{"row 1: id 5 is not freed", "row 1: id 5 is not freed", `{"alloc":1,"completed":1}`,
			[]like{{Kind: "alloc", ID: 5}, {Kind: "completed", ID: 5}}},
		{"row 1: allocations live at the start must precede all other events", "row 1: allocations live at the start must " +
			"precede all other events",
			`{"mark":1,"live-at-start":1}`, []like{{Kind: "mark"}, {Kind: "live-at-start"}}},
		{`row 2: id 5 sleeps: tag "x" is paused`, `row 2: id 5 sleeps: tag "x" is paused`, `{"alloc":1,"pause":1,"free":1}`,
			[]like{{Kind: "alloc", ID: 5, Tag: "x"}, {Kind: "pause", Tag: "x"}, {Kind: "free", ID: 5}}},
		{"row 0: nothing is paused", "row 0: nothing is paused", `{"resume":1}`, []like{{Kind: "resume"}}},
		{`row 1: unknown kind "foo"`, `row 1: unknown kind "foo"`, `{"mark":2}`, []like{{Kind: "mark"}, {Kind: "foo"}}},
		{`row 0: unknown hint "up"`, `row 0: unknown hint "up"`, `{"mark":1}`, []like{{Kind: "mark", Hint: "up"}}},
		{"row 1: time goes back from 7 ns to 6 ns", "row 1: time goes back from 7 ns to 6 ns", `{"mark":2}`,
			[]like{{Kind: "mark", Time: 7}, {Kind: "mark", Time: 6}}},
		{"row 0: time goes back from 0 ns to -2 ns", "row 0: time goes back from 0 ns to -2 ns", `{"mark":1}`,
			[]like{{Kind: "mark", Time: -2}}},
		{"metadata vramyard.events count 2 events of kind mark, the file has 1", "metadata vramyard.events count 2 events " +
			"of kind mark, the file has 1",
			`{"mark":2}`, []like{{Kind: "mark"}, {Kind: "trim"}}},
	} {
		whole, walked := read(forged(t, c.rows, described(c.counts)...))
		require.Equal(t, "x.parquet: "+c.whole, whole)
		require.Equal(t, "x.parquet: "+c.walked, walked)
	}
}

func TestTooManyEventsForMemory(t *testing.T) {
	var b trace.Builder
	for i := range uint64(10_000) {
		require.NoError(t, b.Alloc(i, 1, 0))
	}
	data := written(t, b.Trace())
	for limit, want := range map[device.Size]string{
		2 << 20: "x.parquet: row 2726: ", // of the events and their replay
		2 << 10: "x.parquet: takes more than 2KiB of memory",
	} {
		f, err := parquet.Open(bytes.NewReader(data), int64(len(data)), "x.parquet", budget.New(limit))
		if err == nil {
			_, err = f.Trace()
		}
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "takes more than "+limit.String()+" of memory")
	}
	f, err := parquet.Open(bytes.NewReader(data), int64(len(data)), "x.parquet", budget.New(2<<20))
	require.NoError(t, err)
	err = f.Batches(func([]trace.Event) error { return nil })
	require.EqualError(t, err, "x.parquet: row 5376: takes more than 2MiB of memory")
}

// TestLongTagsAreRead writes texts that are longer than the head of a page may be.
func TestLongTagsAreRead(t *testing.T) {
	var b trace.Builder
	require.NoError(t, b.Mark(strings.Repeat("x", 1<<20)))
	require.NoError(t, b.Mark(strings.Repeat("y", 1<<20)))
	tr, err := open(t, written(t, b.Trace())).Trace()
	require.NoError(t, err)
	require.Len(t, tr.Tags, 3)
}

func TestWriterRefusesWhatAFileCannotHold(t *testing.T) {
	for want, tr := range map[string]*trace.Trace{
		"event 0: unknown kind of event 99": {Events: []trace.Event{{Kind: 99}}},
		"event 0: unknown hint 7":           {Events: []trace.Event{{Kind: trace.Alloc, Hint: 7}}},
		`event 0: tag "\xff": want UTF-8`:   {Events: []trace.Event{{Kind: trace.Mark, Tag: 1}}, Tags: []string{"", "\xff"}},
		`header "k"="\xff": want UTF-8`:     {Header: trace.Header{Meta: []trace.Pair{{Key: "k", Value: "\xff"}}}},
	} {
		require.EqualError(t, parquet.Write(&bytes.Buffer{}, tr), want)
	}
}

// damage calls try with copies of a file: with a bit changed at every step, and at some of these
// with all bits of the byte changed, and cut there.
func damage(good []byte, step int, try func(data []byte)) {
	for i := 0; i < len(good); i += step {
		data := bytes.Clone(good)
		data[i] ^= 1 << (i % 8)
		try(data)
		if i%5 == 0 {
			try(good[:i])
			data[i] = ^good[i]
			try(data)
		}
	}
}

// TestBrokenFilesAreErrors changes and cuts a file everywhere. What comes of it is an error in one
// line or, where nothing was hurt, a trace.
func TestBrokenFilesAreErrors(t *testing.T) {
	good, err := os.ReadFile(filepath.FromSlash("../formats/testdata/every.parquet"))
	require.NoError(t, err)
	tries, refused := 0, 0
	try := func(data []byte) {
		whole, walked := read(data)
		require.NotContains(t, whole+walked, "\n")
		if tries++; whole != "" {
			refused++
		}
	}
	damage(good, 2, try)
	require.Less(t, tries/2, refused, "what is not noticed says nothing of the trace")
}

// FuzzOpen looks for files that make a reader panic or disagree with itself.
func FuzzOpen(f *testing.F) {
	good, err := os.ReadFile(filepath.FromSlash("../formats/testdata/every.parquet"))
	require.NoError(f, err)
	f.Add(good)
	f.Add(forged(f, []like{{Kind: "alloc"}, {Kind: "free"}}, described(`{"alloc":1,"free":1}`)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := parquet.Open(bytes.NewReader(data), int64(len(data)), "x.parquet", nil)
		if err != nil {
			return
		}
		tr, err := in.Trace()
		if !in.Streams() || in.Head().Events > 1<<16 {
			return
		}
		walked := 0
		again := in.Batches(func(events []trace.Event) error {
			walked += len(events)
			return nil
		})
		require.Equal(t, err == nil, again == nil)
		if err == nil {
			require.Len(t, tr.Events, walked)
		}
	})
}
