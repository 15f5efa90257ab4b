package sim_test

import (
	"testing"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/devicetest"
	"github.com/vramyard/vramyard/device/sim"
)

// TestConformance runs the suite on devices that place, know and time differently.
func TestConformance(t *testing.T) {
	for name, c := range map[string]sim.Config{
		"default":  {},
		"bounded":  {Capacity: 256 * device.MiB},
		"placed":   {Memory: sim.Placed, Capacity: device.GiB},
		"filled":   {Memory: sim.Filled, Capacity: 256 * device.MiB},
		"timed":    {Memory: sim.Filled, Clock: sim.Timed},
		"fine":     {Memory: sim.Filled, Align: 256, Granularity: 64 * device.KiB},
		"charging": {Memory: sim.Filled, Charge: 2 * device.MiB, Capacity: 512 * device.MiB},
		"gap":      {Gap: 3 * device.MiB, Clock: sim.Timed},
		"bump":     {Memory: sim.Filled, Policy: sim.Bump},
		"top-down": {Memory: sim.Filled, Policy: sim.TopDown, Capacity: 300 * device.MiB},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			devicetest.Run(t, func(t testing.TB, ordinal int) device.Device {
				of := c
				of.Ordinal = uint8(ordinal)
				return newDevice(t, of)
			})
		})
	}
}
