package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/postmortem"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// binHeap is the heap of docs/strategies/bfc.md, with a last request that does not fit.
const binHeap = "a 1 2KiB\na 2 3500\na 3 1KiB\na 4 3KiB\nf 2\na 5 7KiB\na 6 256\n"

// TestBinsAreColumnsOfChunks shows the bins at the first OOM, after an event and at the end.
func TestBinsAreColumnsOfChunks(t *testing.T) {
	path := write(t, "heap.trace", binHeap)
	bins := func(more ...string) string {
		return succeed(t, append([]string{"replay", "--strategy", "bfc", "--config", `{"limit":"16KiB"}`, "--bins", "-", path},
			more...)...)
	}
	require.Equal(t, `bfc on heap after event 5, which found no memory: 2 free chunks in 21 bins; 6.00 KiB live
┌────────┬─────────────┬─────────────┬─────────────┐
│ bin    │           2 │           3 │           4 │
├────────┼─────────────┼─────────────┼─────────────┤
│ from   │    1.00 KiB │    2.00 KiB │    4.00 KiB │
│ free   │           — │ 1: 3.50 KiB │ 1: 6.50 KiB │
│ live   │ 1: 1.00 KiB │ 2: 5.00 KiB │           — │
├────────┼─────────────┼─────────────┼─────────────┤
│ chunks │             │    3.50 KiB │    6.50 KiB │
└────────┴─────────────┴─────────────┴─────────────┘
`, bins())
	require.Contains(t, bins("--at", "0"), "bfc on heap after event 0: 1 free chunk in 21 bins; 2.00 KiB live\n")
	require.Contains(t, bins("--at", "6"), "bfc on heap after event 6: 2 free chunks in 21 bins; 6.25 KiB live\n")
	require.Contains(t, bins("--stop-at-oom"), "after event 5, which found no memory")
}

func TestEqualChunksOfABinShareALine(t *testing.T) {
	path := write(t, "t.trace", "a 1 1KiB\na 2 256\na 3 1KiB\na 4 256\na 5 1280\na 6 256\nf 1\nf 3\nf 5\n")
	out := succeed(t, "replay", "--strategy", "bfc:spatial", "--config", `{"limit":"8KiB","variant":"2026","spatial":true}`,
		"--bins", "-", path)
	require.Contains(t, out, "3 free chunks in 21 bins, and 1 free chunk in none; 768 B live\n")
	require.Regexp(t, `chunks │ +│ 2 × 1\.00 KiB │`, out)
	require.Regexp(t, `│        │ +│ +1\.25 KiB │`, out)
}

// TestMemoryMapIsReadBack writes the map of every strategy after an event of a recording, and reads
// it as a trace: the same blocks are live, with their sizes and tags.
func TestMemoryMapIsReadBack(t *testing.T) {
	const at = 2000
	type block struct {
		size device.Size
		tag  string
	}
	var name string
	live := map[uint64]block{}
	for n, tr := range workload.EachRecording {
		name = n
		for i := range tr.Events[:at+1] {
			switch e := &tr.Events[i]; e.Kind {
			case trace.Alloc, trace.LiveAtStart:
				live[e.ID] = block{e.Size, tr.TagOf(e)}
			case trace.Free:
				delete(live, e.ID)
			}
		}
		break
	}
	want := map[block]int{}
	for _, b := range live {
		want[b]++
	}
	for _, strategy := range []string{"bfc:growth", "bfc:textbook", "tlsf", "vmm"} {
		file := filepath.Join(t.TempDir(), "map.pb")
		succeed(t, "replay", "--strategy", strategy, "--at", "2000", "--memory-map", file, name)
		tr, err := formats.Open(file, formats.Options{})
		require.NoError(t, err)
		part, _ := tr.Header.Get("part")
		require.Equal(t, strategy, part)
		got := map[block]int{}
		for i := range tr.Events {
			got[block{tr.Events[i].Size, tr.TagOf(&tr.Events[i])}]++
		}
		require.Equal(t, want, got, strategy)
	}
}

