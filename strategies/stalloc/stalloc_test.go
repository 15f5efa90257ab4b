package stalloc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies/stalloc"
)

const kib = device.KiB

// open returns an allocator over a large device.
func open(t *testing.T, check string) *stalloc.Allocator {
	t.Helper()
	gpu, err := sim.New(sim.Config{})
	require.NoError(t, err)
	a, err := stalloc.New(gpu, stalloc.Config{Check: check, RegionBytes: kib})
	require.NoError(t, err)
	return a
}

// call is one call of a profile: a positive size requests, a negative number frees the block of the
// request with that number, counted from 1, and zero is a mark.
type call int

// profile returns a forecast.
func profile(calls ...call) power.Forecast {
	var all []power.Expected
	var requests []int
	for i, c := range calls {
		x := power.Expected{Other: -1}
		switch {
		case c > 0:
			x.Request.Size = device.Size(c)
			requests = append(requests, i)
		case c < 0:
			x.Kind, x.Other = power.ExpectFree, requests[-c-1]
			all[x.Other].Other = i
		default:
			x.Kind, x.Mark = power.ExpectMark, "iter 1"
		}
		all = append(all, x)
	}
	return func(yield func(power.Expected) bool) {
		for _, x := range all {
			if !yield(x) {
				return
			}
		}
	}
}

// get requests a block and returns it.
func get(t *testing.T, a *stalloc.Allocator, size device.Size) alloc.Block {
	t.Helper()
	b, err := a.Alloc(alloc.Request{Size: size})
	require.NoError(t, err)
	require.NoError(t, a.Check())
	return b
}

// TestTheCycleRepeats plans a head of one block that stays and a cycle of two that share a place,
// and runs the cycle three times: the addresses are the same each time.
func TestTheCycleRepeats(t *testing.T) {
	a := open(t, stalloc.CheckOn)
	a.Plan(profile(0, 4096, 0, 8192, -2, 2048, -3, 0, 8192, -4, 2048, -5))
	weight := get(t, a, 4096)
	var first []device.Addr
	for range 3 {
		var now []device.Addr
		for _, n := range []device.Size{8192, 2048} {
			b := get(t, a, n)
			now = append(now, b.Addr)
			require.NoError(t, a.Free(b.Addr))
		}
		if first == nil {
			first = now
		}
		require.Equal(t, first, now)
	}
	require.Equal(t, first[0], first[1], "the two share a place")
	require.NotEqual(t, weight.Addr, first[0])
	require.Equal(t, 12*kib, a.Stats().Reserved, "the arena alone")
}

// TestTheCounterNeverRealigns drops one request of the cycle: from then on every request meets the
// place of another one, and goes to the fallback.
func TestTheCounterNeverRealigns(t *testing.T) {
	a := open(t, stalloc.CheckOn)
	a.Plan(profile(0, 1024, -1, 2048, -2, 4096, -3, 0, 1024, -4, 2048, -5, 4096, -6))
	arena := get(t, a, 1024)
	require.NoError(t, a.Free(arena.Addr))
	for range 5 {
		for _, n := range []device.Size{4096, 1024, 2048} { // 2048 is missing once
			b := get(t, a, n)
			require.NotEqual(t, arena.Addr, b.Addr)
			require.NoError(t, a.Free(b.Addr))
		}
	}
}

// TestDynamicRequests has a request of the cycle whose size differs in the third iteration. It gets
// its place with any size up to the larger of the two.
func TestDynamicRequests(t *testing.T) {
	a := open(t, stalloc.CheckOn)
	a.Plan(profile(0, 8192, -1, 0, 8192, -2, 1024, -3, 0, 8192, -4, 3072, -5))
	static := get(t, a, 8192)
	require.NoError(t, a.Free(static.Addr))
	for _, n := range []device.Size{1024, 600, 3072, 3073} {
		b := get(t, a, 8192)
		require.Equal(t, static.Addr, b.Addr)
		require.NoError(t, a.Free(b.Addr))
		b = get(t, a, n)
		require.Equal(t, n <= 3072, b.Addr == static.Addr, "%d bytes", n)
		require.NoError(t, a.Free(b.Addr))
	}
}

// TestOverlap is the counterexample of docs/strategies/stalloc.md: the profile frees its first
// block before it requests the others, the run does not.
func TestOverlap(t *testing.T) {
	for _, check := range []string{stalloc.CheckOn, stalloc.CheckOff} {
		a := open(t, check)
		a.Plan(profile(2048, -1, 1024, 1024))
		var blocks []alloc.Block
		for _, n := range []device.Size{2048, 1024, 1024} {
			b, err := a.Alloc(alloc.Request{Size: n})
			require.NoError(t, err)
			at, err := a.BlockAt(b.Addr)
			require.NoError(t, err)
			require.Equal(t, n, at.Requested)
			blocks = append(blocks, b)
		}
		require.Equal(t, 3, a.Stats().Live)
		require.NotEqual(t, blocks[0].Addr, blocks[1].Addr, "addresses name blocks")
		require.Equal(t, check == stalloc.CheckOff, blocks[2].Addr == blocks[0].Addr.Add(1024))
		for _, b := range blocks {
			require.NoError(t, a.Free(b.Addr))
			require.ErrorIs(t, a.Free(b.Addr), alloc.ErrInvalidFree)
		}
		require.NoError(t, a.Check())
	}
}

// TestTheSuiteFindsTheOverlap runs the property suite on the setting that checks no place. It must
// find two live blocks that share bytes, and shrink the run to a handful of calls.
func TestTheSuiteFindsTheOverlap(t *testing.T) {
	_, err := props.Verify(unchecked(), props.Options{Sequences: 100})
	require.NoError(t, err, "without a plan there is nothing to deviate from")
	_, err = props.Verify(unchecked().Misled(), props.Options{})
	var found *props.Failure
	require.ErrorAs(t, err, &found)
	require.Equal(t, props.IDisjoint, found.Violation.Number)
	require.LessOrEqual(t, len(found.Sequence), 6, "%v", err)
}

// TestUnusablePlans passes profiles from which nothing can be planned.
func TestUnusablePlans(t *testing.T) {
	most := call(1 << 60)
	for _, f := range []power.Forecast{
		profile(), profile(0, 0, 0), profile(most, most, most, most, most, most, most, most),
	} {
		a := open(t, stalloc.CheckOff)
		a.Plan(f)
		b := get(t, a, 1024)
		require.NoError(t, a.Free(b.Addr))
		require.Equal(t, kib, a.Stats().Reserved)
	}
}

func TestConfigNamesTheField(t *testing.T) {
	_, err := stalloc.New(nil, stalloc.Config{Check: "maybe"})
	require.ErrorContains(t, err, `stalloc: check "maybe": want "on" or "off"`)
	_, err = stalloc.New(nil, stalloc.Config{RegionBytes: 5})
	require.ErrorContains(t, err, "stalloc: region_bytes 5: want a multiple of 512")
}
