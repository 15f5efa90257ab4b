package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestConvertJoinsSnapshots joins the snapshots of a program that freed a block of 40 MiB and then
// forbade to split such blocks, and replays it: the small block needs a segment of its own.
func TestConvertJoinsSnapshots(t *testing.T) {
	t.Parallel()
	snapshot := func(name, conf, entries string) string {
		return write(t, name, fmt.Sprintf(`{"segments":[],"device_traces":[[%s]],`+
			`"allocator_settings":{"PYTORCH_CUDA_ALLOC_CONF":%q}}`, entries, conf))
	}
	const first = `{"action":"alloc","addr":4194304,"size":41943040,"stream":0,"time_us":1000},` +
		`{"action":"free_completed","addr":4194304,"size":41943040,"stream":0,"time_us":2000}`
	const second = `{"action":"alloc","addr":94194304,"size":12582912,"stream":0,"time_us":9000}`
	a := snapshot("a.json", "", first)
	b := snapshot("b.json", "max_split_size_mb:32", first+","+second)
	out := filepath.Join(t.TempDir(), "run.trace")
	succeed(t, "trace", "convert", b, a, out)
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Contains(t, string(text), "\n# config={\"conf\":\"\"}\n")
	require.Contains(t, string(text), "\na 0 41943040 t=0\nf 0 t=1000000\n"+
		"conf max_split_size_mb:32 t=1000000\na 1 12582912 t=8000000\n")
	require.Contains(t, succeed(t, "replay", "--strategy", "caching", out), "reserves 52.00 MiB at most")
	unchanged := snapshot("c.json", "", first+","+second)
	succeed(t, "trace", "convert", a, unchanged, out)
	require.Contains(t, succeed(t, "replay", "--strategy", "caching", out), "reserves 40.00 MiB at most")

	late := snapshot("late.json", "", second)
	status, _, stderr := command(t, "trace", "convert", a, late, filepath.Join(t.TempDir(), "o.trace"))
	require.Equal(t, exitTrouble, status)
	require.Equal(t, "vramyard: "+late+": the history of cuda:0 begins at 9000 µs, 7ms after "+a+" ends at 2000 µs, "+
		"and the entries between them are lost: raise max_entries of _record_memory_history, or write snapshots more "+
		"often\n", stderr)
	status, _, stderr = command(t, "trace", "convert", "--dialect", "torch", a, b, "-")
	require.Equal(t, exitTrouble, status)
	require.Equal(t, "vramyard: --dialect: only snapshots of PyTorch can be joined\n", stderr)
	status, _, stderr = command(t, "trace", "convert", a, b, b)
	require.Equal(t, exitTrouble, status)
	require.Contains(t, stderr, b+" is a file to read")
}
