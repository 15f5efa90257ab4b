package front_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
)

func TestZeroTableIsEmpty(t *testing.T) {
	var l front.Ledger
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
	var l front.Ledger
	want := map[device.Addr]front.LiveBlock{}
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
			b := front.LiveBlock{Requested: device.Size(i), Place: i + 3}
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
	require.LessOrEqual(t, l.Bytes(), device.Size(500*(64+7*36)), "cells are used again")
}

// TestStartsAreExact has blocks whose starts have the lower bits of their numbers in common, or lie
// between multiples of 256, at either end of the addresses.
func TestStartsAreExact(t *testing.T) {
	for _, first := range []device.Addr{1 << 20, 0x7f0000000000, 1<<63 + 4096} {
		var l front.Ledger
		want := map[device.Addr]front.LiveBlock{}
		enter := func(a device.Addr) {
			if _, ok := want[a]; !ok && a != 0 {
				want[a] = front.LiveBlock{Requested: device.Size(len(want)) + 1}
				l.Add(a, want[a])
			}
		}
		enter(first)
		for i := range device.Addr(40) {
			enter(first + i<<40)       // congruent in what a cell has
			enter(first - i<<40)       // wraps, for some
			enter(first + i<<47)       // beyond the marks
			enter(first + i)           // between multiples
			enter(first + i<<8)        // in a row
			enter(^device.Addr(0) - i) // the end
			enter(i + 1)               // the beginning
		}
		for a, w := range want {
			got, ok := l.Get(a)
			require.True(t, ok, "%v", a)
			require.Equal(t, w, got, "%v", a)
			for _, off := range []device.Addr{1, 128, 1 << 40, 1 << 47, 1 << 55} {
				got, ok = l.Get(a + off)
				require.Equal(t, want[a+off], got, "%v", a+off)
				require.Equal(t, want[a+off] != front.LiveBlock{}, ok)
			}
		}
		n := 0
		for a, b := range l.Range {
			require.Equal(t, want[a], b, "%v", a)
			n++
		}
		require.Equal(t, len(want), n)
		for a, w := range want {
			got, ok := l.Take(a)
			require.True(t, ok)
			require.Equal(t, w, got)
			_, ok = l.Take(a)
			require.False(t, ok)
		}
		require.Zero(t, l.Len())
	}
}

// TestFarAddressesAreNotFound asks a table without columns for what differs from a live block in
// bits that its cells do not hold.
func TestFarAddressesAreNotFound(t *testing.T) {
	var l front.Ledger
	const a = device.Addr(0x7f0000000000)
	l.Add(a, front.LiveBlock{Requested: 5})
	for bit := range 64 {
		_, ok := l.Get(a ^ 1<<bit)
		require.False(t, ok, "bit %d", bit)
		_, ok = l.Take(a ^ 1<<bit)
		require.False(t, ok, "bit %d", bit)
	}
	got, ok := l.Take(a)
	require.True(t, ok)
	require.Equal(t, front.LiveBlock{Requested: 5}, got)
}

// TestCountsOfPassedBlocksEnd fills a small table over and over, so that many blocks pass each
// bucket.
func TestCountsOfPassedBlocksEnd(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 0))
	var l front.Ledger
	live := []device.Addr{}
	for i := range device.Addr(200000) {
		if len(live) == 11 { // as many as two buckets hold before they become three
			k := rng.IntN(len(live))
			_, ok := l.Take(live[k])
			require.True(t, ok)
			live[k] = live[len(live)-1]
			live = live[:len(live)-1]
		}
		l.Add((i+1)<<8, front.LiveBlock{})
		live = append(live, (i+1)<<8)
	}
	require.Equal(t, device.Size(128), l.Bytes())
	_, ok := l.Get(1 << 40)
	require.False(t, ok)
}

func FuzzAgreesWithMap(f *testing.F) {
	f.Add([]byte{1, 1, 1, 0, 2, 1, 1, 1, 1, 0})
	f.Fuzz(func(t *testing.T, calls []byte) {
		var l front.Ledger
		want := map[device.Addr]front.LiveBlock{}
		for ; len(calls) >= 3; calls = calls[3:] {
			a := device.Addr(calls[1]%16+1)<<8 + device.Addr(calls[0]>>6)<<39 + device.Addr(calls[0]>>4&3)<<47 +
				device.Addr(calls[0]>>3&1)
			w, live := want[a]
			got, ok := l.Take(a)
			require.Equal(t, live, ok)
			require.Equal(t, w, got)
			delete(want, a)
			if !live {
				b := front.LiveBlock{Requested: device.Size(calls[2])}
				switch calls[0] & 7 {
				case 5:
					b.Place = uint64(calls[2]) << 28
				case 6:
					b.Requested <<= 30
				case 7:
					b.Stream, b.Tag = device.Stream(calls[2]), 3
				}
				l.Add(a, b)
				want[a] = b
			}
		}
		require.Equal(t, len(want), l.Len())
		for a, b := range l.Range {
			require.Equal(t, want[a], b)
			delete(want, a)
		}
		require.Empty(t, want)
	})
}

func TestRangeStopsWhenAsked(t *testing.T) {
	var l front.Ledger
	l.Add(1, front.LiveBlock{})
	l.Add(2, front.LiveBlock{})
	n := 0
	for range l.Range {
		n++
		break
	}
	require.Equal(t, 1, n)
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	var l front.Ledger
	for i := range device.Addr(1000) {
		l.Add((i+1)<<8, front.LiveBlock{Place: uint64(i)})
	}
	next := device.Addr(1001)
	require.Zero(t, testing.AllocsPerRun(10000, func() {
		l.Take((next - 1000) << 8)
		l.Add(next<<8, front.LiveBlock{})
		next++
	}))
}
