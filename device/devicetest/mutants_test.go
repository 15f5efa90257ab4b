package devicetest_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/devicetest"
	"github.com/vramyard/vramyard/device/sim"
)

// mutant is a correct device with one or two methods replaced. It corrects the counts of calls, so
// that a check must detect the wrong behavior and not a wrong count.
type mutant struct {
	device.Forwarder
	made     device.Calls // calls to add to the counts; a wrapped number subtracts
	forgiven device.Calls // Done: failed calls that return success here; Failed: failed calls not to count
	account  func(*device.Usage)
}

// Usage implements [device.Device].
func (m *mutant) Usage() device.Usage {
	u := m.Forwarder.Usage()
	for c := range u.Calls {
		u.Calls[c].Done += m.forgiven[c].Done + m.made[c].Done
		u.Calls[c].Failed += m.made[c].Failed - m.forgiven[c].Done - m.forgiven[c].Failed
	}
	if m.account != nil {
		m.account(&u)
	}
	return u
}

// forgive turns an error into success.
func (m *mutant) forgive(c device.Call, err, which error) error {
	if err == nil || !errors.Is(err, which) {
		return err
	}
	m.forgiven[c].Done++
	return nil
}

// skip answers a call without making it.
func (m *mutant) skip(c device.Call) error {
	m.made[c].Done++
	return nil
}

// open returns a maker of correct simulated devices, each inside a wrapper.
func open(c sim.Config, wrap func(mutant) device.Device) devicetest.Maker {
	return func(t testing.TB, ordinal int) device.Device {
		config := c
		config.Ordinal = uint8(ordinal)
		d, err := sim.New(config)
		require.NoError(t, err)
		return wrap(mutant{Forwarder: device.Forward(d)})
	}
}

// filled is a simulated device with every capability.
var filled = sim.Config{Memory: sim.Filled, Capacity: 256 * device.MiB, Align: 4 * device.KiB,
	Granularity: 64 * device.KiB}

// mutants are devices that break one promise each.
var mutants = slices.Concat(regionMutants, virtualMutants, contentsMutants, streamMutants, poolMutants)

// broken is a device that breaks a promise, and a check that must find it.
type broken struct {
	promise string
	by      string
	wrap    func(mutant) device.Device
}

func TestSuiteFindsBrokenPromises(t *testing.T) {
	checks := maps.Collect(devicetest.Checks)
	for _, b := range mutants {
		t.Run(b.promise, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, checks, b.by)
			r := runCheck(t, checks[b.by], open(filled, b.wrap))
			require.NotEmpty(t, r.errors, "%s reports no error", b.by)
			t.Logf("%s: %s", b.by, r.errors[0])
		})
	}
}

func TestCorrectDevicePasses(t *testing.T) {
	for name, check := range devicetest.Checks {
		r := runCheck(t, check, open(filled, func(m mutant) device.Device { return &m }))
		require.Empty(t, r.errors, name)
		require.False(t, r.skipped, "%s: the device lacks a capability", name)
	}
}

// TestDevicesWithEqualOrdinalsAreFound gives both devices the ordinal 0.
func TestDevicesWithEqualOrdinalsAreFound(t *testing.T) {
	found := map[string]bool{}
	for name, check := range devicetest.Checks {
		r := runCheck(t, check, func(t testing.TB, _ int) device.Device {
			d, err := sim.New(filled)
			require.NoError(t, err)
			return d
		})
		found[name] = len(r.errors) > 0
	}
	require.True(t, found["HandlesAreNotMisused"])
	require.True(t, found["EventsAreNotMisused"])
	require.False(t, found["RegionsAreReleasedOnce"])
}

// TestDeviceWithRegionsOnlyPasses checks that the checks of all other capabilities are skipped.
func TestDeviceWithRegionsOnlyPasses(t *testing.T) {
	skipped := 0
	for name, check := range devicetest.Checks {
		r := runCheck(t, check, func(t testing.TB, _ int) device.Device {
			d, err := sim.New(sim.Config{})
			require.NoError(t, err)
			return struct{ device.Device }{d}
		})
		require.Empty(t, r.errors, name)
		if r.skipped {
			skipped++
		}
	}
	require.Greater(t, skipped, 20)
}
