package view_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/page"
	"github.com/vramyard/vramyard/harness/show/view"
	"github.com/vramyard/vramyard/harness/study/top"
)

// opened opens the sample through a cache. It returns the content of its page, and whether the
// trace was replayed.
func opened(t *testing.T, c *view.Cache, events int, names ...string) (pageOf any, replayed bool) {
	t.Helper()
	p := view.NewProgress(func(string, int, int) { replayed = true })
	r, err := c.Open(context.Background(), sample(t, events), wanted(t, names...), replay.AtCompleted, p)
	require.NoError(t, err)
	for i := range r.Runs {
		run := r.Runs[i].Picture // without what the clock decides
		run.Result.NsPerOp, run.Alloc, run.Free = 0, nil, nil
	}
	traced, err := r.Traced()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	return []any{traced.Picture.Grid, traced.Picture.Bound, traced.Runs, traced.Top}, replayed
}

// names returns the names in a directory.
func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// TestReplaysAreFoundAgain opens a trace twice, and then with other inputs that need a new replay.
func TestReplaysAreFoundAgain(t *testing.T) {
	c := &view.Cache{Dir: filepath.Join(t.TempDir(), "a", "b"), Build: "1", From: 1000, Most: 1 << 30}
	c.Explain = func(t *page.Traced, _ *replay.Prepared, step func(int) error) error {
		t.Runs[1].Report = map[string]int{"size": 7}
		t.Top = &top.Report{Trace: "sample", Peak: top.Moment{Event: 3, Holders: []top.Holder{{Category: top.Weights}}}}
		return step(1)
	}
	first, replayed := opened(t, c, 3000, "bfc", "caching")
	require.True(t, replayed)
	again, replayed := opened(t, c, 3000, "bfc", "caching")
	require.False(t, replayed)
	require.Equal(t, first, again)
	require.NotNil(t, again.([]any)[3], "the report of memory by holder is stored")
	require.Len(t, names(t, c.Dir), 1)
	_, replayed = opened(t, c, 3000, "caching", "bfc")
	require.True(t, replayed)
	_, replayed = opened(t, c, 3002, "bfc", "caching")
	require.True(t, replayed)
	other := *c
	other.Build = "2"
	_, replayed = opened(t, &other, 3000, "bfc", "caching")
	require.True(t, replayed)
	c.Explain = nil
	_, replayed = opened(t, c, 900, "bfc") // a short one is not kept
	require.True(t, replayed)
	require.Len(t, names(t, c.Dir), 4)
}

// TestDamagedReplaysAreMadeAgain cuts its files.
func TestDamagedReplaysAreMadeAgain(t *testing.T) {
	c := &view.Cache{Dir: t.TempDir(), From: 1, Most: 1 << 30}
	first, _ := opened(t, c, 3000, "bfc")
	for _, file := range []string{"overview", "blocks-0"} {
		path := filepath.Join(c.Dir, names(t, c.Dir)[0], file)
		require.NoError(t, os.Truncate(path, 100))
		again, replayed := opened(t, c, 3000, "bfc")
		require.True(t, replayed, file)
		require.Equal(t, first, again)
		require.NoError(t, os.Remove(path))
		_, replayed = opened(t, c, 3000, "bfc")
		require.True(t, replayed, file)
	}
	require.Len(t, names(t, c.Dir), 1)
}

// TestTheCacheIsBounded keeps the replays of two traces where one fits, beside a directory of
// somebody else.
func TestTheCacheIsBounded(t *testing.T) {
	c := &view.Cache{Dir: t.TempDir(), From: 1, Most: 1}
	require.NoError(t, os.Mkdir(filepath.Join(c.Dir, "photos"), 0o700))
	opened(t, c, 3000, "bfc")
	one := names(t, c.Dir)
	opened(t, c, 3000, "caching")
	two := names(t, c.Dir)
	require.Len(t, one, 2)
	require.Len(t, two, 2)
	require.Contains(t, two, "photos")
	require.NotEqual(t, one, two)
}
