package alloc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/regions"
)

func TestSourceOfAnAllocator(t *testing.T) {
	below := newToy(1)
	src := wrap.SourceOf(below)
	_, err := src.Reserve(257, 0)
	require.ErrorIs(t, err, device.ErrInvalid)
	r, err := src.Reserve(100, 256)
	require.NoError(t, err)
	require.Equal(t, device.Region{Addr: toyBase, Size: 256}, r)
	_, err = src.Reserve(1, 0)
	require.ErrorIs(t, err, device.ErrOutOfMemory)
	require.ErrorIs(t, src.Release(toyBase+1), device.ErrInvalid)
	require.NoError(t, src.Release(toyBase))

	// A strategy above: its region is a block of the one below.
	above, err := regions.ReserveOne(src, 256, 0)
	require.NoError(t, err)
	require.Equal(t, 1, below.Stats().Live)
	require.NoError(t, above.Close())
	require.Equal(t, 0, below.Stats().Live)
}
