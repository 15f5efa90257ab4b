package cli

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace"
)

const servingLog = "TIMESTAMP,ContextTokens,GeneratedTokens\n" +
	"2024-05-10 00:00:00.009930+00:00,50,2\n2024-05-10 00:00:00+00:00,20,3\n2024-05-10 00:00:07+00:00,8000,1\n"

// writeServingLog writes a log, compressed, and returns its name.
func writeServingLog(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log.csv.gz")
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write([]byte(servingLog))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	require.NoError(t, os.WriteFile(path, packed.Bytes(), 0o600))
	return path
}

func TestTraceGenServingWritesATrace(t *testing.T) {
	log := writeServingLog(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "name=serving-llama2-7b-paged requests=3 shortened_requests=1 peak_requests=2 iterations=5 context=4096 " +
			"batch=256 kv_memory_bytes=63832580096"},
		{[]string{"--model", "llama3-8b", "--kv", "reserve"}, "name=serving-llama3-8b-reserve context=8192 " +
			"shortened_requests=0"},
		{[]string{"--kv", "concat", "--kv-memory", "40MiB", "--context", "60", "--batch", "1"},
			"name=serving-llama2-7b-concat context=60 batch=1 peak_requests=1 kv_memory_bytes=41943040 shortened_requests=1"},
		{[]string{"--requests", "2"}, "requests=2 shortened_requests=0"},
		{[]string{"--requests", "0", "--duration", "5s"}, "requests=2 shortened_requests=0"},
		{[]string{"--speed", "1000"}, "speed=1000 peak_requests=3"},
	} {
		out := filepath.Join(t.TempDir(), "out.csv.zst")
		require.Empty(t, succeed(t, append(append([]string{"trace", "gen", "serving"}, c.args...), log, out)...))
		tr, err := trace.Open(out, trace.Options{})
		require.NoError(t, err)
		for pair := range strings.FieldsSeq(c.want + " workload=serving log=azure") {
			key, want, _ := strings.Cut(pair, "=")
			got, _ := tr.Header.Get(key)
			if key == "name" {
				got = tr.Header.Name
			}
			require.Equal(t, want, got, "%q: %s", c.args, key)
		}
	}
}

func TestReplayReadsServingTraces(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.parquet")
	succeed(t, "trace", "gen", "serving", writeServingLog(t), out)
	require.Contains(t, succeed(t, "replay", "--strategy", "caching", out), "serving-llama2-7b-paged")
}

func TestTraceGenServingRefusesWrongInput(t *testing.T) {
	log := writeServingLog(t)
	out := filepath.Join(t.TempDir(), "out.trace")
	wrong := filepath.Join(t.TempDir(), "wrong.csv")
	require.NoError(t, os.WriteFile(wrong, []byte(servingLog+"tomorrow,1,1\n"), 0o600))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{log}, "1 argument: want"},
		{[]string{"absent.csv", out}, "absent.csv: no such file"},
		{[]string{log, log}, "is a file to read"},
		{[]string{wrong, out}, wrong + `:5: TIMESTAMP "tomorrow": want a time such as`},
		{[]string{"-", out}, `stdin:1: header "": want the columns`},
		{[]string{"--model", "gpt-4", log, out}, `--model: unknown model "gpt-4": want one of llama2-7b, llama2-70b,`},
		{[]string{"--kv", "page", log, out}, `--kv: unknown layout "page"`},
		{[]string{"--kv-memory", "0", log, out}, "--kv-memory: want at least 1"},
		{[]string{"--kv-memory", "lots", log, out}, `--kv-memory: size "lots"`},
		{[]string{"--kv-memory", "1MiB", log, out}, "--kv-memory: 1MiB: want at least 2GiB, the KV cache of"},
		{[]string{"--context", "5000", log, out}, "--context: want 2 to 4096"},
		{[]string{"--batch", "0", log, out}, "--batch: want 1 to 65536"},
		{[]string{"--speed", "-1", log, out}, "--speed: want 0.01 to 10000"},
		{[]string{"--requests", "-1", log, out}, `invalid argument "-1" for "--requests"`},
		{[]string{"--requests", "4294967296", log, out}, `invalid argument "4294967296" for "--requests"`},
		{[]string{"--duration", "-1s", log, out}, "--duration: want 0 or more"},
		{[]string{"--to", "xml", log, out}, `--to: unknown form "xml"`},
	} {
		status, stdout, stderr := command(t, append([]string{"trace", "gen", "serving"}, c.args...)...)
		require.Equal(t, exitTrouble, status, "%q: %s", c.args, stderr)
		require.Empty(t, stdout)
		require.Contains(t, stderr, c.want)
		require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %s", stderr)
		require.NoFileExists(t, out)
	}
}
