package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/study/tune"
)

func TestTunePrintsAndWrites(t *testing.T) {
	path := write(t, "t.trace", small)
	file := filepath.Join(t.TempDir(), "tune.json")
	out := succeed(t, "tune", "--strategy", "bfc", "--settings", "allow_growth,mended", "--json", file, path)
	for _, want := range []string{
		"bfc: 4 of 4 grid points evaluated, exhaustively; 0 refused", "least memory", "least time",
		"The effect of each setting", "vramyard replay --strategy bfc --config '{",
	} {
		require.Contains(t, out, want)
	}
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	var r tune.Result
	require.NoError(t, json.Unmarshal(raw, &r))
	require.Equal(t, tune.Schema, r.Schema)
	require.Len(t, r.Searched, 4)
	require.Len(t, r.Effects, 2)
	require.NotNil(t, r.Smallest.TimesBound)
	for _, key := range []string{`"strategy"`, `"grid"`, `"times_bound"`, `"ns_per_op"`, `"min_capacity_bytes"`, `"worth"`,
		`"metadata_bytes"`} {
		require.Contains(t, string(raw), key)
	}
}

func TestComparisonsOnPages(t *testing.T) {
	path := write(t, "t.trace", "a 1 1KiB\na 2 3MiB\na 3 1\n")
	pages := []string{"--sim", `{"charge":"2MiB","round":"2MiB"}`, "--json", "-", path}
	var r struct {
		Device map[string]any
		Runs   []struct {
			MinCapacity  int `json:"min_capacity_bytes"`
			PeakReserved int `json:"peak_reserved_bytes"`
		}
	}
	out := succeed(t, append([]string{"compare", "--strategies", "bfc:growth"}, pages...)...)
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.EqualValues(t, 2<<20, r.Device["charge"])
	require.Equal(t, 6<<20, r.Runs[0].MinCapacity)
	out = succeed(t, "compare", "--strategies", "bfc:growth", "--sim", `{"charge":"2MiB"}`, path)
	require.Contains(t, out, `device settings except the capacity: {"charge":2097152}`)
	out = succeed(t, append([]string{"tune", "--strategy", "bfc:growth", "--settings", "mended"}, pages...)...)
	require.Contains(t, out, `"charge": 2097152`)
}

func TestTuneRefuses(t *testing.T) {
	path := write(t, "t.trace", small)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{path}, `required flag(s) "strategy" not set`},
		{[]string{"--strategy", "bcf", path}, `unknown strategy "bcf"`},
		{[]string{"--strategy", "bfc", "--config", `{"variant":1999}`, path}, "configuration of bfc"},
		{[]string{"--strategy", "bfc", "--config", `{"variant":"1999"}`, path}, "1999"},
		{[]string{"--strategy", "bfc", "--settings", "limt", path},
			`bfc: setting "limt" has no grid values: want some of variant, `},
		{[]string{"--strategy", "bfc", "--points", "0", path}, "--points: want at least 1"},
		{[]string{"--strategy", "bfc", "--sim", `{"capacity":"1GiB"}`, path}, "--sim: capacity: this command sets it"},
		{[]string{"--strategy", "bfc", "--sim", `{"charge":3}`, path}, "--sim: simulated device: charge 3: want a " +
			"power of two"},
		{[]string{"--strategy", "bfc", "--json", path, path}, "is a file to read"},
		{[]string{"--strategy", "bfc", write(t, "empty.trace", "mark x\n")}, "has no allocations"},
		{[]string{"--strategy", "bfc", path + ".gone"}, "no such file"},
	} {
		status, stdout, stderr := command(t, append([]string{"tune"}, c.args...)...)
		require.Equal(t, exitTrouble, status, stderr)
		require.Empty(t, stdout)
		require.Contains(t, stderr, c.want)
	}
}
