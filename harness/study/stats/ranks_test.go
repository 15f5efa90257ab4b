package stats_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/study/stats"
)

var failure = math.Inf(1)

func TestRanksShowTies(t *testing.T) {
	figures := [][]float64{
		{1.2, 1.1, 1.3, 1.2, 1.1, 1.2, 1.4},
		{1.0, 1.1, 1.1, 1.0, 1.1, 1.0, 1.2},
		{1.2, 1.1, 1.3, 1.2, 1.1, 1.2, 1.4},
		{1.0, 1.0, 1.0, 1.0, 1.0, 1.0, failure},
	}
	ranks := stats.Ranks(figures, 1)
	var places []int
	for _, r := range ranks {
		places = append(places, r.Place)
	}
	assert.Equal(t, []int{2, 1, 2, 4}, places, "equal figures have equal places, and a failure outweighs every figure")
	assert.Equal(t, ranks[0], ranks[2])
	assert.Nil(t, ranks[3].MeanLow, "no interval beside a failure")
	assert.Equal(t, 1, ranks[3].Failures)
	assert.InDelta(t, 1, *ranks[3].Mean, 1e-9)
	for _, r := range ranks {
		assert.LessOrEqual(t, r.Low, r.Place)
		assert.GreaterOrEqual(t, r.High, r.Place)
	}
	assert.Equal(t, 4, ranks[3].High)
	assert.Equal(t, 1, ranks[3].Low, "a third of the samples lack the trace on which it fails")
	assert.True(t, ranks[1].Overlaps(&ranks[3]))
	assert.False(t, ranks[0].Overlaps(&stats.Rank{Place: 5, Low: 5, High: 5}))

	slices.Reverse(figures)
	reversed := stats.Ranks(figures, 1)
	slices.Reverse(reversed)
	assert.Equal(t, ranks, reversed, "the order of the candidates does not count")
}

func TestRanksOfAClearOrderHaveNarrowIntervals(t *testing.T) {
	ranks := stats.Ranks([][]float64{{2, 2, 2, 2, 2, 2}, {1, 1, 1, 1, 1, 1}}, 7)
	assert.Equal(t, []int{2, 2, 2}, []int{ranks[0].Place, ranks[0].Low, ranks[0].High})
	assert.Equal(t, []int{1, 1, 1}, []int{ranks[1].Place, ranks[1].Low, ranks[1].High})
	assert.False(t, ranks[0].Overlaps(&ranks[1]))
}

func TestFewTracesHaveNoRankInterval(t *testing.T) {
	ranks := stats.Ranks([][]float64{{2, 2, 2, 2, 2}, {1, 1, 1, 1, 1}, {failure, failure, failure, failure, failure}}, 7)
	require.Len(t, ranks, 3)
	assert.Zero(t, ranks[0].Low)
	assert.Nil(t, ranks[0].MeanLow)
	assert.Equal(t, 2, ranks[0].Place)
	assert.Nil(t, ranks[2].Mean)
	assert.True(t, ranks[0].Overlaps(&ranks[1]), "nothing is distinguished without intervals")
	assert.Empty(t, stats.Ranks(nil, 0))
}
