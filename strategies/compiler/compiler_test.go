package compiler_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/compiler"
)

// open returns a compiler with pages of 4 KiB over a device of 64 pages.
func open(t *testing.T) (*compiler.Allocator, *sim.Device) {
	t.Helper()
	gpu, err := sim.New(sim.Config{Capacity: 64 * page, Granularity: page})
	require.NoError(t, err)
	a, err := compiler.New(gpu, compiler.Config{PageBytes: page, RegionBytes: page})
	require.NoError(t, err)
	return a, gpu
}

// get requests a block and returns its address.
func get(t *testing.T, a *compiler.Allocator, pages device.Size) device.Addr {
	t.Helper()
	b, err := a.Alloc(alloc.Request{Size: pages * page})
	require.NoError(t, err)
	require.NoError(t, a.Check())
	return b.Addr
}

func free(t *testing.T, a *compiler.Allocator, at ...device.Addr) {
	t.Helper()
	for _, x := range at {
		require.NoError(t, a.Free(x))
		require.NoError(t, a.Check())
	}
}

// iteration requests two blocks, frees both, requests one as large as both, and frees it.
func iteration(t *testing.T, a *compiler.Allocator) (at [3]device.Addr) {
	t.Helper()
	at[0], at[1] = get(t, a, 1), get(t, a, 2)
	free(t, a, at[0], at[1])
	at[2] = get(t, a, 3)
	free(t, a, at[2])
	return at
}

// TestReplay records an iteration: the pages of two blocks are mapped again for one of their total
// size. The next iterations get the same addresses without a device call.
func TestReplay(t *testing.T) {
	a, gpu := open(t)
	a.Mark("iter 0")
	first := iteration(t, a)
	require.Equal(t, 3*page, a.Stats().Reserved, "the peak of the live pages")
	calls := gpu.Usage().Calls.Total()
	for range 3 {
		a.Mark("iter 1")
		require.Equal(t, first, iteration(t, a))
	}
	require.Equal(t, calls, gpu.Usage().Calls.Total())
}

// TestGraphBreak replays another size: the rest of the iteration goes to the fallback, the next one
// is recorded again, and the one after it is a replay.
func TestGraphBreak(t *testing.T) {
	a, gpu := open(t)
	a.Mark("iter 0")
	iteration(t, a)
	a.Mark("iter 1")
	at := get(t, a, 2)
	free(t, a, at)
	at = get(t, a, 1)
	free(t, a, at)
	require.Equal(t, 5*page, a.Stats().Reserved, "three pages of the failed graph, two of the fallback")
	a.Mark("iter 2")
	again := iteration(t, a)
	require.Equal(t, 5*page, a.Stats().Reserved)
	calls := gpu.Usage().Calls.Total()
	a.Mark("iter 3")
	require.Equal(t, again, iteration(t, a))
	require.Equal(t, calls, gpu.Usage().Calls.Total())
}

// TestPagesInUseBreakTheGraph keeps a block until its request comes again.
func TestPagesInUseBreakTheGraph(t *testing.T) {
	a, _ := open(t)
	a.Mark("iter 0")
	kept := get(t, a, 1)
	a.Mark("iter 1")
	require.NotEqual(t, kept, get(t, a, 1))
}

// TestMemoryMovesBetweenBoth fills the device with free memory of one part: a request that the
// other part serves gets it.
func TestMemoryMovesBetweenBoth(t *testing.T) {
	a, _ := open(t)
	free(t, a, get(t, a, 60)) // no iteration yet: the fallback
	a.Mark("iter 0")
	free(t, a, get(t, a, 60))
	require.LessOrEqual(t, a.Stats().Reserved, 64*page)
	a.Mark("iter 1")
	get(t, a, 59) // a graph break
	require.LessOrEqual(t, a.Stats().Reserved, 64*page)
}

func TestConfigNamesTheField(t *testing.T) {
	_, err := compiler.New(nil, compiler.Config{PageBytes: 5})
	require.ErrorContains(t, err, "compiler: page_bytes 5: want a power of two from 512B to 1GiB")
	_, err = compiler.New(nil, compiler.Config{RegionBytes: 5})
	require.ErrorContains(t, err, "compiler: region_bytes 5: want a multiple of 512")
}
