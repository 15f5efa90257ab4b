package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/study/offline"
)

// tower is a problem whose greedy placements are too high: 3 and 3 bytes at the ends need the 2 in
// the middle below or above both.
const tower = "id,lower,upper,size\nx,0,2,3\ny,1,4,2\nz,3,5,3\n"

func TestOffline(t *testing.T) {
	path := write(t, "tower.csv", tower)
	out := succeed(t, "offline", path)
	require.Contains(t, out, "tower: 3 buffers, sha256 ")
	require.Regexp(t, `lower bound +│ +5 B │ +5 │ +1.000 │`, out)
	require.Regexp(t, `greedy by size +│ +5 B │ +5 │ +1.000 │ +\d+ │ +0 │ optimal`, out)
	require.Regexp(t, `best: greedy by size +│ +5 B │`, out)
	require.Equal(t, out, succeed(t, "offline", path), "the same on every run")

	var r offline.Report
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "offline", "--json", "-", "--capacity", "1KiB", path)), &r))
	require.Equal(t, offline.Schema, r.Schema)
	require.EqualValues(t, 1024, r.Limits.Capacity)
	require.EqualValues(t, offline.DefaultSteps, r.Limits.Steps)
	require.EqualValues(t, 5, r.Traces[0].Best.Height)
	require.Len(t, r.Traces[0].Greedy, 3)
}

func TestOfflineWritesOffsets(t *testing.T) {
	path := write(t, "tower.csv", tower)
	require.Equal(t, "id,lower,upper,size,offset\n0,0,2,3,0\n1,1,4,2,3\n2,3,5,3,0\n",
		succeed(t, "offline", "--offsets", "-", path))
	again := write(t, "t.trace", "a 1 10 align=4\nf 1\na 1 20\n")
	placed := filepath.Join(t.TempDir(), "placed.csv")
	require.Contains(t, succeed(t, "offline", "--offsets", placed, again), "best: ")
	text, err := os.ReadFile(placed)
	require.NoError(t, err)
	require.Equal(t, "id,lower,upper,size,alignment,offset\n0,1,2,10,4,0\n1,3,4,20,1,0\n", string(text))
	succeed(t, "offline", placed) // what is written is a problem again
}

func TestOfflineHonoursDelayedFrees(t *testing.T) {
	path := write(t, "t.trace", "a 1 100\nf 1\na 2 100\ndone 1\n")
	require.Regexp(t, `lower bound +│ +200 B`, succeed(t, "offline", path))
	out := succeed(t, "offline", "--free-at", "requested", path)
	require.Contains(t, out, "delayed frees take effect when requested\n")
	require.Regexp(t, `lower bound +│ +100 B`, out)
}

func TestOfflineRefuses(t *testing.T) {
	path := write(t, "tower.csv", tower)
	huge := write(t, "huge.trace", "a 1 8EiB\na 2 1\n")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--capacity", "0", path}, "--capacity: want more than 0 bytes"},
		{[]string{"--steps", "0", path}, "--steps: want at least 1"},
		{[]string{"--time", "0s", path}, "--time: want more than 0s"},
		{[]string{"--time", "soon", path}, `invalid argument "soon"`},
		{[]string{"--offsets", path + ".out"}, "--offsets: want one trace"},
		{[]string{"--offsets", path, path}, "is a file to read"},
		{[]string{"--json", "-", "--offsets", "-", path}, "--offsets: - is where --json is written"},
		{[]string{"--free-at", "never", path}, `free at "never"`},
		{[]string{path + ".gone"}, "no such file"},
		{[]string{huge}, "huge: buffer 0 (id 1): the sum of sizes exceeds 9223372036854775807"},
	} {
		status, stdout, stderr := command(t, append([]string{"offline"}, c.args...)...)
		require.Equal(t, exitTrouble, status, "%v: %s", c.args, stderr)
		require.Empty(t, stdout)
		require.Contains(t, stderr, c.want)
	}
}
