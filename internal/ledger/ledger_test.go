package ledger_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/ledger"
)

func TestZeroTableIsEmpty(t *testing.T) {
	var l ledger.Table
	_, ok := l.Get(0)
	require.False(t, ok)
	_, ok = l.Take(4096)
	require.False(t, ok)
	require.Zero(t, l.Len())
	require.Zero(t, l.Bytes())
}

// TestAgreesWithMap drives the table and Go's map with the same random calls.
func TestAgreesWithMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 0))
	var l ledger.Table
	want := map[device.Addr]ledger.Block{}
	for i := range uint64(50000) {
		a := device.Addr(rng.IntN(500)+1) << 8
		w, live := want[a]
		got, ok := l.Get(a)
		require.Equal(t, live, ok)
		require.Equal(t, w, got)
		if live {
			got, ok = l.Take(a)
			require.True(t, ok)
			require.Equal(t, w, got)
			delete(want, a)
		} else {
			b := ledger.Block{Requested: device.Size(i), Place: i + 3}
			if i > 5000 && i%3 != 0 { // none has a label at first
				b.Stream, b.Tag = device.Stream(i+1), i+2
			}
			l.Add(a, b)
			want[a] = b
		}
		require.Equal(t, len(want), l.Len())
	}
	n := 0
	for a, b := range l.Range {
		require.Equal(t, want[a], b)
		n++
	}
	require.Equal(t, len(want), n)
	require.LessOrEqual(t, l.Bytes(), device.Size(1024*40), "cells are used again")
}

func TestRangeStopsWhenAsked(t *testing.T) {
	var l ledger.Table
	l.Add(1, ledger.Block{})
	l.Add(2, ledger.Block{})
	n := 0
	for range l.Range {
		n++
		break
	}
	require.Equal(t, 1, n)
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	var l ledger.Table
	for i := range device.Addr(1000) {
		l.Add((i+1)<<8, ledger.Block{Place: uint64(i)})
	}
	next := device.Addr(1001)
	require.Zero(t, testing.AllocsPerRun(10000, func() {
		l.Take((next - 1000) << 8)
		l.Add(next<<8, ledger.Block{})
		next++
	}))
}
