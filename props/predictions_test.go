package props_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/props"
)

func TestJoined(t *testing.T) {
	before := walkOf(64, -64, 128, -64, 64)
	joined := func(after []alloc.Chunk, below, above device.Size, exact bool) error {
		return props.Joined(before, after, before[1], below, above, exact, false)
	}
	require.NoError(t, joined(walkOf(256, -64, 64), 64, 128, true))
	require.NoError(t, joined(walkOf(256, -64, 64), 0, 0, false), "more than was said")
	requireBroken(t, props.INeighbours, joined(walkOf(256, -64, 64), 0, 0, true))
	requireBroken(t, props.INeighbours, joined(walkOf(256, -64, 64), 64, 0, true))
	requireBroken(t, props.INeighbours, joined(walkOf(64, 192, -64, 64), 64, 128, false))
	requireBroken(t, props.INeighbours, joined(walkOf(256, -64, 64), 64, 192, false))  // a live block is no free memory
	requireBroken(t, props.INeighbours, joined(walkOf(256, -64, 64), 128, 128, false)) // the region begins there
	requireBroken(t, props.INeighbours, joined(nil, 64, 128, true))                    // it is gone
	require.NoError(t, props.Joined(before, nil, before[1], 64, 128, true, true), "its region went back")
	require.NoError(t, joined(walkOf(64, 32, 32, 128, -64, 64), 0, 0, true), "it comes apart")
	pending := with(walkOf(64, 64, 128, -64, 64), 1, func(c *alloc.Chunk) { c.State = alloc.Pending })
	require.NoError(t, joined(pending, 0, 0, true))
	requireBroken(t, props.INeighbours, joined(pending, 64, 0, false))
}

func TestForeseen(t *testing.T) {
	r := alloc.Request{Size: 256}
	for _, c := range []struct {
		name                string
		placed, exact, more bool
		answer              error
		broken              bool
	}{
		{name: "granted as said", placed: true, exact: true},
		{name: "refused as said", exact: true, answer: alloc.ErrOutOfMemory},
		{name: "refused after all", placed: true, answer: alloc.ErrOutOfMemory, broken: true},
		{name: "a mistake after all", placed: true, answer: alloc.ErrInvalidRequest, broken: true},
		{name: "granted after all", exact: true, broken: true},
		{name: "granted with more memory", exact: true, more: true},
		{name: "granted, and nothing was promised"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := props.Foreseen(r, []device.Addr{base}, c.placed, c.exact, c.answer, c.more)
			if c.broken {
				requireBroken(t, props.IForeseen, err)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

func TestMoved(t *testing.T) {
	before := walkOf(64, -64, 64, -64, -32)
	before[3].Requested = 63 // so that it stays
	move := func(from, to device.Addr, n device.Size) props.Move {
		return props.Move{From: alloc.Block{Addr: base + from, Size: n}, To: alloc.Block{Addr: base + to, Size: n}}
	}
	require.NoError(t, props.Moved(before, []props.Move{move(64, 0, 64)}, 64, nil))
	require.NoError(t, props.Moved(before, nil, 0, nil))
	for name, err := range map[string]error{
		"it failed":            props.Moved(before, nil, 0, alloc.ErrUnsupported),
		"no block was there":   props.Moved(before, []props.Move{move(0, 0, 64)}, 64, nil),
		"it may not be moved":  props.Moved(before, []props.Move{move(192, 128, 64)}, 64, nil),
		"it goes up":           props.Moved(before, []props.Move{move(64, 128, 64)}, 64, nil),
		"it leaves its region": props.Moved(before, []props.Move{move(64, ^device.Addr(63), 64)}, 64, nil),
		"it shrinks": props.Moved(before, []props.Move{{From: move(64, 0, 64).From, To: move(64, 0, 32).To}}, 64,
			nil),
		"it goes over another":  props.Moved(before, []props.Move{move(256, 224, 32)}, 32, nil),
		"it goes over one late": props.Moved(before, []props.Move{move(256, 64, 32), move(64, 0, 64)}, 96, nil),
		"bytes are miscounted":  props.Moved(before, []props.Move{move(64, 0, 64)}, 65, nil),
	} {
		t.Run(name, func(t *testing.T) { requireBroken(t, props.IMoved, err) })
	}
}

func TestSlid(t *testing.T) {
	before := walkOf(64, -64, 64, -64)
	before[3].Tag = 7
	moves := []props.Move{
		{From: alloc.Block{Addr: base + 64, Size: 64}, To: alloc.Block{Addr: base, Size: 64}},
		{From: alloc.Block{Addr: base + 192, Size: 64}, To: alloc.Block{Addr: base + 64, Size: 64}},
	}
	after := func(second device.Addr) []alloc.Chunk {
		walk := walkOf(-64, -64, 128)
		walk[0].Tag, walk[1].Tag = 2, 7
		if second != 64 {
			walk = walkOf(-64, int(second-64), -64, int(192-second))
			walk[0].Tag, walk[2].Tag = 2, 7
		}
		return walk
	}
	aligned := func(align device.Size) func(alloc.Chunk) device.Size {
		return func(alloc.Chunk) device.Size { return align }
	}
	require.NoError(t, props.Slid(before, after(64), moves, aligned(64)))
	requireBroken(t, props.IMoved, props.Slid(before, after(64), moves, aligned(128)))
	requireBroken(t, props.IMoved, props.Slid(before, after(64), moves[:1], aligned(64)))
	requireBroken(t, props.IMoved, props.Slid(before, after(64)[:1], moves, aligned(64)))
	moves[1].To.Addr = base + 128
	require.NoError(t, props.Slid(before, after(128), moves, aligned(128)))
	requireBroken(t, props.IMoved, props.Slid(before, after(128), moves, aligned(64)))
}
