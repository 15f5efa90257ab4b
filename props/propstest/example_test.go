package propstest_test

import (
	"testing"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/propstest"
	"github.com/vramyard/vramyard/strategies/tlsf"
)

// The test of a strategy hands its configurations to the suite.
func ExampleRun() {
	_ = func(t *testing.T) {
		config := tlsf.Config{}
		propstest.Run(t, props.SubjectOf("tlsf", tlsf.New, config, sim.Config{Capacity: 64 * device.KiB}, config.Promises()))
	}
}
