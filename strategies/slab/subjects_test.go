package slab_test

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies/slab"
)

// roomy is a slab with slabs of many slots: bit maps of several words.
var roomy = slab.Config{SlabBytes: 64 * device.KiB, RegionBytes: 128 * device.KiB, MaxClassBytes: 16 * device.KiB,
	SlabSlots: 3}

// subjects are the configurations that the property suite runs, with what each promises.
func subjects() []props.Subject {
	return []props.Subject{
		subject("bare", slab.Config{}, device.MiB),
		subject("tiny", slab.Config{
			SlabBytes: 4 * device.KiB, RegionBytes: 8 * device.KiB, Growth: "fixed", Selection: slab.Lowest,
			SlabSlots: 1, MaxClassBytes: 4 * device.KiB, Release: true, Waste: 16,
		}, 96*device.KiB),
		subject("magazines", slab.Config{
			SlabBytes: 8 * device.KiB, SlabSlots: 2, MaxClassBytes: 16 * device.KiB, RegionBytes: 16 * device.KiB,
			Classes:        slab.ClassesPow2,
			MagazineRounds: 3, Depot: 2, EmptySlabs: 1, Selection: slab.Lifo, Growth: "request",
		}, 128*device.KiB),
		subject("streams", slab.Config{
			Segments: 3, SlabBytes: 2 * device.KiB, SlabSlots: 4, MaxClassBytes: 4 * device.KiB, RegionBytes: 8 * device.KiB,
			EmptySlabs: 1, Classes: slab.ClassesK8,
			Release: true, KeepBytes: 16 * device.KiB, Growth: "doubling", Limit: 100 * device.KiB,
		}, 128*device.KiB),
		subject("selfish", slab.Config{
			Segments: 2, Assign: slab.AssignRoundRobin, Steal: slab.StealOff, SlabBytes: 8 * device.KiB,
			SlabSlots: 1, MaxClassBytes: 8 * device.KiB, RegionBytes: 8 * device.KiB, Classes: slab.ClassesK2,
			Selection:      slab.Emptiest,
			MagazineRounds: 2, Depot: 1,
		}, 96*device.KiB),
		subject("whole", slab.Config{
			Segments: 2, Assign: slab.AssignRoundRobin, SlabBytes: 4 * device.KiB, SlabSlots: 1, Growth: "whole",
			Limit:   64 * device.KiB,
			Quantum: 128, Selection: slab.Fifo, ClassSizes: []device.Size{128, 300, 1000, 4096}, EmptySlabs: 2,
		}, 128*device.KiB),
		subject("depots", slab.Config{
			// Small magazines pass from segment to segment: those of one soon have slots of the other.
			Segments: 2, SlabBytes: device.KiB, SlabSlots: 1, MaxClassBytes: device.KiB, Classes: slab.ClassesPow2,
			MagazineRounds: 2, Depot: 1, EmptySlabs: 1,
		}, 32*device.KiB),
		subject("kept", slab.Config{
			SlabBytes: device.KiB, SlabSlots: 1, MaxClassBytes: device.KiB, Classes: slab.ClassesPow2, LargeWaste: 4,
			Release: true,
		}, 64*device.KiB),
		subject("roomy", roomy, 512*device.KiB),
	}
}

// subject is a slab over a device of n bytes.
func subject(name string, c slab.Config, n device.Size) props.Subject {
	c, err := c.WithDefaults()
	if err != nil {
		panic(err) // a mistake in the list above
	}
	return props.SubjectOf(name, slab.New, c, sim.Config{Capacity: n, Align: 256}, c.Promises())
}
