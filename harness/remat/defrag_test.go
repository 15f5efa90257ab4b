package remat_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
)

// fill allocates blocks of these KiB, from the low end up, and returns the list of blocks to move.
// A block of negative size is not in the list.
func fill(t *testing.T, p *remat.Space, kib ...int) (moves []remat.OwnedBlock) {
	for i, k := range kib {
		size, owner := device.Size(max(k, -k))<<10, remat.Owner(i)+1
		b, ok := p.Alloc(size, owner)
		require.True(t, ok)
		if k > 0 {
			moves = append(moves, remat.OwnedBlock{Owner: owner, Size: size, Block: b})
		}
	}
	return moves
}

// sizes returns the requested KiB.
func sizes(list []remat.OwnedBlock) (kib []int) {
	for _, m := range list {
		kib = append(kib, int(m.Size>>10))
	}
	return kib
}

func TestMoveRetriesLargestFirst(t *testing.T) {
	p := over(t, "bestfit:strict", 64<<10)
	list := fill(t, p, 10, -4, 8, 42)
	list[0], list[1] = list[1], list[0] // 8 KiB first: they would take the hole of 10 KiB
	require.Zero(t, p.Move(list, remat.Reallocate))
	require.Equal(t, []int{8, 10, 42}, sizes(list), "the list keeps its order")
	base := device.Addr(0x7f0000000000)
	require.Equal(t, []device.Size{56 << 10, 0, 14 << 10},
		[]device.Size{list[0].Block.Addr.Sub(base), list[1].Block.Addr.Sub(base), list[2].Block.Addr.Sub(base)})
	require.NoError(t, p.Check())
}

func TestMoveReportsTheBlockWithoutAPlace(t *testing.T) {
	p := over(t, "bestfit:strict", 26<<10)
	list := fill(t, p, 6, 3, 3, -1, 5, 5, 2, -1)
	list[1], list[2], list[3], list[4] = list[3], list[4], list[1], list[2] // largest first
	require.Equal(t, device.Size(2<<10), p.Move(list, remat.Reallocate), "6 and 5, then 5, 3 and 3 leave 1 KiB twice")
	require.Equal(t, remat.OOMFragmentation, p.Classify(2<<10))
}

// lossySpace is a space whose Move always reports a block without a place.
type lossySpace struct{ *remat.Space }

func (b lossySpace) Move(list []remat.OwnedBlock, _ remat.MoveMode) device.Size {
	return list[0].Size
}

func TestBlockWithoutAPlaceEndsTheRun(t *testing.T) {
	s := logOf(t, "syn_unet4")
	c := remat.Config{Heuristic: "eq", Liveness: "eager", Ladder: "defrag-first"}
	budget := peakOf(t, s, "eager") * 8 / 10
	whole, err := remat.Run(s, over(t, "bestfit", budget), c)
	require.NoError(t, err)
	require.Equal(t, remat.OK, whole.Verdict)
	require.Positive(t, whole.Moves.Defrags)
	lost, err := remat.Run(s, lossySpace{over(t, "bestfit", budget)}, c)
	require.NoError(t, err)
	require.NotEqual(t, remat.OK, lost.Verdict)
	require.Less(t, lost.Runs, whole.Runs)
	require.Zero(t, lost.Moves)
}

func TestMoveTimeFollowsTheCostModel(t *testing.T) {
	s := logOf(t, "syn_unet4")
	budget := peakOf(t, s, "eager") * 8 / 10
	run := func(kind string) remat.Moves {
		c := remat.Config{Heuristic: "eq", Liveness: "eager", Ladder: "defrag-first", Defrag: remat.Defrag{Kind: kind,
			Costs: remat.MoveCosts{PCIe: 1e9, HBM: 1e9, Sync: 7, Alloc: 100, Launch: 1000, Remap: 10, Map: 3, Page: 1}}}
		res, err := remat.Run(s, over(t, "bestfit", budget), c)
		require.NoError(t, err)
		require.Equal(t, remat.OK, res.Verdict)
		require.Positive(t, res.Moves.Defrags)
		return res.Moves
	}
	m := run("slide") // a byte takes a nanosecond
	require.Equal(t, 2*m.Bytes+1000*int64(m.Blocks), m.Time)
	m = run("bounce")
	require.Equal(t, 2*m.Bytes+2*7*int64(m.Defrags)+100*int64(m.Blocks), m.Time)
	m = run("remap")
	require.Equal(t, 3*m.Bytes+10*int64(m.Blocks), m.Time)
}
