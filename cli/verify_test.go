package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/study/verify"
)

// A recording of two allocations in a segment that was there, and one in a new one.
const (
	recordedCSV = `# name=run
seq,op,id,bytes,stream,time_us,tag
0,a,0,700,0,0,preexisting:unknown
1,a,1,512,0,1,x
2,f,0,700,0,2,
3,a,2,3000000,0,3,x
`
	recordedAddr = `what,seq,address,bytes
alloc,0,2097664,700
initial_segment,,2097152,2097152
alloc,1,2097152,512
segment_alloc,3,20971520,20971520
alloc,3,20971520,3000000
`
)

// tiesTrace leaves free blocks of one size, of which one lies in an older segment or was created
// earlier, and the other one has the lower address.
const tiesTrace = `a 1 30MiB
a 2 1MiB
a 3 1MiB
f 1
trim
a 4 1MiB
a 5 512KiB
f 2
f 4
a 6 1MiB
a 7 1MiB
a 11 512KiB stream=1
a 12 512KiB stream=1
a 13 512KiB stream=1
a 14 256KiB stream=1
f 11
f 12
a 15 512KiB stream=1
a 16 512KiB stream=1
f 15
f 13
a 17 512KiB stream=1
`

func TestVerify(t *testing.T) {
	requests, addresses := write(t, "run.csv", recordedCSV), write(t, "run.addr", recordedAddr)
	file := filepath.Join(t.TempDir(), "r.json")
	out := succeed(t, "verify", requests, "--addresses", addresses, "--json", file)
	_, rest, ok := strings.Cut(out, "\n")
	require.True(t, ok)
	require.Equal(t, `2 of 2 allocations predicted, and 1 of 1 new segments
opening state: 1 live blocks, 2.00 MiB reserved
peak reserved: 22.00 MiB (23068672 bytes), recorded 22.00 MiB (23068672 bytes)
`, rest)
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	var r verify.Result
	require.NoError(t, json.Unmarshal(raw, &r))
	require.Equal(t, verify.Schema, r.Schema)
	require.Equal(t, provenance.Read(), r.Provenance)
	require.Equal(t, "caching", r.Strategy)
	require.Contains(t, string(r.Config), `"rules": "2.11"`)
	require.True(t, r.All())
	require.Nil(t, r.First)
	require.EqualValues(t, 23068672, r.Reserved)
	require.Len(t, r.Addresses, 64)
}

// TestVerifyFindsTheRelease verifies snapshots, which do not record the release: the rules that
// predict one best made it.
func TestVerifyFindsTheRelease(t *testing.T) {
	requests := write(t, "ties.trace", tiesTrace)
	for rules, strategy := range map[string]string{"2.11": "caching", "2.12": "caching:2.12", "2.13": "caching:2.13"} {
		snapshot, file := filepath.Join(t.TempDir(), "s.pickle"), filepath.Join(t.TempDir(), "r.json")
		succeed(t, "replay", "--strategy", strategy, "--snapshot", snapshot, requests)
		succeed(t, "verify", snapshot, "--json", file)
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		var r verify.Result
		require.NoError(t, json.Unmarshal(raw, &r))
		require.True(t, r.All())
		require.Contains(t, string(r.Config), `"rules": "`+rules+`"`)
	}
}

func TestVerifyReportsTheFirstDisagreement(t *testing.T) {
	requests := write(t, "run.csv", recordedCSV)
	addresses := write(t, "run.addr", strings.Replace(recordedAddr, "alloc,1,2097152", "alloc,1,2098688", 1))
	status, stdout, stderr := command(t, "verify", requests, "--addresses", addresses)
	require.Equal(t, exitFailed, status)
	require.Contains(t, stdout, "1 of 2 allocations predicted, and 1 of 1 new segments\n")
	require.Contains(t, stdout, "first disagreement: event 1, allocation 1 of 512 bytes on stream 0: predicted the "+
		"block at 0x200000, recorded the block at 0x200600\n")
	require.Equal(t, "vramyard: run: 1 of 2 allocations are not predicted\n", stderr)

	status, stdout, stderr = command(t, "verify", requests, "--addresses", addresses, "--json", "-")
	require.Equal(t, exitFailed, status, stderr)
	var r verify.Result
	require.NoError(t, json.Unmarshal([]byte(stdout), &r), "nothing but JSON")
	require.NotNil(t, r.First)

	// Settings that the recorded heap cannot have come from end the matter early.
	_, stdout, _ = command(t, "verify", requests, "--addresses", addresses, "--config",
		`{"conf":"roundup_power2_divisions:4"}`)
	require.Contains(t, stdout, "first disagreement: event 1")
}

