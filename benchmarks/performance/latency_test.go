package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/study/bench"
)

func TestCycleLeadsThroughEveryLine(t *testing.T) {
	const lines = 1000
	words, order := cycle(lines)
	require.Len(t, words, lines*lineWords)
	seen := map[uint64]bool{}
	at := order[0]
	for i := range lines {
		require.Equal(t, order[i], at)
		require.Zero(t, at%lineWords)
		require.False(t, seen[at])
		seen[at] = true
		at = chase(words, at, 1)
	}
	require.Equal(t, order[0], at)
}

func TestParallelPointerChasesFollowTheSameCycle(t *testing.T) {
	words, order := cycle(64)
	var many [chaseStreams]uint64
	for i := range many {
		many[i] = order[i]
	}
	chaseAll(words, &many, 5)
	for i := range many {
		require.Equal(t, order[i+5], many[i])
	}
}

func TestLatencyIsInterpolated(t *testing.T) {
	at := func(n int, serial, parallel float64) loadTimes {
		return loadTimes{n, bench.Timing{Min: serial}, bench.Timing{Min: parallel}}
	}
	f := latencyFile{Loads: []loadTimes{at(1<<14, 2, 1), at(1<<16, 6, 2), at(1<<18, 100, 10)}}
	for n, want := range map[float64][2]float64{
		1: {2, 1}, 1 << 14: {2, 1}, 1 << 15: {4, 1.5}, 1 << 16: {6, 2}, 1 << 17: {53, 6}, 1 << 18: {100, 10},
		1 << 30: {100, 10},
	} {
		serial, parallel := f.of(n)
		require.InDelta(t, want[0], serial, 1e-9, n)
		require.InDelta(t, want[1], parallel, 1e-9, n)
	}
}
