package front_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/regions"
)

// TestOutOfMemoryNamesTheCause refuses a request because of the device, then because of the
// strategy's own bounds.
func TestOutOfMemoryNamesTheCause(t *testing.T) {
	var f front.Front
	v := f.Init(front.Limits{Most: device.GiB}, func() (largest, bytes device.Size) { return 512, 768 })
	r := alloc.Request{Size: 1000}
	for _, cause := range []struct {
		err  error
		want power.Refusal
	}{
		{device.ErrOutOfMemory, power.Refusal{Reason: power.ReasonDevice, Asked: 4096, Device: device.ErrOutOfMemory}},
		{regions.ErrTooMany, power.Refusal{Reason: power.ReasonLimit}},
		{regions.ErrLimit, power.Refusal{Reason: power.ReasonLimit}},
	} {
		require.ErrorIs(t, f.OutOfMemory(&r, 1024, 4096, cause.err), alloc.ErrOutOfMemory)
		cause.want.Request, cause.want.Rounded, cause.want.LargestHole, cause.want.Free = r, 1024, 512, 768
		got, ok := v.LastRefusal()
		require.True(t, ok)
		require.Equal(t, cause.want, got)
	}
	require.EqualValues(t, 3, v.Stats().OOMs)
}
