package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace"
)

// stepped has two steps, times and two streams.
const stepped = "a 9 1000 t=1000000000\nmark \"step 0\" t=1500000000\na 0 100 stream=1\nf 0\n" +
	"mark \"step 1\" t=2000000000\na 1 100 stream=1\na 2 50\nf 1\nmark teardown t=3000000000\nf 9\n"

func TestTraceCutTakesParts(t *testing.T) {
	path := write(t, "t.trace", stepped)
	const middle = "live 9 1000\nmark \"step 1\" t=2000000000\na 1 100 stream=1\na 2 50\nf 1\n"
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--events", "4:8"}, middle},
		{[]string{"--steps", "1:"}, middle},
		{[]string{"--steps", "1:2"}, middle},
		{[]string{"--time", "2s:3s"}, middle},
		{[]string{"--time", "1999ms:2.5s", "--stream", "0"}, "live 9 1000\nmark \"step 1\" t=2000000000\na 2 50\n"},
		{[]string{"--events", "9:"}, "live 2 50\nlive 9 1000\nf 9\n"},
		{[]string{"--events", ":1"}, "a 9 1000 t=1000000000\n"},
		{[]string{"--stream", "7"}, "mark \"step 0\" t=1500000000\nmark \"step 1\" t=2000000000\nmark teardown " +
			"t=3000000000\n"},
		{[]string{"--events", ":"}, stepped},
	} {
		out := succeed(t, append([]string{"trace", "cut", path, "-"}, c.args...)...)
		var events []string
		for _, line := range strings.SplitAfter(out, "\n") {
			if !strings.HasPrefix(line, "# ") {
				events = append(events, line)
			}
		}
		require.Equal(t, c.want, strings.Join(events, ""), "%v", c.args)
	}
}

// TestTraceCutAndInfoAgree cuts a recorded trace at its steps.
func TestTraceCutAndInfoAgree(t *testing.T) {
	out := filepath.Join(t.TempDir(), "part.trace.gz")
	succeed(t, "trace", "cut", "meta_moe_ep_train", out, "--steps", "2:4")
	var infos []trace.Info
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "trace", "info", "--json", "-", "meta_moe_ep_train", out)),
		&infos))
	require.Equal(t, 5, infos[0].Steps.Count)
	require.Equal(t, 2, infos[1].Steps.Count)
	require.Equal(t, infos[0].Peak, infos[1].Peak, "the peak lies in those steps")
	require.NotZero(t, infos[1].EndLive)
	require.Contains(t, succeed(t, "replay", "--strategy", "bfc:growth", out), "75.84 GiB")
}

func TestTraceCutRefuses(t *testing.T) {
	path := write(t, "t.trace", stepped)
	plain := write(t, "plain.trace", small)
	out := filepath.Join(t.TempDir(), "out")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{path, out}, "at least one of the flags in the group [events time steps stream] is required"},
		{[]string{path, out, "--events", "1:", "--steps", "1:"}, "none of the others can be"},
		{[]string{path}, `1 argument: want "vramyard trace cut TRACE OUT`},
		{[]string{path, out, "--events", "3"}, `--events: "3": want a range A:B`},
		{[]string{path, out, "--events", "x:3"}, `--events: "x": want a number from 0`},
		{[]string{path, out, "--events", "4:3"}, `--events: "4:3": ends before it begins`},
		{[]string{path, out, "--events", ":99"}, "events 0:99: the trace has 10"},
		{[]string{path, out, "--time", "1:2"}, `--time: "1": want a duration such as "1.5s"`},
		{[]string{path, out, "--time", "-1s:"}, `--time: "-1s": want a duration`},
		{[]string{plain, out, "--time", "1s:2s"}, "--time: the trace has no times"},
		{[]string{plain, out, "--steps", ":"}, "--steps: the trace has no marks of steps"},
		{[]string{path, out, "--steps", "1:3"}, "--steps: 1:3: want some of the steps 0:2"},
		{[]string{path, out, "--steps", "1:1"}, "--steps: 1:1: want some of the steps 0:2"},
		{[]string{path, path, "--steps", "1:"}, "vramyard: " + path + " is a file to read"},
		{[]string{path, out, "--events", ""}, `--events: "": want a range A:B`},
		{[]string{path, out, "--time", ""}, `--time: "": want a range A:B`},
		{[]string{path, out, "--steps", ""}, `--steps: "": want a range A:B`},
		{[]string{path, out, "--steps", "1:", "--to", "rmm"}, `--to: unknown form "rmm": want one of text, csv, `},
	} {
		status, stdout, stderr := command(t, append([]string{"trace", "cut"}, c.args...)...)
		require.Equal(t, exitTrouble, status, "%v: %s", c.args, stderr)
		require.Empty(t, stdout)
		require.Contains(t, stderr, c.want)
		require.NoFileExists(t, out)
	}
}

