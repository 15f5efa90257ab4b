package cli

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace/torch"
)

// TestExports writes both forms of one replay, compressed and plain.
func TestExports(t *testing.T) {
	trace := write(t, "run.trace", small)
	dir := t.TempDir()
	plain, packed := filepath.Join(dir, "run.pickle"), filepath.Join(dir, "run.pickle.gz")
	picture := filepath.Join(dir, "run.json.gz")
	table := succeed(t, "replay", "--strategy", "bfc", "--snapshot", plain, "--perfetto", picture, trace)
	require.Contains(t, table, "peak reserved")
	succeed(t, "replay", "--strategy", "bfc", "--snapshot", packed, trace)

	bare, err := os.ReadFile(plain)
	require.NoError(t, err)
	s, err := torch.Read(strings.NewReader(string(bare)), nil)
	require.NoError(t, err)
	require.Equal(t, 8+1, s.Devices[0].History.Len(), "four requests, two frees, one segment")
	require.Equal(t, bare, unzipped(t, packed))
	var p struct{ TraceEvents []json.RawMessage }
	require.NoError(t, json.Unmarshal(unzipped(t, picture), &p))
	require.NotEmpty(t, p.TraceEvents)
	require.JSONEq(t, string(unzipped(t, picture)), succeed(t, "replay", "--strategy", "bfc", "--perfetto", "-", trace))
}

// unzipped returns what is in a file that gzip has compressed.
func unzipped(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	content, err := io.ReadAll(z)
	require.NoError(t, err)
	return content
}

func TestWrongExports(t *testing.T) {
	good := write(t, "good.trace", small)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"ending of another form", []string{"--snapshot", at("x.json")}, "--snapshot: " + at("x.json") +
			": want a name that ends in one of .pickle,"},
		{"ending of another packer", []string{"--snapshot", at("x.pickle.bz2")}, "want a name that ends in"},
		{"a packer that the viewer lacks", []string{"--perfetto", at("x.json.zst")}, "--perfetto: " + at("x.json.zst") +
			": want a name that ends in one of .json, .json.gz"},
		{"two in one file", []string{"--snapshot", at("x"), "--perfetto", at("x")}, "--perfetto: " + at("x") +
			" is where --snapshot is written"},
		{"two on one stream", []string{"--snapshot", "-", "--json", "-"}, "--snapshot: - is where --json is written"},
		{"over the trace", []string{"--snapshot", good}, "is a file to read"},
		{"no such folder", []string{"--perfetto", at("y/x.json")}, "no such file or directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, stdout, stderr := command(t, append([]string{"replay", "--strategy", "bfc", good}, c.args...)...)
			require.Equal(t, exitTrouble, status)
			require.Empty(t, stdout)
			require.Contains(t, stderr, c.want)
			require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
			files, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, files)
		})
	}
	status, _, stderr := command(t, "replay", "--strategy", "bfc", good, "--snapshot")
	require.Equal(t, exitTrouble, status)
	require.Contains(t, stderr, "flag needs an argument")

	var many strings.Builder // regions a TiB apart, up to addresses that the viewer does not have
	for i := range 8200 {
		fmt.Fprintf(&many, "a %d 4096\n", i)
	}
	status, _, stderr = command(t, "replay", "--strategy", "slab", "--config", `{"max_class_bytes":"256"}`,
		"--sim", `{"gap":"1TiB"}`, "--snapshot", at("x.pickle"), "--placements", at("x.txt"),
		write(t, "many.trace", many.String()))
	require.Equal(t, exitTrouble, status)
	require.Contains(t, stderr, "--snapshot: address 0x")
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, files)
}

// TestStopAtOOMEndsTheReplay has a request refused in the middle.
func TestStopAtOOMEndsTheReplay(t *testing.T) {
	path := write(t, "t.trace", "a 1 30MiB\na 2 40MiB\na 3 1MiB\n")
	args := []string{"replay", "--strategy", "caching", "--device", "sim:64MiB", "--json", "-", path}
	require.Contains(t, succeed(t, args...), `"stopped": false`)
	snapshot := filepath.Join(t.TempDir(), "s.pickle")
	require.Contains(t, succeed(t, append(args, "--stop-at-oom", "--snapshot", snapshot)...), `"stopped": true`)
	require.Contains(t, succeed(t, "trace", "info", snapshot), "1 alloc, 1 refused")
	require.Contains(t, succeed(t, "replay", "--strategy", "caching", "--device", "sim:64MiB", "--contents",
		"--stop-at-oom", path),
		"every block kept its contents through 2 events")
	status, _, stderr := command(t, "replay", "--strategy", "caching", "--check", "--stop-at-oom", path)
	require.Equal(t, exitTrouble, status)
	require.Contains(t, stderr, "check stop-at-oom")
}

// TestExamplePageQuotesItsOutput holds examples/oom/README.md to the commands that it
// names.
func TestExamplePageQuotesItsOutput(t *testing.T) {
	const dir = "../examples/oom/"
	page, err := os.ReadFile(dir + "README.md")
	require.NoError(t, err)
	words := strings.Join(strings.Fields(string(page)), " ")
	info, verified := succeed(t, "trace", "info", dir+"chat.pickle.gz"), succeed(t, "verify", dir+"chat.pickle.gz")
	told := strings.Join(strings.FieldsFunc(info+verified, func(r rune) bool { return r == '│' || unicode.IsSpace(r) }),
		" ")
	for _, fact := range []string{"14.03 GiB", "2563837952 bytes free in 153 blocks",
		"2704 of 2704 allocations predicted, and 130 of 130 new segments"} {
		require.Contains(t, words, fact)
		require.Contains(t, told, fact)
	}
	require.Contains(t, told, "2563837952 of them beside blocks in use", "all of them")
	require.Contains(t, words, "15.05 GiB")
	require.Contains(t, succeed(t, "trace", "info", dir+"chat.trace.gz"), "15.05 GiB")
}
