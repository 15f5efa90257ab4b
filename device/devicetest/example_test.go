package devicetest_test

import (
	"testing"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/devicetest"
	"github.com/vramyard/vramyard/device/sim"
)

// The test of a device hands a constructor to the suite.
func ExampleRun() {
	_ = func(t *testing.T) {
		devicetest.Run(t, func(t testing.TB, ordinal int) device.Device {
			d, err := sim.New(sim.Config{Ordinal: uint8(ordinal)})
			if err != nil {
				t.Fatal(err)
			}
			return d
		})
	}
}