func TestTraceDiffSetsTheExitStatus(t *testing.T) {
	a, b := write(t, "a.trace", small), write(t, "b.trace", strings.Replace(small, "a 4 5000", "a 4 5001 stream=2", 1))
	require.Equal(t, "equal\n", succeed(t, "trace", "diff", a, a))
	for _, name := range []string{"copy.trace", "other.csv.zst", "third.parquet", "fourth"} {
		other := filepath.Join(t.TempDir(), name)
		succeed(t, "trace", "convert", a, other)
		require.Equal(t, "equal\n", succeed(t, "trace", "diff", a, other), name)
	}
	require.Equal(t, "equal\n", succeed(t, "trace", "diff", a, write(t, "renamed.txt", small)),
		"whatever the file is called")
	require.Equal(t, "equal\n", succeed(t, "trace", "diff", write(t, "named.trace", "# name=other\n"+small), a))
	status, stdout, stderr := command(t, "trace", "diff", a, b)
	require.Equal(t, exitFailed, status)
	require.Equal(t, "vramyard: "+a+" and "+b+" differ\n", stderr)
	require.Equal(t, "A "+a+"\nB "+b+`
first difference at event 4:
  A  a 4 5000
  B  a 4 5001 stream=2
events: A 6, B 6
allocations only in A: 1, 4.88 KiB
  event 4: id 4, 5000 bytes on stream 0
allocations only in B: 1, 4.88 KiB
  event 4: id 4, 5001 bytes on stream 2
ids: 0 only in A, 0 only in B, 1 of another size or stream
peak live: A 7.09 KiB at event 4, B 7.09 KiB at event 4
live bytes: differ from allocation or free 4 on, most at 4, by 1 B
`, stdout)
	status, stdout, _ = command(t, "trace", "diff", "--json", "-", a, b)
	require.Equal(t, exitFailed, status)
	var d trace.Diff
	require.NoError(t, json.Unmarshal([]byte(stdout), &d))
	require.False(t, d.Equal)
	require.Equal(t, 4, d.First.Index)
	status, _, stderr = command(t, "trace", "diff", "-", "-")
	require.Equal(t, exitTrouble, status)
	require.Contains(t, stderr, "standard input can be read only once")
}

// TestEveryCommandReadsForeignFormats hands a foreign file to the commands that take a trace.
func TestEveryCommandReadsForeignFormats(t *testing.T) {
	path := write(t, "log", "Thread,Time,Action,Pointer,Size,Stream\n1,00:00:00.000001,allocate,0x10,4096,0\n")
	for _, args := range [][]string{
		{"trace", "info", path}, {"compare", "--strategies", "bfc:growth", path}, {"replay", "--strategy", "buddy", path},
		{"trace", "convert", path, "-"}, {"trace", "classes", path},
	} {
		succeed(t, args...)
	}
	info := succeed(t, "trace", "info", path)
	require.Contains(t, info, "log (rmm)")
	require.Contains(t, info, "not in the file")
	require.Equal(t, "id,lower,upper,size\n0,0,1,4096\n", succeed(t, "trace", "convert", "--to", "minimalloc", path, "-"))
}
