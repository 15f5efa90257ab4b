package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/replay"
)

// TestRetryShowsWhatWaitingChanges replays the trace of docs/strategies/bfc.md with its two
// threads, and as one thread.
func TestRetryShowsWhatWaitingChanges(t *testing.T) {
	path := write(t, "wait.trace",
		"a 1 12KiB thread=1 t=0\na 2 8KiB thread=2 t=1000000\nf 2 t=2000000\nf 1 t=3001000000\n")
	file := filepath.Join(t.TempDir(), "r.json")
	args := []string{"replay", "--strategy", "bfc", "--config", `{"limit":"16KiB"}`, "--retry", "10s", "--json", file, path}
	page, err := os.ReadFile("../docs/strategies/bfc.md")
	require.NoError(t, err)
	shown := "waiting up to 10s, 2 threads: 1 request found no memory at first, 1 granted in the end, 0 refused\n" +
		"they waited 3s in all, the longest 3s\n"
	require.Contains(t, succeed(t, args...), shown)
	require.Contains(t, string(page), shown)
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	var r struct {
		OOMs  uint64       `json:"oom_count"`
		Waits replay.Waits `json:"waits"`
	}
	require.NoError(t, json.Unmarshal(raw, &r))
	require.EqualValues(t, 1, r.OOMs, "the count without waiting")
	require.EqualValues(t, 1, r.Waits.Served)
	require.Contains(t, succeed(t, append(args, "--threads", "1")...), "1 thread: 1 request found no memory at first, "+
		"0 granted in the end, 1 refused\nthey waited 10s in all, the longest 10s\n")

	untimed := write(t, "untimed.trace", "a 1 1KiB\nf 1\n")
	require.Contains(t, succeed(t, "replay", "--strategy", "bfc", "--retry", "1s", untimed),
		"0 requests found no memory at first, 0 granted in the end, 0 refused\nthe trace has no times: ")
}

func TestWrongRetriesAreRefused(t *testing.T) {
	path := write(t, "t.trace", "a 1 1KiB\nuse 1 7\n")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--threads: needs --retry", []string{"--threads", "2"}},
		{"--threads: -2: want a number from 0 on", []string{"--retry", "1s", "--threads", "-2"}},
		{"--retry: -1s: want a time of at least 0", []string{"--retry", "-1s"}},
		{"--retry: event 1: use: threads wait in traces of requests, frees and frontiers only", []string{"--retry", "1s"}},
	} {
		status, _, stderr := command(t, append([]string{"replay", "--strategy", "bfc", path}, c.args...)...)
		require.Equal(t, exitTrouble, status)
		require.Contains(t, stderr, c.want)
	}
}
