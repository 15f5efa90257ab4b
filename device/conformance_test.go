package device_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/devicetest"
	"github.com/vramyard/vramyard/device/sim"
)

// full returns a simulated device that is capable of everything.
func full(t testing.TB, ordinal int) device.Device {
	t.Helper()
	d, err := sim.New(sim.Config{Memory: sim.Filled, Capacity: 256 * device.MiB, Ordinal: uint8(ordinal)})
	require.NoError(t, err)
	return d
}

// forwarding is the least wrapper.
type forwarding struct{ device.Forwarder }

func TestForwarderConforms(t *testing.T) {
	devicetest.Run(t, func(t testing.TB, ordinal int) device.Device {
		return &forwarding{device.Forward(full(t, ordinal))}
	})
}

func TestFaultsWithoutPlanConform(t *testing.T) {
	devicetest.Run(t, func(t testing.TB, ordinal int) device.Device {
		f, err := device.NewFaults(&forwarding{device.Forward(full(t, ordinal))}, device.FaultPlan{})
		require.NoError(t, err)
		return f
	})
}

// TestForwarderHasOnlyTheCapabilitiesOfItsDevice wraps a source of regions alone: what the methods
// say is there is not.
func TestForwarderHasOnlyTheCapabilitiesOfItsDevice(t *testing.T) {
	f := &forwarding{device.Forward(struct{ device.Device }{full(t, 0)})}
	for c := range device.Capabilities {
		require.True(t, device.Implements(f, c), c)
		require.False(t, device.Has(f, c), c)
	}
	_, err := f.CreateHandle(2 * device.MiB)
	require.ErrorIs(t, err, device.ErrUnsupported)
	require.ErrorIs(t, f.Record(1, 1), device.ErrUnsupported)
	_, err = f.AllocAsync(0, 1, 1)
	require.ErrorIs(t, err, device.ErrUnsupported)
	_, _, err = f.MemoryInfo()
	require.ErrorIs(t, err, device.ErrUnsupported)
	require.ErrorIs(t, f.Fill(1, 1, 1), device.ErrUnsupported)
	require.ErrorIs(t, f.Elapse(1), device.ErrUnsupported)
	require.Zero(t, f.Granularity())
	require.Zero(t, f.Now())
}

func TestPlanIsReadAndWritten(t *testing.T) {
	plan := device.FaultPlan{
		Nth: 3, Probability: .5, Seed: 7, Above: device.MiB, Calls: device.CallsOf(device.CallMap, device.CallUnmap),
	}
	text, err := json.Marshal(plan)
	require.NoError(t, err)
	require.JSONEq(t, `{"nth":3,"probability":0.5,"seed":7,"above":1048576,"calls":["map","unmap"]}`, string(text))
	var again device.FaultPlan
	require.NoError(t, json.Unmarshal(text, &again))
	require.Equal(t, plan, again)

	for c := range device.NumCalls {
		text, err := json.Marshal(device.CallsOf(c))
		require.NoError(t, err)
		require.Equal(t, `["`+c.String()+`"]`, string(text))
		var s device.CallSet
		require.NoError(t, json.Unmarshal(text, &s))
		require.Equal(t, device.CallsOf(c), s)
	}
	require.ErrorContains(t, json.Unmarshal([]byte(`{"calls":["map","remap"]}`), &again), `"remap"`)
	require.ErrorContains(t, json.Unmarshal([]byte(`{"calls":7}`), &again), "want a list of names")
}

// TestPlanStrikesOnlyTheCallsItNames counts the calls of its set alone.
func TestPlanStrikesOnlyTheCallsItNames(t *testing.T) {
	f, err := device.NewFaults(full(t, 0),
		device.FaultPlan{Nth: 2, Calls: device.CallsOf(device.CallCreateHandle, device.CallRelease)})
	require.NoError(t, err)
	r, err := f.Reserve(device.MiB, 0)
	require.NoError(t, err)
	_, err = f.CreateHandle(2 * device.MiB)
	require.NoError(t, err)
	_, err = f.Reserve(device.MiB, 0)
	require.NoError(t, err)
	err = f.Release(r.Addr)
	require.ErrorIs(t, err, device.ErrInjected)
	require.NotErrorIs(t, err, device.ErrOutOfMemory)
	require.NoError(t, f.Release(r.Addr))
	require.Equal(t, uint64(1), f.Injected())
}
