package verify_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/verify"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/vectors"
	"github.com/vramyard/vramyard/strategies/caching"
)

// cachingTarget is the strategy itself, with the settings of a vector but for the share of the
// card: a recording does not know the card, and what the share leads to is that segments go back.
func cachingTarget(t *testing.T, v vectors.Vector) *verify.Target {
	t.Helper()
	var c caching.Config
	require.NoError(t, json.Unmarshal(v.Config, &c))
	c.MemoryFraction = 0
	sizes, err := c.BlockSizes()
	require.NoError(t, err)
	return &verify.Target{
		Strategy: "caching",
		Open: func(src device.Source, opening []alloc.Chunk) (verify.Seedable, error) {
			return caching.Open(src, c, opening)
		},
		Round:   sizes.Round,
		Unsplit: sizes.Unsplit,
	}
}

// TestCachingPredictsVectors holds the strategy to the vectors with every setting that a recording
// can be told of.
func TestCachingPredictsVectors(t *testing.T) {
	all, err := vectors.Torch()
	require.NoError(t, err)
	told := 0
	for _, v := range all {
		tr, err := v.Trace()
		require.NoError(t, err)
		if strings.Contains(string(v.Config), "expandable") ||
			slices.ContainsFunc(tr.Events, func(e trace.Event) bool { return e.Kind == trace.PoolBegin }) {
			continue
		}
		told++
		for _, cut := range []int{-1, v.Allocs / 2} {
			t.Run(fmt.Sprintf("%s/%d", v.ID(), cut), func(t *testing.T) {
				r := replayed(t, v, cut)
				h, err := read(r.csv.String(), r.addr.String())
				require.NoError(t, err)
				res, err := verify.Run(h, cachingTarget(t, v))
				require.NoError(t, err)
				require.Equal(t, res.Allocs-hidden[fmt.Sprintf("%s/%d", v.Name, cut)], res.Predicted, "%v %s", res.First,
					res.Stopped)
			})
		}
	}
	require.Greater(t, told, 60)
}
