package formats_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/internal/budget"
)

// bomb is a file without an end: a head, and then what a function makes of 0, 1, 2, … It watches
// the heap.
type bomb struct {
	next []byte
	make func(b []byte, n uint64) []byte
	n    uint64
	read int    // bytes
	peak uint64 // most bytes of the heap
}

// Read implements io.Reader.
func (b *bomb) Read(p []byte) (int, error) {
	const watched = 1 << 19
	for len(b.next) < len(p) {
		b.next = b.make(b.next, b.n)
		b.n++
	}
	n := copy(p, b.next)
	b.next = append(b.next[:0], b.next[n:]...)
	if b.read/watched != (b.read+n)/watched {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.peak = max(b.peak, m.HeapAlloc)
	}
	b.read += n
	if b.read > 1<<24 {
		return n, errors.New("the bomb has read 16 MiB of it")
	}
	return n, nil
}

// say returns what makes lines with a number in them.
func say(format string) func(b []byte, n uint64) []byte {
	return func(b []byte, n uint64) []byte { return fmt.Appendf(b, format, n) }
}

// field is a field of protocol buffers that holds bytes.
func field(number byte, parts ...[]byte) []byte {
	content := bytes.Join(parts, nil)
	return append(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(content))), content...)
}

// varint is a field of protocol buffers that holds a number.
func varint(number byte, n uint64) []byte { return binary.AppendUvarint([]byte{number << 3}, n) }

// xspaceNames are the tables of names of a plane.
var xspaceNames = bytes.Join([][]byte{
	field(4, varint(1, 1), field(2, varint(1, 1), field(2, []byte("MemoryAllocation")))),
	field(5, varint(1, 1), field(2, varint(1, 1), field(2, []byte("addr")))),
	field(5, varint(1, 2), field(2, varint(1, 2), field(2, []byte("allocator_name")))),
	field(5, varint(1, 3), field(2, varint(1, 3), field(2, []byte("requested_bytes")))),
}, nil)

// xspaceEvent is an allocation.
func xspaceEvent(n uint64) []byte {
	return field(4, varint(1, 1), field(4, varint(1, 1), varint(3, n)),
		field(4, varint(1, 2), field(5, []byte("gpu"))), field(4, varint(1, 3), varint(3, 1)))
}

// bombs are files that fill a table each.
var bombs = map[string]bomb{
	"text: events":      {make: func(b []byte, _ uint64) []byte { return append(b, "trim\n"...) }},
	"text: blocks":      {make: say("a %d 1\n")},
	"text: distant ids": {make: func(b []byte, n uint64) []byte { return fmt.Appendf(b, "a %d 1\nf %d\n", n<<20, n<<20) }},
	"text: tags":        {make: say("mark tag%d\n")},
	"text: header":      {make: say("# k%d=v\n")},
	"text: marks":       {make: say("# mark,%d,x\n")},
	"text: comments":    {make: say("# nothing %d\n")},
	"csv: rows": {
		next: []byte("seq,op,id,bytes,stream,time_us,tag\n"),
		make: func(b []byte, n uint64) []byte { return fmt.Appendf(b, "%d,a,%d,1,0,0,\n", n, n) },
	},
	"rmm: one address": {next: []byte(rmmHead), make: say("1,%d,allocate,0x1,1,0\n")},
	"rmm: blocks":      {next: []byte(rmmHead), make: say("1,1,allocate,0x%x1,1,0\n")},
	"rmm: openings":    {next: []byte(rmmHead), make: say("1,1,free,0x%x1,1,0\n")},
	"rmm: streams":     {next: []byte(rmmHead), make: say("1,1,free,0x1,1,0x%x2\n")},
	"rmm: threads":     {next: []byte(rmmHead), make: say("%d" + strings.Repeat("x", 1<<12) + ",1,free,0x1,1,0\n")},
	"kineto: calls": {
		next: []byte(`{"traceEvents":[`),
		make: say(`{"name":"[memory]","ts":1,"args":{"Device Type":1,"Device Id":0,"Addr":%d,"Bytes":1}},`),
	},
	"kineto: steps":      {next: []byte(`{"traceEvents":[`), make: say(`{"name":"ProfilerStep#%d","ts":1},`)},
	"timeline: blocks":   {next: []byte("["), make: say("[%d,2,1,0],")},
	"timeline: sizes":    {next: []byte("["), make: say("[1,2,%d,0],")},
	"timeline: openings": {next: []byte("["), make: say("[-1,1,%d,0],")},
	"timeline: frees":    {next: []byte("["), make: say("[1,2,1,0],[%d,4,-1,0],")},
	"timeline: moves":    {next: []byte("["), make: say("[%d,2,1,0],[1,3,-1,0],")},
	"memorydump: chunks": {
		next: field(1, []byte("gpu")),
		make: func(b []byte, n uint64) []byte { return append(b, field(3, varint(1, n), varint(2, 1))...) },
	},
	"memorydump: operations": {
		next: field(1, []byte("gpu")),
		make: func(b []byte, n uint64) []byte {
			return append(b, field(3, varint(1, n), varint(2, 1), field(5, fmt.Appendf(nil, "op%d", n)))...)
		},
	},
	"memorydump: one field": {next: append(field(1, []byte("gpu")), 0x1a, 0xff, 0xff, 0xff, 0xff, 0x7f), make: say("%d")},
	"xspace: one plane":     {next: []byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x08, 0x01}, make: say("%d")},
	"xspace: planes": {make: func(b []byte, n uint64) []byte {
		return append(b, field(1, varint(1, n), xspaceNames, field(3, xspaceEvent(n)))...)
	}},
	"xspace: allocators": {make: func(b []byte, n uint64) []byte {
		name := fmt.Appendf(bytes.Repeat([]byte("x"), 1<<16), "%d", n)
		return append(b, field(1, varint(1, n), xspaceNames,
			field(3, field(4, varint(1, 1), field(4, varint(1, 1), varint(3, n)),
				field(4, varint(1, 2), field(5, name)), field(4, varint(1, 3), varint(3, 1)))))...)
	}},
	"minimalloc: rows": {
		next: []byte("id,lower,upper,size\n"), make: func(b []byte, n uint64) []byte {
			return fmt.Appendf(b, "b%d,0,1,%d\n", n, n)
		},
	},
	"parquet: a pipe": {next: []byte("PAR1"), make: say("%d")},
}

