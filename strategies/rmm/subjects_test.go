package rmm_test

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies/rmm"
)

// subjects are the configurations that the property suite runs, with what each promises.
func subjects() []props.Subject {
	const kib = device.KiB
	return []props.Subject{
		subject("default", rmm.Config{}, 64*kib),
		subject("growth", rmm.Config{InitialBytes: rmm.NoInitial}, 64*kib),
		subject("limit", rmm.Config{InitialBytes: 4 * kib, Limit: device.MiB + 256}, 3*device.MiB/2),
		subject("arena", rmm.Config{Resource: rmm.Arena}, 16*device.MiB),
		subject("arena-small", rmm.Config{Resource: rmm.Arena, InitialBytes: 5*device.MiB/2 + 256}, 3*device.MiB),
		subject("binning", rmm.Config{
			Resource: rmm.Binning, MinBinBytes: 256, MaxBinBytes: kib, BinBlocks: 3, InitialBytes: rmm.NoInitial,
		}, 64*kib),
		subject("binning-half", rmm.Config{
			Resource: rmm.Binning, MinBinBytes: 512, MaxBinBytes: 4 * kib, BinBlocks: 2, Limit: 768 * kib,
		}, device.MiB),
	}
}

// subject is a memory resource over a device that runs out soon.
func subject(name string, c rmm.Config, capacity device.Size) props.Subject {
	c, err := c.WithDefaults()
	if err != nil {
		panic(err) // the configurations above are sound
	}
	return props.SubjectOf(name, rmm.New, c, sim.Config{Capacity: capacity, Align: 256}, c.Promises())
}