func TestVerifyRefuses(t *testing.T) {
	requests, addresses := write(t, "run.csv", recordedCSV), write(t, "run.addr", recordedAddr)
	missing := filepath.Join(t.TempDir(), "missing.addr")
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"no addresses", []string{requests}, requests + ": is no snapshot of PyTorch: a trace needs --addresses"},
		{"no snapshot", []string{missing}, missing + ": no such file or directory"},
		{"a folder as a snapshot", []string{filepath.Dir(missing)}, "is a directory"},
		{"a device beside addresses", []string{requests, "--addresses", addresses, "--part", "cuda:0"},
			"--part: --addresses is for one device"},
		{"a snapshot without history", []string{vector("state_only")}, "state_only: the snapshot has no history of " +
			"allocations to predict"},
		{"another device", []string{vector("full"), "--part", "cuda:1"},
			`--part: full has no history of "cuda:1": want cuda:0`},
		{"a bad setting of a snapshot", []string{vector("full"), "--config", `{"conf":"x"}`}, "full: settings: "},
		{"no JSON for a snapshot", []string{vector("full"), "--config", `[`}, "want a JSON object, such as "},
		{"no trace", []string{"--addresses", addresses}, "0 arguments: want"},
		{"missing addresses", []string{requests, "--addresses", missing}, missing + ": no such file or directory"},
		{"missing trace", []string{missing, "--addresses", addresses}, missing + ": no such file or directory"},
		{"a folder", []string{requests, "--addresses", filepath.Dir(missing)}, "is a directory"},
		{"the trace as addresses", []string{requests, "--addresses", requests}, requests + ":1: want the header line " +
			"what,seq,address,bytes"},
		{"addresses as the trace", []string{addresses, "--addresses", addresses},
			addresses + `: begins with "what,seq,address`},
		{"standard input twice", []string{"-", "--addresses", "-"}, "standard input can be read only once"},
		{"empty standard input", []string{requests, "--addresses", "-"}, "stdin:1: want the header line"},
		{"output over the input", []string{requests, "--addresses", addresses, "--json", addresses}, "--json: " + addresses +
			" is a file to read"},
		{"unknown field", []string{requests, "--addresses", addresses, "--config", `{"cnf":""}`}, `unknown field "cnf"`},
		{"unknown setting", []string{requests, "--addresses", addresses, "--config", `{"conf":"max_split:3"}`}, "max_split"},
		{"segments that grow", []string{requests, "--addresses", addresses, "--config",
			`{"conf":"expandable_segments:True"}`}, "on the recorded heap: caching: opening state: the segment at"},
		{"a share of a card", []string{requests, "--addresses", addresses, "--config", `{"memory_fraction":0.5}`},
			"on the recorded heap: caching: memory_fraction"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, stdout, stderr := command(t, append([]string{"verify"}, c.args...)...)
			require.Equal(t, exitTrouble, status, stderr)
			require.Empty(t, stdout)
			require.Contains(t, stderr, c.want)
			require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %s", stderr)
		})
	}
}

// vector returns a snapshot of a program of which everything is known.
func vector(name string) string {
	return "../harness/trace/torch/testdata/vectors/" + name + ".pickle.xz"
}

func TestVerifySnapshot(t *testing.T) {
	out := succeed(t, "verify", vector("segment_free"))
	_, rest, _ := strings.Cut(out, "\n")
	require.Equal(t, `176 of 176 allocations predicted, and 134 of 134 new segments
opening state: 0 live blocks, 0 B reserved
peak reserved: 1.00 GiB (1073741824 bytes), recorded 1.00 GiB (1073741824 bytes)
`, rest)

	var r verify.Result
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "verify", vector("segment_free"), "--json", "-")), &r))
	require.Contains(t, string(r.Config), "max_split_size_mb:64", "as recorded")
	require.Equal(t, "segment_free", r.Trace)
	require.Len(t, r.TraceHash, 64)
	require.Empty(t, r.Addresses)

	// Other settings than the recorded ones predict less.
	status, out, errs := command(t, "verify", vector("segment_free"), "--config", `{"conf":""}`)
	require.Equal(t, exitFailed, status)
	require.Contains(t, out, "first disagreement: event ")
	require.Contains(t, errs, "of 176 allocations are not predicted\n")
}

