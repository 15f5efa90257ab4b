package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

func TestTraceGenWritesEveryWorkload(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{
		{"w1", "--live", "20", "--pairs", "100"},
		{"w2", "--steps", "1"},
		{"w3", "--pairs", "100", "--seed", "7"},
		{"lognormal", "--live", "10", "--pairs", "100"},
		{"loguniform", "--live", "10", "--pairs", "100", "--least", "16KiB", "--most", "1MiB"},
		{"uniform", "--live", "10", "--pairs", "100", "--least", "1", "--most", "100", "--seed", "0"},
	} {
		for _, name := range []string{"t.txt", "t.trace.gz", "t.csv", "t.csv.zst"} {
			path := filepath.Join(dir, name)
			require.Empty(t, succeed(t, append(append([]string{"trace", "gen"}, args...), path)...))
			tr, err := trace.Open(path, trace.Options{})
			require.NoError(t, err)
			got, _ := tr.Header.Get("workload")
			require.Equal(t, args[0], got)
			require.Equal(t, strings.Contains(name, "csv"), tr.Header.Format == "csv")
			for i := 1; i < len(args); i += 2 {
				got, ok := tr.Header.Get(strings.TrimPrefix(args[i], "--"))
				require.True(t, ok, args[i])
				want, err := device.ParseSize(args[i+1])
				require.NoError(t, err)
				have, err := device.ParseSize(got)
				require.NoError(t, err)
				require.Equal(t, want, have, args[i])
			}
		}
	}
}

func TestTraceGenWritesToStandardOutput(t *testing.T) {
	text := succeed(t, "trace", "gen", "--live", "2", "--pairs", "1", "w1", "-")
	require.Equal(t, `# vramyard-trace 1
# name=w1-live2-pairs1
# workload=w1
# live=2
# pairs=1
# seed=42
# peak_live_bytes=93440
# workload_hash=d80d2b63793d09cd
mark fill
a 0 69120
a 1 24320
mark churn
f 0
a 0 57600
`, text)
	require.True(t, strings.HasPrefix(succeed(t, "trace", "gen", "w3", "--pairs", "1", "--to", "csv", "-"), "# format="))
}

func TestReplayReadsGeneratedTraces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w1.csv.zst")
	succeed(t, "trace", "gen", "w1", "--live", "50", "--pairs", "200", path)
	require.Contains(t, succeed(t, "replay", "--strategy", "bfc:growth", path), "w1-live50-pairs200")
}

func TestTraceGenRefusesWrongInput(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.trace")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{}, "missing workload: want one of w1, w2, w3, lognormal, loguniform, uniform"},
		{[]string{"w9", out}, `unknown workload "w9": want one of w1, `},
		{[]string{"w9", "--live", "5", out}, `unknown workload "w9"`},
		{[]string{"w1"}, "0 arguments: want"},
		{[]string{"w1", out, out}, "2 arguments: want"},
		{[]string{"w1", ""}, "want the name of a file"},
		{[]string{"w1", "--steps", "5", out}, "unknown flag: --steps"},
		{[]string{"w2", "--live", "5", out}, "unknown flag: --live"},
		{[]string{"w3", "--live", "5", out}, "unknown flag: --live"},
		{[]string{"lognormal", "--most", "5", out}, "unknown flag: --most"},
		{[]string{"w1", "--live", "many", out}, `invalid argument "many" for "--live"`},
		{[]string{"w1", "--live", "0", out}, "--live: want 1 to 16777216"},
		{[]string{"w1", "--live", "-5", out}, "--live: want 1 to 16777216"},
		{[]string{"w1", "--live", "1000000000", out}, "--live: want 1 to 16777216"},
		{[]string{"w1", "--pairs", "0", out}, "--pairs: want 1 to 67108864"},
		{[]string{"w1", "--pairs", "60000000", out}, "120001002 events: as text a trace that can be read back"},
		{[]string{"w2", "--steps", "0", out}, "--steps: want 1 to 74981"},
		{[]string{"w1", "--seed", "-1", out}, `invalid argument "-1" for "--seed"`},
		{[]string{"uniform", "--least", "16QiB", out}, `--least: size "16QiB"`},
		{[]string{"uniform", "--least", "0", out}, "--least: want 1 to 549755813888"},
		{[]string{"uniform", "--least", "1MiB", out}, "--least: want at most 16KiB"},
		{[]string{"loguniform", "--most", "3KiB", out}, "--most: want a power of two"},
		{[]string{"w1", "--to", "xml", out}, `--to: unknown form "xml"`},
	} {
		status, stdout, stderr := command(t, append([]string{"trace", "gen"}, c.args...)...)
		require.Equal(t, exitTrouble, status, "%q: %s", c.args, stderr)
		require.Empty(t, stdout)
		require.Contains(t, stderr, c.want)
		require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %s", stderr)
		require.NoFileExists(t, out)
	}
	require.NoError(t, os.WriteFile(out, []byte("kept"), 0o600))
	status, _, _ := command(t, "trace", "gen", "w1", "--live", "0", out)
	require.Equal(t, exitTrouble, status)
	kept, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Equal(t, "kept", string(kept))
}

func TestTraceGenExplainsEveryWorkload(t *testing.T) {
	help := succeed(t, "trace", "gen", "--help")
	for _, s := range workload.All() {
		require.Contains(t, help, s.Name)
		require.Contains(t, help, s.Doc)
		require.Contains(t, succeed(t, "trace", "gen", s.Name, "--help"), "--seed")
	}
}
