package pgmo

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
)

// TestArrangeByHand follows the heuristic on four blocks. The two long ones are stacked first; the
// line that is left of the second is lifted to it, and the others go on top.
func TestArrangeByHand(t *testing.T) {
	b := []buffer{{birth: 0, death: 10, size: 4}, {birth: 2, death: 10, size: 3}, {birth: 0, death: 3, size: 2},
		{birth: 4, death: 6, size: 1}}
	height, ok := arrange(b, mostSteps)
	require.True(t, ok)
	require.Equal(t, device.Size(9), height)
	require.Equal(t, []device.Size{0, 4, 7, 7}, []device.Size{b[0].offset, b[1].offset, b[2].offset, b[3].offset})
}

// TestArrangedBlocksAreDisjoint arranges random blocks: no two that live together share bytes, and
// the height is the end of the highest.
func TestArrangedBlocksAreDisjoint(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		b := make([]buffer, rnd.IntN(30))
		for i := range b {
			b[i].birth = rnd.IntN(40)
			b[i].death = b[i].birth + 1 + rnd.IntN(20)
			b[i].size = device.Size(1 + rnd.IntN(9))
		}
		height, ok := arrange(b, mostSteps)
		require.True(t, ok)
		top := device.Size(0)
		for i, x := range b {
			top = max(top, x.offset+x.size)
			for _, y := range b[:i] {
				together := x.birth < y.death && y.birth < x.death
				apart := x.offset+x.size <= y.offset || y.offset+y.size <= x.offset
				require.True(t, !together || apart, "seed %d: %+v and %+v", seed, x, y)
			}
		}
		require.Equal(t, top, height)
	}
}

func TestArrangeStops(t *testing.T) {
	_, ok := arrange([]buffer{{0, 1, 1, 0}, {0, 1, 1, 0}, {0, 1, 1, 0}}, 5)
	require.False(t, ok)
}