// twoGPUs is a snapshot of two devices, the second of which cannot have been.
const twoGPUs = `{"segments":[
{"device":0,"address":4194304,"total_size":2097152,"stream":0,"segment_type":"small","blocks":[
 {"address":4194304,"size":512,"requested_size":9,"state":"active_allocated"},{"address":4194816,"size":2096640,"requested_size":0,"state":"inactive"}]},
{"device":1,"address":4194304,"total_size":2097152,"stream":0,"segment_type":"small","blocks":[
 {"address":4194304,"size":1024,"requested_size":8,"state":"inactive"},{"address":4195328,"size":512,"requested_size":8,"state":"active_allocated"},
 {"address":4195840,"size":2095616,"requested_size":0,"state":"inactive"}]}],
"device_traces":[[{"action":"alloc","addr":4194304,"size":9,"stream":0}],
[{"action":"free_completed","addr":4194304,"size":9,"stream":0},{"action":"alloc","addr":4195328,"size":8,"stream":0},
{"action":"free_requested","addr":4195840,"size":8,"stream":0}]]}`

func TestVerifySnapshotOfTwoDevices(t *testing.T) {
	path := write(t, "two.json", twoGPUs)
	status, out, errs := command(t, "verify", path)
	require.Equal(t, exitFailed, status)
	require.Contains(t, out, "caching on two cuda:0, ")
	require.Contains(t, out, "caching on two cuda:1, ")
	require.Contains(t, out, "two cuda:1: 1 allocations that are live at the end without a final block; the first at "+
		"0x400600 in the final state\n")
	require.Equal(t, "vramyard: two cuda:1: 1 of 1 allocations are not predicted\n", errs)

	out = succeed(t, "verify", path, "--part", "cuda:0")
	require.NotContains(t, out, "cuda:1")
	_, _, errs = command(t, "verify", path, "--json", "-")
	require.Equal(t, "vramyard: --json: two has several devices with a history: name one with --part\n", errs)
}

// TestSnapshotsAreTraces has commands that take a trace take a snapshot.
func TestSnapshotsAreTraces(t *testing.T) {
	out := succeed(t, "replay", "--strategy", "caching", vector("mid_start"))
	require.Contains(t, out, "caching on mid_start")
	require.Contains(t, succeed(t, "trace", "info", vector("private_pool")), "opening_live")
	text := filepath.Join(t.TempDir(), "t.trace")
	succeed(t, "trace", "convert", vector("segment_free"), text)
	require.Contains(t, succeed(t, "trace", "info", text), "max_split_size_mb")
}

// TestVerifySnapshots goes through snapshots of real programs that are not ours to ship.
func TestVerifySnapshots(t *testing.T) {
	const variable = "VRAMYARD_SNAPSHOTS"
	dir := os.Getenv(variable)
	if dir == "" {
		t.Skip(variable + " names no folder of snapshots")
	}
	allocs, predicted := 0, 0
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".pickle.xz") {
			return err
		}
		var r verify.Result
		_, out, errs := command(t, "verify", path, "--json", "-")
		if strings.Contains(errs, "has no history") {
			t.Log(strings.TrimSpace(errs))
			return nil
		}
		require.NoError(t, json.Unmarshal([]byte(out), &r), errs)
		t.Logf("%s: %d of %d allocations, %d of %d segments; peak reserved %d, recorded %d",
			r.Trace, r.Predicted, r.Allocs, r.PredictedSegments, r.Segments, r.Reserved, r.Recorded)
		require.True(t, r.All(), "%v %s", r.First, r.Stopped)
		require.Equal(t, r.Recorded, r.Reserved)
		allocs, predicted = allocs+r.Allocs, predicted+r.Predicted
		return nil
	}))
	t.Logf("%d of %d in all", predicted, allocs)
}

// TestVerifyRecordings goes through the recordings of a folder that are not ours to ship.
func TestVerifyRecordings(t *testing.T) {
	const variable = "VRAMYARD_HISTORIES"
	dir := os.Getenv(variable)
	if dir == "" {
		t.Skip(variable + " names no folder of recordings X.csv.gz and X.addr.gz")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.addr.gz"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	allocs, predicted := 0, 0
	for _, file := range files {
		var r verify.Result
		_, out, errs := command(t, "verify", strings.TrimSuffix(file, ".addr.gz")+".csv.gz", "--addresses", file,
			"--json", "-")
		require.NoError(t, json.Unmarshal([]byte(out), &r), errs)
		t.Logf("%s: %d of %d allocations, %d of %d segments; peak reserved %d, recorded %d",
			r.Trace, r.Predicted, r.Allocs, r.PredictedSegments, r.Segments, r.Reserved, r.Recorded)
		require.True(t, r.All(), "%v %s", r.First, r.Stopped)
		require.Equal(t, r.Recorded, r.Reserved)
		allocs, predicted = allocs+r.Allocs, predicted+r.Predicted
	}
	t.Logf("%d of %d in all", predicted, allocs)
}
