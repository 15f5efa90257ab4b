package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/remat/grid"
)

// stepOf writes the log of a small step at a batch size and returns its path.
func stepOf(t *testing.T, batch string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "b"+batch+".log")
	n := strings.Repeat("0", 6) // bytes and nanoseconds are a million times the batch size
	text := `{"INSTRUCTION":"ANNOTATE","ANNOTATION":"START"}` + "\n"
	for i, arg := range []string{"", `"t0"`, `"t1"`, `"t2","t0"`} {
		name := string(rune('0' + i))
		text += `{"INSTRUCTION":"CALL","NAME":"f","RESULT":["t` + name + `"],"ARGS":[` + arg + `],` +
			`"TIME":"` + batch + n + `"}` + "\n" +
			`{"INSTRUCTION":"MEMORY","NAME":"t` + name + `","MEMORY":"` + batch + n + `"}` + "\n" +
			`{"INSTRUCTION":"ALIAS","NAME":"t` + name + `","ALIAS":"-1"}` + "\n"
	}
	for _, name := range []string{"t0", "t1", "t2"} {
		text += `{"INSTRUCTION":"RELEASE","NAME":"` + name + `"}` + "\n"
	}
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

func TestRematFindsTheLargestBatch(t *testing.T) {
	asJSON := filepath.Join(t.TempDir(), "fits.json")
	out := succeed(t, "remat", "--batch", "2:90", "--budgets", "64MiB,1GiB", "--strategies", "bestfit",
		"--heuristics", "eq", "--ladders", "none", "--json", asJSON,
		"4="+stepOf(t, "4"), "8="+stepOf(t, "8"), "6="+stepOf(t, "6"))
	require.True(t, strings.HasPrefix(out, "Within 64.00 MiB the program completes with batch sizes up to 16 "+
		"without eviction, and up to 22 with it: bestfit by eq (ladder none), in 1.000 × the time of its operators.\n"+
		"Within 1.00 GiB the program completes with batch sizes up to 90, the end of the range, without eviction.\n"), out)
	require.Contains(t, out, "on a line through batch sizes 4 (b4) and 8 (b8)\n"+
		"error at batch size 6, recorded too: bytes 0.0 %; times 0.0 % operator by operator, +0.0 % in sum\n")
	require.Contains(t, out, "│ bestfit  │ none   │        ≥ 90 │ ≥ 90 (1.000) │")
	raw, err := os.ReadFile(asJSON)
	require.NoError(t, err)
	var r grid.BatchReport
	require.NoError(t, json.Unmarshal(raw, &r))
	require.Equal(t, grid.BatchSchema, r.Schema)
	require.Len(t, r.Fits, 2*2*2)
	require.Equal(t, 16, *r.Fits[0].EveryUpTo)

	out = succeed(t, "remat", "--batch", "50:60", "--budgets", "64MiB", "--strategies", "counting", "--heuristics", "eq",
		"4="+stepOf(t, "4"), "8="+stepOf(t, "8"))
	require.Contains(t, out, "Within 64.00 MiB batch size 50 does not complete.\n")
	require.Contains(t, out, "; a third recording would show the error\n")
	require.Contains(t, out, "│ < 50 │")
}

func TestRematRefusesBatches(t *testing.T) {
	a, b := stepOf(t, "4"), stepOf(t, "8")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--batch", "2:90", "--budgets", "1GiB", a, "8=" + b},
			"b4.log: want BATCH=FILE with --batch, such as 4=step.log.gz"},
		{[]string{"--batch", "2:90", "--budgets", "1GiB", "0=" + a}, "want BATCH=FILE with --batch"},
		{[]string{"--batch", "90:2", "--budgets", "1GiB", "4=" + a, "8=" + b},
			`--batch: range "90:2": want FROM:TO or FROM:TO:STEP`},
		{[]string{"--batch", "2:90", "4=" + a, "8=" + b}, "--budgets: with --batch want sizes, such as 11GiB"},
		{[]string{"--batch", "2:90", "--budgets", "0.5", "4=" + a, "8=" + b}, `--budgets: "0.5": with --batch want sizes`},
		{[]string{"--batch", "2:90", "--budgets", "1GiB", "4=" + a}, "one recording: want logs of at least " +
			"two batch sizes, since a log does not record which tensors grow with the batch"},
		{[]string{"--batch", "2:90", "--budgets", "1GiB", "4=" + a, "4=" + b}, "batch size 4 is given twice"},
		{[]string{"--batch", "2:90", "--budgets", "1GiB", "4=" + a, "8=" + unet},
			"the logs of batch sizes 4 and 8 are of different programs: after 0 operators"},
		{[]string{"--batch", "2:90", "--budgets", "1GiB", "--html", "a.html", "4=" + a, "8=" + b},
			"--html: want no --batch beside it"},
	} {
		status, _, stderr := command(t, append([]string{"remat"}, c.args...)...)
		require.Equal(t, exitTrouble, status)
		require.Contains(t, stderr, c.want)
	}
}

// TestRematPageAnswersTheBatch runs the command of the page.
func TestRematPageAnswersTheBatch(t *testing.T) {
	raw, err := os.ReadFile("../docs/remat.md")
	require.NoError(t, err)
	page := string(raw)
	_, after, found := strings.Cut(page, "<!-- batch answer: begin -->\n> ")
	require.True(t, found)
	answer, _, found := strings.Cut(after, "<!-- batch answer: end -->")
	require.True(t, found)
	_, after, found = strings.Cut(page, "\nvramyard remat --batch ")
	require.True(t, found)
	line, _, found := strings.Cut(after, "\n```")
	require.True(t, found)
	line = strings.ReplaceAll(strings.ReplaceAll(line, "\\\n", ""), "=examples/", "=../examples/")
	out := succeed(t, append([]string{"remat", "--batch"}, strings.Fields(line)...)...)
	first, _, _ := strings.Cut(out, "\n")
	require.Equal(t, strings.TrimSpace(answer), first)
}
