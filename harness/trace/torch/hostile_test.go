package torch_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/internal/budget"
)

var rewrite = flag.Bool("rewrite", false, "write what is said of hostile files; review the difference")

// hostileDir holds small files that are broken, lie or try to do harm, and some that only look so.
const hostileDir = "testdata/hostile"

// verdict says in a line what becomes of a file.
func verdict(data []byte) string {
	s, err := torch.Read(bytes.NewReader(data), budget.New(0))
	if err != nil {
		return err.Error()
	}
	entries, segments := 0, 0
	for _, d := range s.Devices {
		entries += d.History.Len()
		segments += len(d.Segments)
	}
	return fmt.Sprintf("read: %d entries, %d segments, %d settings, %d keys ignored", entries, segments,
		len(s.Settings), len(s.Unknown))
}

// hostile returns the names of the files.
func hostile(t testing.TB) []string {
	t.Helper()
	var names []string
	for _, ending := range []string{"pickle", "json", "gz", "xz"} {
		some, err := filepath.Glob(hostileDir + "/*." + ending)
		require.NoError(t, err)
		names = append(names, some...)
	}
	require.Greater(t, len(names), 90)
	return names
}

// TestHostileFilesAreRefused compares what is said of each file with testdata/hostile/verdicts.txt.
func TestHostileFilesAreRefused(t *testing.T) {
	const golden = hostileDir + "/verdicts.txt"
	var b strings.Builder
	for _, name := range hostile(t) {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		said := verdict(data)
		fmt.Fprintf(&b, "%s\t%s\n", filepath.Base(name), said)
		if strings.HasPrefix(filepath.Base(name), "ok-") {
			require.Regexp(t, "^read: ", said, name)
		} else {
			require.Regexp(t, "^snapshot: (at byte [0-9]+: .*, want |(at byte [0-9]+: )?(gzip|xz) data )", said, name)
		}
	}
	if *rewrite {
		require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())
}

// small is a short snapshot with everything in it, for tests that try every byte.
func snapshotSmall(t testing.TB) []byte {
	t.Helper()
	s := read(t, content(t, snapshotVectorDir+"/full.pickle.xz"))
	s.Devices[0].Segments = s.Devices[0].Segments[:1]
	s.Devices[0].Segments[0].Blocks = s.Devices[0].Segments[0].Blocks[:3]
	var h torch.History
	for i := range 5 {
		e := s.Devices[0].History.At(i * 30)
		e.Stack = s.Devices[0].Segments[0].Stack
		h.Append(e)
	}
	h.Streams = s.Devices[0].History.Streams
	s.Devices[0].History = h
	return write(t, s)
}

// TestEveryTruncationIsRefused cuts a snapshot at every byte.
func TestEveryTruncationIsRefused(t *testing.T) {
	few, all := snapshotSmall(t), content(t, snapshotVectorDir+"/full.pickle.xz")
	for n := range few {
		_, err := torch.Read(bytes.NewReader(few[:n]), budget.New(0))
		require.Error(t, err, "%d bytes", n)
	}
	for n := 0; n < len(all); n += 61 { // its frames end elsewhere
		_, err := torch.Read(bytes.NewReader(all[:n]), budget.New(0))
		require.Error(t, err, "%d bytes", n)
	}
}

// TestEveryChangedByteIsHandled changes every byte to several values. Many of the files are right,
// with other numbers; none may panic, and what is read can be written.
func TestEveryChangedByteIsHandled(t *testing.T) {
	data := snapshotSmall(t)
	for i, old := range data {
		for k, b := range []byte{old ^ 1, 0xff, '(', 'e', 'u', 'h', 0x94, ']', '}', 0} {
			if testing.Short() && k > 1 {
				break
			}
			data[i] = b
			if s, err := torch.Read(bytes.NewReader(data), budget.New(0)); err == nil {
				require.NotPanics(t, func() { write(t, s) })
			}
		}
		data[i] = old
	}
}

// The memory that reading may take from the heap in all, garbage included: buffers and first pages,
// and for each byte of the plain file what the dearest byte takes, an opened list.
const (
	roomFixed = 1 << 20
	roomEach  = 600
)

// taken returns the bytes that a function takes from the heap.
func taken(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestHostileFilesTakeLittleMemory reads them while looking at the heap.
func TestHostileFilesTakeLittleMemory(t *testing.T) {
	files := map[string][]byte{
		"opened lists": []byte("\x80\x04" + strings.Repeat("]", 100_000)),
		"opened dicts": []byte("\x80\x04" + strings.Repeat("}", 100_000)),
		"tuples":       []byte("\x80\x04](" + strings.Repeat(")K\x01\x85", 100_000)),
		"histories": []byte("\x80\x04](" +
			strings.Repeat("](}(\x8c\x06action\x8c\x01a\x8c\x04addrK\x01\x8c\x04sizeK\x01ue", 10_000)),
		"segments": []byte("\x80\x04](" + strings.Repeat(
			"}(\x8c\x0atotal_sizeK\x01\x8c\x06blocks]\x8c\x07addressK\x01u", 10_000)),
	}
	for _, name := range hostile(t) {
		if data, err := os.ReadFile(name); err == nil && !strings.HasSuffix(name, "z") {
			files[name] = data
		}
	}
	for name, data := range files {
		n := taken(func() { verdict(data) })
		require.LessOrEqual(t, n, uint64(roomFixed+roomEach*len(data)), "%s of %d bytes", name, len(data))
	}
}

// FuzzRead reads anything: it may not panic, not take more memory than the file warrants, and
// what it reads must survive being written.
func FuzzRead(f *testing.F) {
	for _, path := range hostile(f) {
		data, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add(snapshotSmall(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s *torch.Snapshot
		var err error
		n := taken(func() { s, err = torch.Read(bytes.NewReader(data), budget.New(0)) })
		packed := bytes.HasPrefix(data, []byte("\x1f\x8b")) || bytes.HasPrefix(data, []byte("\xfd7zXZ")) ||
			len(data) > 3 && (data[1] == 0xb5 || data[1] == 0x2a)
		if !packed {
			require.LessOrEqual(t, n, uint64(roomFixed+roomEach*len(data)))
		}
		if err == nil {
			checkRoundTrip(t, s)
		}
	})
}
