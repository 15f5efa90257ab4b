package device_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

// faulty returns a simulated device behind a plan.
func faulty(t *testing.T, plan device.FaultPlan) *device.Faults {
	t.Helper()
	d, err := sim.New(sim.Config{})
	require.NoError(t, err)
	f, err := device.NewFaults(d, plan)
	require.NoError(t, err)
	return f
}

func TestNthCallFails(t *testing.T) {
	f := faulty(t, device.FaultPlan{Nth: 2})
	r, err := f.Reserve(256, 0)
	require.NoError(t, err)
	err = f.Release(r.Addr) // the second call
	require.ErrorIs(t, err, device.ErrInjected)
	require.Equal(t, device.Size(256), f.Usage().Held, "a refused release leaves the region held")
	require.NoError(t, f.Release(r.Addr))
	require.Equal(t, device.Calls{device.CallReserve: {Done: 1}, device.CallRelease: {Done: 1, Failed: 1}},
		f.Usage().Calls)
	require.Equal(t, uint64(1), f.Injected())
}

func TestLargeReservationsFail(t *testing.T) {
	f := faulty(t, device.FaultPlan{Above: 1024})
	_, err := f.Reserve(1024, 0)
	require.NoError(t, err)
	_, err = f.Reserve(1025, 0)
	require.ErrorIs(t, err, device.ErrOutOfMemory)
	require.ErrorIs(t, err, device.ErrInjected)
	require.Equal(t, device.Calls{device.CallReserve: {Done: 1, Failed: 1}}, f.Usage().Calls)
}

func TestSeedDecidesWhichCallsFail(t *testing.T) {
	failures := func(seed uint64) (failed []int) {
		f := faulty(t, device.FaultPlan{Probability: .3, Seed: seed})
		for i := range 1000 {
			if _, err := f.Reserve(256, 0); err != nil {
				failed = append(failed, i)
			}
		}
		return failed
	}
	require.Equal(t, failures(1), failures(1))
	require.NotEqual(t, failures(1), failures(2))
	require.InDelta(t, 300, len(failures(1)), 60)
}

func TestFailNext(t *testing.T) {
	f := faulty(t, device.FaultPlan{})
	f.FailNext(2)
	for range 2 {
		_, err := f.Reserve(256, 0)
		require.ErrorIs(t, err, device.ErrInjected)
	}
	_, err := f.Reserve(256, 0)
	require.NoError(t, err)
}

func TestPlanIsValidated(t *testing.T) {
	d, err := sim.New(sim.Config{})
	require.NoError(t, err)
	for _, p := range []float64{-.1, 1.1} {
		_, err := device.NewFaults(d, device.FaultPlan{Probability: p})
		require.ErrorContains(t, err, "probability")
	}
}
