package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/study/stats"
	"github.com/vramyard/vramyard/harness/trace/flat"
	"github.com/vramyard/vramyard/harness/trace/parquet"
)

// TestFilesTakeBoundedMemory gives every command that reads files one that needs more than --memory
// allows.
func TestFilesTakeBoundedMemory(t *testing.T) {
	trace := write(t, "t.trace", strings.Repeat("a 1 1\nf 1\n", 10_000))
	result := write(t, "r.json", `{"schema":"vramyard-compare/1","runs":[`+strings.Repeat("0,", 10_000)+"0]}")
	history := write(t, "s.json", `{"segments":[],"device_traces":[[`+
		strings.Repeat(`{"action":"alloc","addr":0,"size":1,"stream":0},`, 20_000)+
		`{"action":"alloc","addr":0,"size":1,"stream":0}]]}`)
	var log strings.Builder
	log.WriteString(`{"INSTRUCTION":"ANNOTATE","ANNOTATION":"START"}` + "\n")
	for i := range 10_000 {
		fmt.Fprintf(&log, `{"INSTRUCTION":"CONSTANT","NAME":"x%d"}`+"\n"+`{"INSTRUCTION":"MEMORY","NAME":"x%d","MEMORY":"1"}`+
			"\n", i, i)
	}
	log.WriteByte('\n')
	var table bytes.Buffer
	require.NoError(t, parquet.WriteTable(&table, flat.Of(make([]stats.Row, 10_000))))
	out := t.TempDir() + "/"
	small := write(t, "small.trace", "a 1 1\n")
	for _, args := range [][]string{
		{"compare", trace},
		{"replay", "--strategy", "bfc", trace},
		{"replay", "--strategy", "bfc", "--check", trace},
		{"whatif", trace},
		{"tune", "--strategy", "bfc", trace},
		{"offline", trace},
		{"view", "--no-browser", "--for", "1m", trace},
		{"trace", "info", trace},
		{"trace", "convert", trace, out + "a.csv"},
		{"trace", "cut", trace, out + "a.trace", "--events", "0:1"},
		{"trace", "diff", small, trace},
		{"trace", "classes", trace},
		{"top", trace},
		{"verify", history},
		{"verify", "--addresses", write(t, "a.addr", "what,seq,address,bytes\n"+
			strings.Repeat("initial_segment,,2097152,2097152\n", 10_000)), small},
		{"remat", write(t, "r.log", log.String())},
		{"diff", result, result},
		{"stats", write(t, "s.parquet", table.String())},
		{"plot", "--out", out + "a.svg", result},
	} {
		status, stdout, stderr := command(t, append(args, "--memory", "1MiB")...)
		require.Equal(t, exitTrouble, status, "%v: %s%s", args, stdout, stderr)
		require.Contains(t, stderr, "takes more than 1MiB of memory: --memory 2MiB allows twice as much\n", "%v", args)
		_, said, _ := strings.Cut(stderr, "vramyard: ")
		require.Equal(t, 1, strings.Count(said, "\n"), stderr)
	}
	succeed(t, "trace", "info", "--memory", "64MiB", trace)
	for value, want := range map[string]string{
		"1KiB": "1KiB: want at least 1MiB, such as 4GiB", "much": `size "much"`,
	} {
		status, _, stderr := command(t, "trace", "info", "--memory", value, small)
		require.Equal(t, exitTrouble, status)
		require.Contains(t, stderr, want)
	}
}
