package direct_test

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies/direct"
)

// subjects are the devices that the property suite runs direct allocation on.
func subjects() []props.Subject {
	const kib = device.KiB
	return []props.Subject{
		subject("fine", sim.Config{Capacity: 64 * kib, Align: 256}),
		subject("coarse", sim.Config{Capacity: 256 * kib, Align: 4 * kib, Round: 4 * kib, Policy: sim.TopDown}),
		subject("charged", sim.Config{Capacity: 256 * kib, Align: 512, Charge: 16 * kib, Policy: sim.Bump}),
	}
}

// subject is direct allocation on a device that runs out soon.
func subject(name string, on sim.Config) props.Subject {
	return props.SubjectOf(name, direct.New, direct.Config{}, on, direct.Config{}.Promises())
}
