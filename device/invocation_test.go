package device_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
)

// TestInvocationMakesEveryCall makes a call of each kind on a device that has every capability,
// and on one that has none.
func TestInvocationMakesEveryCall(t *testing.T) {
	d := full(t, 0)
	for c := range device.NumCalls {
		v := device.Invocation{Call: c, Size: 2 * device.MiB}
		was := d.Usage().Calls[c]
		v.On(d)
		now := d.Usage().Calls[c]
		require.NotErrorIs(t, v.Err, device.ErrUnsupported, c)
		require.True(t, now != was || v.Err != nil, "%v was not made: %v", c, v)
		require.True(t, strings.HasPrefix(v.String(), c.String()), v)
		if _, optional := c.Capability(); optional {
			v.On(struct{ device.Device }{d})
			require.ErrorIs(t, v.Err, device.ErrUnsupported, c)
		}
	}
}

// TestHook changes the arguments and the results of a call, and refuses another.
func TestHook(t *testing.T) {
	var seen []string
	f := device.Hooked(full(t, 0), device.Hook{
		Before: func(v *device.Invocation) error {
			if v.Call == device.CallReserveRange {
				return device.ErrInjected
			}
			v.Size *= 2
			return nil
		},
		After: func(v *device.Invocation) {
			seen = append(seen, v.String())
			v.Region.Addr++
		},
	})
	r, err := f.Reserve(device.MiB, 0)
	require.NoError(t, err)
	require.Equal(t, 2*device.MiB, r.Size)
	require.False(t, r.Addr.IsAligned(2))
	_, err = f.ReserveRange(2*device.MiB, 0, 0)
	require.ErrorIs(t, err, device.ErrInjected)
	require.Equal(t, []string{"reserve 2097152"}, seen)

	calls := 0
	f = device.Hooked(full(t, 0), device.Hook{After: func(*device.Invocation) { calls++ }})
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = f.Done(7) }), "a hook takes nothing from the heap")
	require.Equal(t, 101, calls)
}
