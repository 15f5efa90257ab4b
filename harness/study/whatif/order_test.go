package whatif_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/strategies"
)

// Traces with captures. Each block is a segment of its own, unless a free one is large enough.
const (
	// ascending captures need 20, 40 and 60 MiB: 120 MiB in any pools, and 60 MiB if the largest comes
	// first, or if the pool begins with 60 MiB.
	ascending = "pool begin 1 stream=1\na 1 20MiB stream=1\nf 1\npool end 1\n" +
		"pool begin 2 stream=1\na 2 40MiB stream=1\nf 2\npool end 2\n" +
		"pool begin 3 stream=1\na 3 60MiB stream=1\nf 3\npool end 3\n"
	// descending needs 100 MiB, 60 MiB in one pool.
	descending = "pool begin 1 stream=1\na 1 60MiB stream=1\nf 1\npool end 1\n" +
		"pool begin 2 stream=1\na 2 40MiB stream=1\nf 2\npool end 2\n"
	// rebound frees the output of the first capture in the second: 80 MiB, or 60 MiB in a pool that
	// begins with them.
	rebound = "pool begin 1 stream=1\na 1 20MiB stream=1\npool end 1\n" +
		"pool begin 1 stream=1\nf 1\na 2 60MiB stream=1\nf 2\npool end 1\n"
	// growing is a MemPool of 80 MiB, or of 60 MiB if it begins with them.
	growing = "pool begin 1\na 1 20MiB\nf 1\na 2 60MiB\nf 2\npool end 1\n"
)

// repooled asks about a trace with the defaults of PyTorch, and with the baseline.
func repooled(t *testing.T, text string, o whatif.Options) *whatif.Result {
	t.Helper()
	var grid []setting.Setup
	for _, name := range []string{"caching", "slab"} {
		s, err := strategies.All().Lookup(name, nil)
		require.NoError(t, err)
		grid = append(grid, s)
	}
	return search(t, read(t, text), grid, o)
}

// TestOtherPoolsAreTheAnswer has a card on which no setting of PyTorch completes.
func TestOtherPoolsAreTheAnswer(t *testing.T) {
	for name, c := range map[string]struct{ text, first, python, sure string }{
		"order": {
			ascending, "Capturing in descending order of batch size into one pool completes this run on ",
			"shared = torch.cuda.graph_pool_handle() for batch in sorted(batches, reverse=True): ",
			"moves the 3 captures with the requests and frees that were recorded",
		},
		"share": {
			descending, "Sharing one pool among all captures completes this run on ",
			"with torch.cuda.graph(graph, pool=shared):",
			"Graphs that share a pool overwrite each other's memory",
		},
		"prime": {
			rebound, "Allocating 60.00 MiB first in one pool for all captures completes this run on ",
			`    torch.empty(62914560, dtype=torch.uint8, device="cuda")  # freed at once ` +
				"with torch.cuda.graph(graph, pool=pool.id, stream=stream):",
			"No other order of captures was tried: event 4 (free of 1) would come before event 1 (alloc).",
		},
		"MemPool": {
			growing, "Allocating 60.00 MiB first in the MemPool completes this run on ",
			"with torch.cuda.use_mem_pool(pool):  # before its first request ",
			"The first allocation in the pool is hypothetical: the replay adds it to the recorded requests.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, full := range []bool{false, true} {
				r := repooled(t, ofPyTorch+c.text, whatif.Options{Card: 70 * device.MiB, Full: full})
				require.Equal(t, whatif.Pooling, r.Answer.Verdict)
				text := strings.Join(r.Answer.Text, " ")
				require.True(t, strings.HasPrefix(text, c.first), text)
				require.Contains(t, text, "; no setting of PyTorch that was tried does. ")
				require.Contains(t, text, " 60.00 MiB. That is too tight")
				require.Contains(t, text, " It makes 2 device calls, ", "one segment, that goes back at the end")
				require.Equal(t, 60*device.MiB, r.Answer.Need)
				require.Contains(t, strings.Join(r.Answer.Python, " "), c.python)
				require.Empty(t, r.Answer.Environment)
				require.Contains(t, strings.Join(r.Answer.Sure, " "), c.sure)
			}
		})
	}
}

// TestOtherPoolsAreNoAnswer has programs that cannot use them.
func TestOtherPoolsAreNoAnswer(t *testing.T) {
	const noMemPools = "# vramyard-trace 1\n# torch=2.4.1\n"
	mixed := ofPyTorch + ascending + "pool begin 4\na 4 20MiB\nf 4\npool end 4\n"
	for name, text := range map[string]string{
		"no framework": "# vramyard-trace 1\n" + ascending, "an old release": noMemPools + growing,
		"MemPools and captures":          mixed,
		"MemPools of different purposes": ofPyTorch + growing + "pool begin 2\na 3 60MiB\nf 3\npool end 2\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := repooled(t, text, whatif.Options{Card: 70 * device.MiB})
			require.Equal(t, whatif.Strategy, r.Answer.Verdict)
			require.NotNil(t, r.Pools.Primed)
		})
	}
}

// TestOtherPoolsThatSave has a card on which the recorded settings complete.
func TestOtherPoolsThatSave(t *testing.T) {
	for _, card := range []device.Size{0, gib} {
		r := repooled(t, ofPyTorch+ascending, whatif.Options{Card: card})
		require.Contains(t, strings.Join(r.Answer.Text, " "), "Capturing in descending order of batch size into one pool "+
			"would need at most 60.00 MiB with the recorded settings: 60.00 MiB less. Capture in descending order of batch "+
			"size, each graph with torch.cuda.graph(..., pool=shared).")
		require.Equal(t, 120*device.MiB, *r.Pools.Recorded)
		require.Equal(t, 120*device.MiB, *r.Pools.Shared)
		require.Equal(t, 60*device.MiB, *r.Pools.LargestFirst)
		require.Equal(t, 60*device.MiB, *r.Pools.Primed)
		require.Equal(t, 60*device.MiB, r.Pools.Priming)
		require.Equal(t, r.Answer, repooled(t, ofPyTorch+ascending, whatif.Options{Card: card, Workers: 1}).Answer)
	}
	r := repooled(t, ofPyTorch+"pool begin 1 stream=1\na 1 20MiB stream=1\npool end 1\n", whatif.Options{Card: gib})
	require.Nil(t, r.Pools.Shared, "there is one pool")
	require.NotContains(t, strings.Join(r.Answer.Text, " "), "pool")
}

// TestPoolsInUseBeforeTheRecording has blocks of a pool that were live when a history began.
func TestPoolsInUseBeforeTheRecording(t *testing.T) {
	r := repooled(t, ofPyTorch+"# opening_live=1\n"+ascending, whatif.Options{Card: gib})
	require.Nil(t, r.Pools.LargestFirst)
	require.Nil(t, r.Pools.Primed)
	require.Contains(t, r.Answer.Sure,
		"No other order of captures was tried: private pools were in use when the recording began.")
	r = repooled(t, ofPyTorch+"# opening_live=1\n"+growing, whatif.Options{Card: gib})
	require.NotContains(t, strings.Join(r.Answer.Sure, " "), "No other order of captures", "there are none")
}
