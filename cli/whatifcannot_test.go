package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/harness/trace/torch"
)

// filteredSnapshot writes a snapshot without the entries of its n that keep rejects.
func filteredSnapshot(t *testing.T, path string, keep func(n, i int, e torch.Entry) bool) string {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	s, _, err := formats.ReadSnapshot(f, "run", formats.Options{})
	require.NoError(t, err)
	whole := s.Devices[0].History
	kept := torch.History{Streams: whole.Streams, Pools: whole.Pools}
	for i := range whole.Len() {
		if e := whole.At(i); keep(whole.Len(), i, e) {
			kept.Append(e)
		}
	}
	s.Devices[0].History = kept
	var b bytes.Buffer
	require.NoError(t, torch.Write(&b, s))
	return write(t, "filtered.pickle", b.String())
}

// wrappedSnapshot writes a snapshot of which a ring kept the last thousand entries.
func wrappedSnapshot(t *testing.T) string {
	t.Helper()
	return filteredSnapshot(t, "../examples/oom/chat.pickle.gz", func(n, i int, _ torch.Entry) bool { return i >= n-1000 })
}

// TestWhatifReportsMissingData takes a file without a history, one whose ring has
// overflowed, one whose replay holds another peak than was recorded, and a state of TensorFlow.
func TestWhatifReportsMissingData(t *testing.T) {
	const vectors = "../harness/trace/torch/testdata/vectors/"
	for file, want := range map[string]string{
		vectors + "state_only.pickle.xz": "it has no history of requests, only the blocks that were live when it " +
			"was written.",
		vectors + "private_pool.pickle.xz": "replayed with the recorded settings the run holds 314.00 MiB at most, 4.8 % " +
			"less than the 330.00 MiB that were recorded. If the program used private pools (CUDA graphs, MemPool), that " +
			"may be why: the file does not record " + torch.UnknownPools + ". Those of newer releases of PyTorch do. A snapshot",
		wrappedSnapshot(t): "its history has lost its oldest entries: it has exactly 1000 entries and " +
			"begins with blocks in use.",
	} {
		for _, more := range [][]string{nil, {"--device", "sim:h100-80g"}, {"--grid", "full"}} {
			text := succeed(t, append([]string{"whatif", file}, more...)...)
			words := strings.Join(strings.Fields(text), " ")
			require.True(t, strings.HasPrefix(words, "This file cannot answer that: "+want), words)
			require.Contains(t, text, "\n    torch.cuda.memory._record_memory_history(max_entries=1_000_000, ")
			require.Contains(t, text, "\n  reserved   ")
			for _, claim := range []string{"export ", "less.", "needs ", "All settings tried"} {
				require.NotContains(t, words, claim)
			}
		}
		r := whatifJSON(t, file)
		require.Equal(t, whatif.CannotTell, r.Answer.Verdict)
		require.NotEmpty(t, r.Cannot)
		require.Empty(t, r.Answer.Environment)
		require.Zero(t, r.Answer.Need)
		require.Empty(t, r.Runs)
		require.Equal(t, r.Final.Reserved.Bytes, r.Final.Live.Bytes+r.Final.Pending.Bytes+r.Final.Returnable+
			r.Final.PoolEmpty+r.Final.InactiveSplit)

		page := filepath.Join(t.TempDir(), "r.html")
		succeed(t, "whatif", file, "--html", page)
		html, err := os.ReadFile(page)
		require.NoError(t, err)
		require.Contains(t, string(html), "This file cannot answer that")
		require.NotContains(t, string(html), "export PYTORCH")
	}
}

// TestChangedSettingsMayBeTheReason has a whole history, in which max_split_size_mb was set for the
// first block only, and the settings of its end.
func TestChangedSettingsMayBeTheReason(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.pickle")
	succeed(t, "replay", "--strategy", "caching", "--snapshot", file, write(t, "t.trace",
		"conf max_split_size_mb:20\na 1 100MiB\nf 1\na 2 30MiB\nconf \"\"\na 3 60MiB\n"))
	require.Equal(t, 130*device.MiB, whatifJSON(t, file).Recorded.Replayed)
	text := succeed(t, "whatif", filteredSnapshot(t, file, func(_, _ int, e torch.Entry) bool {
		return e.Action != torch.ActionConf
	}))
	require.Contains(t, strings.Join(strings.Fields(text), " "), "the run holds 100.00 MiB at most, 23.1 % less than the "+
		"130.00 MiB that were recorded. If the program changed the settings of its allocator, that may be why: the file "+
		"has only those of its end. Another snapshot before each change, joined by \"vramyard trace convert\", shows them. "+
		"A snapshot that begins before the first allocation may:")
}

