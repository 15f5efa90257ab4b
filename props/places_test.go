package props_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/props"
)

func TestPlaced(t *testing.T) {
	b := alloc.Block{Addr: base, Size: 64}
	was, is := alloc.Stats{Reserved: 64}, alloc.Stats{Reserved: 192}
	require.NoError(t, props.Placed(b, promise.Placement{}, was, is), "nothing is promised")
	require.NoError(t, props.Placed(b, promise.Placement{Size: 64, Takes: 128}, was, is), "anywhere")
	require.NoError(t, props.Placed(b, promise.Placement{Addr: base, Size: 64, Takes: 128}, was, is))
	requireBroken(t, props.IPlacement, props.Placed(b, promise.Placement{Addr: base + 64, Size: 64, Takes: 128}, was, is))
	requireBroken(t, props.IPlacement, props.Placed(b, promise.Placement{Addr: base, Size: 128, Takes: 128}, was, is))
	requireBroken(t, props.IPlacement, props.Placed(b, promise.Placement{Addr: base, Size: 64}, was, is))
	requireBroken(t, props.IPlacement, props.Placed(b, promise.Placement{Addr: base, Size: 64}, is, was))
}

func TestReturnedInOrder(t *testing.T) {
	walk := append(walkOf(64, 64), walkOf(256)...)
	walk[2].Region, walk[2].Addr = base+4096, base+4096
	low, high := device.Region{Addr: base, Size: 128}, device.Region{Addr: base + 4096, Size: 256}
	part := device.Region{Addr: base, Size: 64}
	for _, right := range [][]device.Region{nil, {high}, {low, high}, {low, part, high}} {
		require.NoError(t, props.ReturnedInOrder(walk, right, promise.BySizeThenAddress))
	}
	requireBroken(t, props.IReturnOrder, props.ReturnedInOrder(walk, []device.Region{high, low},
		promise.BySizeThenAddress))
	requireBroken(t, props.IReturnOrder, props.ReturnedInOrder(walk, []device.Region{high, part, low},
		promise.BySizeThenAddress))
}
