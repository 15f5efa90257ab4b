package report_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/gate"
)

// violated is a gate with one violation, by a block with a stack.
func violated(lines ...string) *gate.Report {
	before, now := uint64(1<<20), uint64(3<<20)
	return &gate.Report{Baseline: "ci/budget.yaml", Results: []gate.Result{{
		Name: "train|*", Strategy: "caching", Line: 7,
		Checks: []gate.Check{{State: gate.Empty, Figure: gate.PeakLive, Budget: &before, Now: &now, Verdict: gate.Violated}},
		Causes: []gate.Cause{{Change: gate.BlockAdded, At: lines[0], Lines: lines, Size: 2 << 20, Blocks: 1, Bytes: 2 << 20}},
	}}}
}

func TestSARIFIsAtTheCodeOfTheProgram(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "my model"), 0o700))
	file := filepath.Join(root, "my model", "net.py")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, c := range []struct {
		lines []string
		uri   string
		line  string
	}{
		{[]string{"torch/nn/functional.py:9 relu", file + ":31 forward", file + ":5 main"}, "my%20model/net.py", "31"},
		{[]string{"/elsewhere/net.py:31 forward"}, "ci/budget.yaml", "7"},
		{[]string{"AddBackward0 [aten::add]"}, "ci/budget.yaml", "7"},
	} {
		var b strings.Builder
		require.NoError(t, report.GateSARIF(&b, violated(c.lines...), root))
		require.Contains(t, b.String(), `"uri": "`+c.uri+`"`)
		require.Contains(t, b.String(), `"startLine": `+c.line+"\n")
	}
}

func TestSummaryOfAStackIsHTML(t *testing.T) {
	var b strings.Builder
	require.NoError(t, report.GateMarkdown(&b, violated("my_model/_net.py:1 <lambda> @team", "train.py:9 main")))
	require.Contains(t, b.String(), "<details><summary>1 block of 2.00 MiB added at my_model/_net.py:1 &lt;lambda&gt; "+
		"&#64;team</summary>\n")
}

func TestMarkdownShowsNamesAsTheyAre(t *testing.T) {
	var b strings.Builder
	require.NoError(t, report.GateMarkdown(&b, violated("a_b.py:1 <lambda> @team", "```")))
	require.Contains(t, b.String(), `train\|\*: VIOLATED, 1 of 1 figure `)
	require.Contains(t, b.String(), `1 block of 2.00 MiB added | a\_b.py:1 &lt;lambda&gt; &#64;team |`)
	require.Equal(t, 2, strings.Count(b.String(), "```"), "a stack does not end its block")
}