// TestBombsAreRefused reads files without an end under a low bound: they are refused in one line,
// and what lies on the heap until then stays near the bound.
func TestBombsAreRefused(t *testing.T) {
	const limit = 8 << 20
	for name, b := range bombs {
		t.Run(name, func(t *testing.T) {
			b.next = bytes.Clone(b.next)
			var before runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			_, err := formats.Read(&b, "t", formats.Options{Memory: limit})
			if name == "text: comments" { // which take nothing
				require.ErrorContains(t, err, "the bomb has read 16 MiB of it")
			} else {
				_, is := errors.AsType[*budget.Error](err)
				require.True(t, is, "%v", err)
				require.Regexp(t, "^t:.* takes more than 8MiB of memory$", err.Error())
			}
			took := int64(b.peak) - int64(before.HeapAlloc)
			t.Logf("%d MiB of the file, %d MiB of the heap: %v", b.read>>20, took>>20, err)
			require.LessOrEqual(t, took, int64(limit+limit/2))
		})
	}
}

// TestMoreMemoryReadsMore reads a file that one bound refuses and a higher one does not.
func TestMoreMemoryReadsMore(t *testing.T) {
	text := strings.Repeat("a 1 1\nf 1\n", 50_000)
	_, err := formats.Read(strings.NewReader(text), "t", formats.Options{Memory: 8 << 20})
	require.EqualError(t, err, "t:59742: takes more than 8MiB of memory")
	tr, err := formats.Read(strings.NewReader(text), "t", formats.Options{Memory: 32 << 20})
	require.NoError(t, err)
	require.Len(t, tr.Events, 100_000)
}

// TestTracesOfSnapshotsAreWeighed reads a history that fits and whose trace, which is five times as
// large, does not.
func TestTracesOfSnapshotsAreWeighed(t *testing.T) {
	text := []byte(`{"segments":[],"device_traces":[[`)
	for n := range 50_000 {
		text = fmt.Appendf(text, `{"action":"alloc","addr":%d,"size":512,"stream":0},`, 512*n)
	}
	text = append(text, `{"action":"alloc","addr":0,"size":512,"stream":0}]]}`...)
	_, _, err := formats.ReadSnapshot(bytes.NewReader(text), "t", formats.Options{Memory: 8 << 20})
	require.NoError(t, err)
	_, err = formats.Read(bytes.NewReader(text), "t", formats.Options{Memory: 8 << 20})
	require.Error(t, err)
	require.Regexp(t, `^t: entry \d+: takes more than 8MiB of memory$`, err.Error())
	_, err = formats.Read(bytes.NewReader(text), "t", formats.Options{Memory: 64 << 20})
	require.NoError(t, err)
}

// TestLongTextsAreRefused reads names of more than 16 MiB, of which every copy would count.
func TestLongTextsAreRefused(t *testing.T) {
	long := bytes.Repeat([]byte("x"), 16<<20+1)
	for name, data := range map[string][]byte{
		"allocator": append(field(1, []byte("gpu")), append(field(3, varint(1, 1), varint(2, 1)), field(1, long)...)...),
		"operation": append(field(1, []byte("gpu")), field(3, varint(1, 1), varint(2, 1), field(5, long))...),
		"xspace":    field(1, varint(1, 1), field(4, varint(1, 1), field(2, field(2, long)))),
	} {
		_, err := formats.Read(bytes.NewReader(data), "t", formats.Options{})
		require.ErrorContains(t, err, "a value is longer than 16777216 bytes", name)
	}
}
