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