// TestAWrappedFailureIsStillExplained keeps the heap at the refusal, which the end of a history
// has.
func TestAWrappedFailureIsStillExplained(t *testing.T) {
	text := succeed(t, "whatif", wrappedSnapshot(t))
	require.Contains(t, text, "The only failure, at event 1080, in the recording:\n")
	require.NotContains(t, text, "With other settings")
}

// TestAStateOfAnotherFrameworkGetsNoPython takes a text trace that has nothing but live blocks.
func TestAStateOfAnotherFrameworkGetsNoPython(t *testing.T) {
	text := succeed(t, "whatif", write(t, "t.trace", "live 1 12MiB\nlive 2 8MiB\n"))
	require.True(t, strings.HasPrefix(text, "This file cannot answer that: it has no history of requests"), text)
	require.Contains(t, strings.Join(strings.Fields(text), " "), "A recording that begins before the first "+
		"allocation can.")
	require.NotContains(t, text, "torch")
}

// TestDocsQuoteTheRecipe holds the page about snapshots to the lines that whatif prints.
func TestDocsQuoteTheRecipe(t *testing.T) {
	raw, err := os.ReadFile("../docs/snapshots.md")
	require.NoError(t, err)
	r := whatifJSON(t, "../harness/trace/torch/testdata/vectors/state_only.pickle.xz")
	require.Contains(t, string(raw), "```python\n"+strings.Join(r.Answer.Recipe, "\n")+"\n```")
	require.Greater(t, r.Final.Live.Bytes, device.Size(0))
}

// TestVerdictsOfPartialTracesDoNotClaimTheWholeRun has the verdicts of replays name the same gap in
// the file as whatif.
func TestVerdictsOfPartialTracesDoNotClaimTheWholeRun(t *testing.T) {
	for file, gap := range map[string]string{
		"../harness/trace/torch/testdata/vectors/state_only.pickle.xz": "state_only: it has no history of requests, only " +
			"the blocks that were live when it was written. ",
		wrappedSnapshot(t): "filtered: its history has lost its oldest entries: it has exactly 1000 entries and begins " +
			"with blocks in use. ",
	} {
		for _, c := range []struct{ command, claim string }{
			{"compare --strategies caching --device sim:1TiB", "caching completes that part with least memory: "},
			{"replay --strategy caching --device sim:1TiB", "caching completes that part and reserves "},
			{"tune --strategy caching --settings memory_fraction --points 1", "caching"},
		} {
			text := succeed(t, append(strings.Fields(c.command), file)...)
			require.True(t, strings.HasPrefix(text, "Only a part of the run is in "+gap+c.claim), text)
		}
	}
}

// TestVerdictsNameAStrategyOnce compares a strategy with itself on one trace that is given twice.
func TestVerdictsNameAStrategyOnce(t *testing.T) {
	path := write(t, "t.trace", "a 1 4096\nf 1\n")
	text := succeed(t, "compare", "--strategies", "caching,caching", path, path)
	require.True(t, strings.HasPrefix(text, "caching completes t with least memory: "), text)
}

// TestReplaysOfAWholeDeviceDoNotClaimThePeak has bfc, which takes all of the device when it is
// built.
func TestReplaysOfAWholeDeviceDoNotClaimThePeak(t *testing.T) {
	path := write(t, "t.trace", "a 1 4096\nf 1\n")
	text := succeed(t, "replay", "--strategy", "bfc", "--device", "sim:1GiB", path)
	require.True(t, strings.HasPrefix(text, "bfc completes t; it reserves its whole limit ("), text)
	require.Contains(t, text, ") up front, and `compare` finds its minimum; "+
		"no allocator can do with less than 4.00 KiB.\n")
}

// TestAFileWithoutHistoryHasNoPeak has whatif and top name the figures of a file with one moment
// only.
func TestAFileWithoutHistoryHasNoPeak(t *testing.T) {
	const path = "../harness/trace/torch/testdata/vectors/state_only.pickle.xz"
	text := succeed(t, "whatif", path)
	require.Contains(t, text, "\nreserved         4.47 GiB when the file was written\nlive             2.79 GiB, the "+
		"live bytes alone when the file was written\n")
	require.NotContains(t, text, "peak reserved")
	require.NotContains(t, text, "lower bound")
	require.True(t, strings.HasPrefix(succeed(t, "top", path), "state_only: 2.79 GiB live in 398 blocks when the file "+
		"was written\n"))
}
