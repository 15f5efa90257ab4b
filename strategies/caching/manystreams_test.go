package caching_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/caching"
)

// TestATrimForgetsIdleStreams leaves a segment cached for each of many streams, and trims.
func TestATrimForgetsIdleStreams(t *testing.T) {
	gpu, err := sim.New(sim.Config{})
	require.NoError(t, err)
	a, err := caching.New(gpu, caching.Config{})
	require.NoError(t, err)
	for s := range device.Stream(2_000) {
		b, err := a.Alloc(alloc.Request{Size: device.MiB, Stream: s})
		require.NoError(t, err)
		require.NoError(t, a.Free(b.Addr))
		require.Equal(t, 2*device.MiB, a.LargestFree())
	}
	held := a.MetadataBytes()
	_, err = a.Trim()
	require.NoError(t, err)
	require.Zero(t, a.LargestFree())
	require.NoError(t, a.Check())
	require.Less(t, a.MetadataBytes(), held/4)
	b, err := a.Alloc(alloc.Request{Size: device.MiB, Stream: 7})
	require.NoError(t, err)
	require.NoError(t, a.Free(b.Addr))
	require.NoError(t, a.Check())
}
