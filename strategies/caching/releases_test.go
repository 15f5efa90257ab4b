package caching_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/strategies/caching"
)

// TestChangesAreDocumented finds the sentence of every change in the package comment.
func TestChangesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	words := strings.Join(strings.Fields(strings.ReplaceAll(string(text), "//", "")), " ")
	for i, r := range caching.RuleSets() {
		require.Equal(t, i == 0, len(r.Changes) == 0, r.Name)
		for _, c := range r.Changes {
			require.True(t, strings.HasPrefix(c.Text, r.From+" "), c.Text)
			require.Contains(t, words, " - "+c.Text)
		}
	}
}

// TestChangesThatMatter selects the changes by settings and requests.
func TestChangesThatMatter(t *testing.T) {
	pools := setting.Demand{Pools: true}
	options := setting.Demand{Pools: true, Options: power.PoolOptions{UseOnOOM: true, NoSplit: true}}
	for _, c := range []struct {
		config caching.Config
		demand setting.Demand
		counts [4]int // by rule set
	}{
		{caching.Config{}, setting.Demand{}, [4]int{0, 0, 1, 1}},
		{caching.Config{}, pools, [4]int{0, 1, 1, 2}},
		{caching.Config{}, options, [4]int{0, 2, 1, 2}},
		{caching.Config{Conf: "expandable_segments:True"}, options, [4]int{0, 3, 1, 2}},
		{caching.Config{MemoryFraction: 1}, setting.Demand{}, [4]int{0, 1, 1, 1}},
		{caching.Config{Conf: "per_process_memory_fraction:1"}, setting.Demand{}, [4]int{0, 1, 1, 1}},
		{caching.Config{Conf: "roundup_power2_divisions:[256:1,>:8]"}, pools, [4]int{0, 2, 1, 2}},
	} {
		for i, r := range caching.RuleSets() {
			require.Len(t, r.ChangesFor(c.config, c.demand), c.counts[i], "%v %s", c.config, r.Name)
		}
	}
}
