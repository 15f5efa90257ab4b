package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace/vectors"
)

// TestReplayOfVectorsOfPyTorch replays a few from the command line: a refusal after a delayed free
// and a retry; expandable segments; private pools; a memory fraction.
func TestReplayOfVectorsOfPyTorch(t *testing.T) {
	all, err := vectors.Torch()
	require.NoError(t, err)
	for name, rules := range map[string]string{
		"micro_spurious_oom": "2.6", "expandable_training": "2.11", "private_pools": "2.6", "fraction_one_gc": "2.11",
	} {
		t.Run(name, func(t *testing.T) {
			v := all[slices.IndexFunc(all, func(v vectors.Vector) bool { return v.ID() == "torch_"+rules+"/"+name })]
			dir := t.TempDir()
			placements, final := filepath.Join(dir, "p"), filepath.Join(dir, "q")
			succeed(t, "replay", "--strategy", "caching", "--config", string(v.Config), "--dialect", "torch", "--sim",
				string(v.Sim),
				"--placements", placements, "--final", final, "../testdata/vectors/torch/"+name+".trace.zst")
			var got []string
			for _, file := range []string{placements, final} {
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				got = append(got, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")...)
			}
			want, err := v.Expected()
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

func TestReplayShowsTheCountersOfPyTorch(t *testing.T) {
	path := write(t, "t.trace", "a 1 1000\na 2 30000000\nf 1\n")
	out := succeed(t, "replay", "--strategy", "caching", "--dialect", "torch", "--json", "-", path)
	var result struct{ Counters map[string]int64 }
	require.NoError(t, json.Unmarshal([]byte(out), &result))
	require.EqualValues(t, 2, result.Counters["allocation.all.allocated"])
	require.EqualValues(t, 30000128, result.Counters["active_bytes.large_pool.current"])
	require.Contains(t, succeed(t, "replay", "--strategy", "caching", "--dialect", "torch", path),
		"PyTorch's num_alloc_retries")
}

func TestWrongInputOfPyTorch(t *testing.T) {
	for name, c := range map[string]struct {
		text, config, sim, want string
	}{
		"broken line": {"a 1 100\na 2\n", "{}", "{}", "t.trace:2: a lacks its size\n"},
		"unknown letter": {"a 1 100\nq 2\n", "{}", "{}",
			`t.trace:2: unknown operation "q": want one of a, b, c, d, e, f, g, m, n, o, r, s, t, w, x` + "\n"},
		"end without begin":    {"a 1 100\nn 3\n", "{}", "{}", "caching on t: event 1: end of pool 3: alloc: invalid pool\n"},
		"release of no pool":   {"x 4\n", "{}", "{}", "caching on t: event 0: release of pool 4: alloc: invalid pool\n"},
		"the default pool":     {"b 0\n", "{}", "{}", "caching on t: event 0: begin of pool 0: alloc: invalid pool\n"},
		"a share of no bound":  {"a 1 100\n", `{"memory_fraction":0.5}`, "{}", "caching: memory_fraction 0.5: "},
		"what PyTorch rejects": {"a 1 100\n", `{"conf":"max_split_size_mb:5"}`, "{}", "caching: "},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			status, _, stderr := command(t, "replay", "--strategy", "caching", "--config", c.config, "--sim", c.sim,
				"--dialect", "torch",
				"--placements", filepath.Join(dir, "p"), "--final", filepath.Join(dir, "q"), write(t, "t.trace", c.text))
			require.Equal(t, exitTrouble, status)
			require.Contains(t, stderr, c.want)
			require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %s", stderr)
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}
