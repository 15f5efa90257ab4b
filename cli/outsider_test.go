package cli

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/harness/study/bench"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/strategies"
	"github.com/vramyard/vramyard/strategies/bestfit"
)

// outsider is a strategy of another module, which says nothing of lists.
func outsider() setting.Spec { return setting.SpecOf("mine", "another best fit", bestfit.New) }

// over runs a command line over a catalogue.
func over(t *testing.T, c setting.Catalogue, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	require.Equal(t, exitDone, run(t.Context(), c, args, strings.NewReader(""), &out, &errs), errs.String())
	return out.String()
}

func TestAnOutsidersStrategyIsInEveryDefaultList(t *testing.T) {
	path := write(t, "t.trace", small)
	c := append(strategies.All(), outsider())
	var compared compare.Report
	require.NoError(t, json.Unmarshal([]byte(over(t, c, "compare", "--json", "-", path)), &compared))
	require.Len(t, compared.Runs, 18)
	require.Equal(t, "mine", compared.Runs[17].Strategy)
	var tried whatif.Result
	require.NoError(t, json.Unmarshal([]byte(over(t, c, "whatif", "--json", "-", path)), &tried))
	require.True(t, slices.ContainsFunc(tried.Runs, func(p whatif.Point) bool { return p.Strategy == "mine" }))
	var timed bench.Report
	require.NoError(t, json.Unmarshal([]byte(over(t, c, benching("--workloads", "w1", "--json", "-")...)), &timed))
	require.Equal(t, "tlsf", timed.Runs[0].Strategy)
	require.True(t, slices.ContainsFunc(timed.Runs, func(r bench.Run) bool { return r.Strategy == "mine" }))
	require.Contains(t, over(t, c, "check", "--tests", "1", "--ops", "1"), "\n│ mine")
	require.Contains(t, over(t, c, "remat", "--help"), "vmm,stitch,mine")
	require.Contains(t, over(t, c, "tune", "--strategy", "mine", "--points", "1", path), "mine")
	require.Contains(t, over(t, c, "strategies"), "│ mine ")
	require.Contains(t, over(t, c, "strategies", "mine"), "mine: another best fit (semantics 1)")
	require.Contains(t, over(t, c, "__complete", "compare", "--strategies", "mi"), "mine\n")
}

// TestACatalogueOfOne has nothing of ours, not even the strategies that stand for PyTorch's
// allocators.
func TestACatalogueOfOne(t *testing.T) {
	c := setting.Catalogue{outsider()}
	require.Contains(t, over(t, c, "compare", outOfMemory("chat")), "│ mine ")
	require.Contains(t, over(t, c, "whatif", write(t, "t.trace", small)), "│ mine ")
	var out, errs bytes.Buffer
	require.Equal(t, exitTrouble, run(t.Context(), c, []string{"verify", outOfMemory("chat")}, strings.NewReader(""),
		&out, &errs))
	require.Contains(t, errs.String(), `unknown strategy "caching": want one of mine`)
}
