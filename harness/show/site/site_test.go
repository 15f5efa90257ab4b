package site_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/show/site"
	"github.com/vramyard/vramyard/harness/study/board"
	"github.com/vramyard/vramyard/harness/study/sweep"
	"github.com/vramyard/vramyard/internal/budget"
	"github.com/vramyard/vramyard/strategies"
)

// committed returns the results of docs/board.md.
func committed(t *testing.T) []sweep.Result {
	t.Helper()
	const path = "../../../benchmarks/results/board/online.parquet"
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	results, err := sweep.ReadResults(bytes.NewReader(text), int64(len(text)), path, budget.New(1<<30))
	require.NoError(t, err)
	return results.Traces
}

func filesOf(t *testing.T, results []sweep.Result) []site.File {
	t.Helper()
	b, err := board.Collect(results, "", strategies.All())
	require.NoError(t, err)
	b.Rank(1)
	files, err := site.Files(b, site.Options{Version: "9", Checked: "Nothing was checked."})
	require.NoError(t, err)
	return files
}

// loads matches the attributes and rules that load a file.
var loads = regexp.MustCompile(`(?:src|href|action|data)\s*=\s*"([^"]*)"|url\(([^)]*)\)|@import`)

func TestPagesAreOfflineAndTheSameEveryTime(t *testing.T) {
	results := committed(t)
	files := filesOf(t, results)
	assert.Equal(t, files, filesOf(t, results))
	known := map[string]bool{}
	for _, f := range files {
		assert.False(t, known[f.Name], f.Name)
		known[f.Name] = true
	}
	for _, f := range files {
		text := string(f.Data)
		assert.NotContains(t, text, "<script")
		for _, m := range loads.FindAllStringSubmatch(text, -1) {
			assert.True(t, known[m[1]], "%s loads %q", f.Name, m[0])
		}
		limit := 64 << 10
		if strings.HasSuffix(f.Name, ".svg") {
			limit = 30 << 10
		}
		assert.Less(t, len(f.Data), limit, f.Name)
	}
	for _, r := range results {
		assert.Contains(t, page(t, files, "trace-"+r.Trace+".html"), r.Cell, "every cell is on the page of its trace")
	}
}

func page(t *testing.T, files []site.File, name string) string {
	t.Helper()
	for _, f := range files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	t.Fatalf("no page %s", name)
	return ""
}

func TestTheFirstSentenceIsTheAnswer(t *testing.T) {
	files := filesOf(t, committed(t))
	for _, f := range files {
		if strings.HasSuffix(f.Name, ".html") {
			first := regexp.MustCompile(`<p[^>]*>([^<]*)`).FindStringSubmatch(string(f.Data))
			require.Len(t, first, 2)
			assert.Regexp(t, "least memory|no single best|No result", first[1], f.Name)
		}
	}
}

// TestHostileNames passes names that a file may have.
func TestHostileNames(t *testing.T) {
	setup, err := strategies.All().Lookup("bfc", nil)
	require.NoError(t, err)
	config, err := json.Marshal(setup.Config)
	require.NoError(t, err)
	var results []sweep.Result
	for i, name := range []string{"<script>alert(1)</script>", "../../etc/passwd", "..  etc passwd", "a\x1b[2Jb",
		"it's; rm -rf $HOME", strings.Repeat("x", 5000)} {
		r := sweep.Result{Cell: fmt.Sprintf("%064d", i), Target: "sim", Search: sweep.Minimum, FreeAt: "requested",
			Semantics: setup.Semantics}
		r.Strategy, r.Config, r.Trace, r.TraceSHA256, r.Starts = "bfc", config, name, fmt.Sprint(i), true
		r.LowerBound, r.MinCapacity, r.DeviceCalls = 1<<20, new(device.Size(1<<21)), 1
		results = append(results, r)
	}
	files := filesOf(t, results)
	for _, f := range files {
		assert.Regexp(t, `^[A-Za-z0-9_.-]{1,100}$`, f.Name)
		assert.NotContains(t, string(f.Data), "<script")
		assert.NotContains(t, string(f.Data), "\x1b")
	}
	assert.Contains(t, page(t, files, "trace-it-s-rm-rf-HOME.html"),
		"vramyard compare --strategies bfc --free-at requested &#39;it&#39;\\&#39;&#39;s; rm -rf $HOME&#39;")
}