func TestStatesThatCannotBeShown(t *testing.T) {
	path := write(t, "heap.trace", binHeap)
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--at: needs --memory-map, --bins, --chunks, --address or --html", []string{"--at", "3"}},
		{"--at: event -2: want the number of an event, from 0 on", []string{"--at", "-2", "--bins", "-"}},
		{"--at: event 7: heap has 7 events, counted from 0", []string{"--at", "7", "--bins", "-"}},
		{"--memory-map: map.json: want a name that ends in .pb", []string{"--memory-map", "map.json"}},
		{"--memory-map", []string{"--memory-map", "-", "--bins", "-"}},
	} {
		status, _, stderr := command(t, append([]string{"replay", "--strategy", "bfc", path}, c.args...)...)
		require.Equal(t, exitTrouble, status)
		require.Contains(t, stderr, c.want)
	}
	_, err := os.Stat("map.json")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestAddressShowsOneBlock compares what a replay shows of the block at an address: sizes, ID,
// owner and neighbors.
func TestAddressShowsOneBlock(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.trace")
	require.NoError(t, os.WriteFile(file, []byte("mark \"iter 0\"\na 1 1000 tag=conv\na 2 5000 tag=relu\nf 1\n"+
		"mark \"iter 1\"\na 3 900 tag=pool\nf 2\nf 3\n"), 0o600))
	for _, strategy := range []string{"bfc", "bfc:textbook", "caching", "tlsf", "slab", "direct"} {
		out := succeed(t, "replay", "--strategy", strategy, "--at", "2", "--chunks", "-", file)
		require.Contains(t, out, `, allocation 1, step "iter 0", operation "conv", ID 1 of the trace, since event 1`, strategy)
		require.Contains(t, out, `, allocation 2, step "iter 0", operation "relu", ID 2 of the trace, since event 2`, strategy)
	}
	args := []string{"replay", "--strategy", "bfc", "--at", "5", "--address", "0x7f0000000000", "--history", "2"}
	require.Contains(t, succeed(t, append(args, file)...), `
region 0x7f0000000000
> 0x7f0000000000 live     1KiB, requested 900B, stream 0, tag 5, allocation 3, step "iter 1", `+
		`operation "pool", ID 3 of the trace, since event 5
  0x7f0000000400 live     5KiB, requested 4.88KiB, stream 0, tag 3, allocation 2, step "iter 0", `+
		`operation "relu", ID 2 of the trace, since event 2
blocks that began at the address, newest last
  event 1: requested 1000B, allocated 1KiB, allocation 1
  event 5: requested 900B, allocated 1KiB, allocation 3
`)
	result := filepath.Join(t.TempDir(), "x.json")
	succeed(t, append(args, "--chunks", result, file)...)
	text, err := os.ReadFile(result)
	require.NoError(t, err)
	var v postmortem.Instant
	require.NoError(t, json.Unmarshal(text, &v))
	require.Equal(t, postmortem.InstantSchema, v.Schema)
	require.Equal(t, 5, v.Event)
	require.Len(t, v.Chunks, 2)
	require.True(t, v.Chunks[0].Asked)
	require.EqualValues(t, []uint64{900, 1024, 3},
		[]uint64{uint64(v.Chunks[0].Requested), uint64(v.Chunks[0].Allocated), v.Chunks[0].ID})
	require.Len(t, v.History, 2)
	for want, wrong := range map[string][]string{
		`--address: "here": want an address such as 0x7f0000000000`: {"--address", "here"},
		"--history: needs --address":                                {"--history", "1"},
		"event 7: no chunk contains address 0x10":                   {"--address", "0x10"},
	} {
		_, _, stderr := command(t, append(append([]string{"replay", "--strategy", "bfc"}, wrong...), file)...)
		require.Contains(t, stderr, want)
	}
}
