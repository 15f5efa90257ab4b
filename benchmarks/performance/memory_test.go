package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLinesAreCountedOncePerPair(t *testing.T) {
	m := newMemory()
	m.beginPair()
	m.touch(1, 0, 8)
	m.startCounting()
	for range 2 {
		m.beginPair()
		m.instruction(false)
		m.touch(1, 0, 8)           // near from before
		m.touch(2, lineBytes-1, 2) // the line of before, and one more
		m.touch(3, lineBytes, 64)
		m.instruction(true)
	}
	var s linesSeen
	m.report(&s)
	require.Equal(t, 2., s.Instructions)
	require.Equal(t, 1., s.Unknown)
	require.Equal(t, 2., s.Lines)
	require.Equal(t, .5, s.Far, "in the first pair only")
	require.Len(t, s.Places, 1)
	require.Equal(t, .5, s.Places[0].Far)
}

func TestLinesBecomeFarAfterOtherLinesAreTouched(t *testing.T) {
	m := newMemory()
	for i := range uint64(nearLines) {
		require.False(t, m.use(i))
	}
	require.True(t, m.use(0), "one of the last")
	require.False(t, m.use(nearLines), "which drives out line 1")
	require.True(t, m.use(0))
	require.False(t, m.use(1))
	require.Len(t, m.where, nearLines)
}
