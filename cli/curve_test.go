package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCurveHasEveryEvent writes a point for each event, also behind the longest series in JSON.
func TestCurveHasEveryEvent(t *testing.T) {
	path := write(t, "small.trace", small)
	require.Equal(t, `event,requested_bytes,allocated_bytes,reserved_bytes,oom_count
0,1000,1024,4096,0
1,1256,1280,4096,0
2,3256,3328,4096,0
3,2256,2304,4096,0
4,2256,2304,4096,1
5,2000,2048,4096,0
`, succeed(t, "replay", "--strategy", "tlsf", "--config", `{"limit":"4KiB"}`, "--curve", "-", path))

	for name, magic := range map[string]string{"x.npy": "\x93NUMPY", "x.parquet": "PAR1", "x.csv": "event,"} {
		out := filepath.Join(t.TempDir(), name)
		succeed(t, "replay", "--strategy", "caching", "--json", filepath.Join(t.TempDir(), "x.json"), "--curve", out, path)
		text, err := os.ReadFile(out)
		require.NoError(t, err)
		require.Equal(t, magic, string(text[:len(magic)]))
	}
	status, _, stderr := command(t, "replay", "--strategy", "caching", "--curve", "x.json", path)
	require.Equal(t, exitTrouble, status)
	require.Contains(t, stderr, "--curve: x.json: want a name that ends in .csv, .csv.gz, .csv.zst, .npy,")
	status, _, stderr = command(t, "replay", "--strategy", "caching", "--memory", "1MiB", "--curve", "x.npy",
		"cpu_unet_train")
	require.Equal(t, exitTrouble, status)
	require.Contains(t, stderr, "--curve: takes more than 1MiB of memory")
}
