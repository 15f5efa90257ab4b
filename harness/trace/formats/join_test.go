package formats_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
)

// snapshotFile writes a snapshot as JSON: of devices that allocate blocks of 100 bytes, the first
// one at time first, the last one at time last.
func snapshotFile(t *testing.T, name, conf string, devices, first, last int) string {
	t.Helper()
	var histories []string
	for range devices {
		var entries []string
		for at := first; at <= last; at++ {
			entries = append(entries, fmt.Sprintf(
				`{"action":"alloc","addr":%d,"size":100,"stream":0,"time_us":%d}`, 4096+512*at, 5000*at))
		}
		histories = append(histories, "["+strings.Join(entries, ",")+"]")
	}
	text := fmt.Sprintf(`{"segments":[],"device_traces":[%s],"allocator_settings":{"PYTORCH_CUDA_ALLOC_CONF":%q}}`,
		strings.Join(histories, ","), conf)
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	return path
}

func TestSnapshotsAreJoined(t *testing.T) {
	a, b := snapshotFile(t, "a.pickle", "", 1, 1, 3), snapshotFile(t, "b.pickle", "max_split_size_mb:20", 1, 2, 4)
	var hashes []string
	for _, paths := range [][]string{{a, b}, {b, a}} {
		tr, err := formats.Join(paths, formats.Options{})
		require.NoError(t, err)
		require.Equal(t, "a", tr.Header.Name)
		require.Equal(t, []trace.Pair{{Key: "joined", Value: "a, b"}, {Key: "part", Value: "cuda:0"}}, tr.Header.Meta[:2])
		framework, _ := tr.Header.Get(trace.FrameworkKey)
		require.Equal(t, "PyTorch", framework)
		absent, _ := tr.Header.Get(trace.AbsentKey)
		require.Contains(t, absent, "; when the settings changed between two files")
		require.Contains(t, lines(t, tr),
			"a 1 100 t=5000000\na 2 100 t=10000000\nconf max_split_size_mb:20 t=10000000\na 3 100 t=15000000\n")
		hashes = append(hashes, tr.Header.Hash)
	}
	require.Equal(t, hashes[0], hashes[1])
	require.Len(t, hashes[0], 64)
	alone, err := formats.Open(a, formats.Options{})
	require.NoError(t, err)
	require.NotEqual(t, alone.Header.Hash, hashes[0])
}

func TestSnapshotsThatCannotBeJoined(t *testing.T) {
	a, b := snapshotFile(t, "a.pickle", "", 2, 1, 3), snapshotFile(t, "b.pickle", "", 2, 2, 4)
	late := snapshotFile(t, "late.pickle", "", 2, 4, 9)
	text := filepath.Join(t.TempDir(), "c.trace")
	require.NoError(t, os.WriteFile(text, []byte("a 1 5\n"), 0o666))
	for _, c := range []struct {
		paths []string
		o     formats.Options
		want  string
	}{
		{[]string{a, late}, formats.Options{}, late + ": the history of cuda:0 begins at 20000 µs, 5ms after " + a},
		{[]string{a, text}, formats.Options{}, text + ": is no snapshot of PyTorch"},
		{[]string{a, "-"}, formats.Options{}, "-: standard input cannot be joined: want files"},
		{[]string{a, a + "x"}, formats.Options{}, a + "x: no such file"},
		{[]string{a, b}, formats.Options{}, a + `: holds several parts, name one of them: "cuda:0" (4 events), "cuda:1" (4`},
		{[]string{a, b}, formats.Options{Part: "cuda:2"}, a + `: has no part "cuda:2"`},
		{[]string{a, b}, formats.Options{Memory: 1}, a + ": snapshot: at byte "},
	} {
		_, err := formats.Join(c.paths, c.o)
		require.ErrorContains(t, err, c.want)
		require.True(t, strings.HasPrefix(err.Error(), c.want), "%v", err)
	}
	tr, err := formats.Join([]string{a, b}, formats.Options{Part: "cuda:1"})
	require.NoError(t, err)
	require.Len(t, tr.Events, 4)
}
