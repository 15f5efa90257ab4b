package slab_test

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies/slab"
)

// roomy is a modern slab with slabs of many slots: bit maps of several words.
var roomy = slab.Config{SlabBytes: 64 * device.KiB, RegionBytes: 128 * device.KiB, MaxClassBytes: 16 * device.KiB, SlabSlots: 3}

// subjects are the configurations that the property suite runs, with what each promises.
func subjects() []props.Subject {
	return []props.Subject{
		runs("xdl-one-segment", slab.Config{Segments: 1, UnitBytes: 256, RegionBytes: 16 * device.KiB}, 1),
		runs("xdl-three-segments", slab.Config{Segments: 3, UnitBytes: 512, RegionBytes: 192 * device.KiB}, 1),
		runs("xdl-odd-unit", slab.Config{Segments: 2, UnitBytes: 768, RegionBytes: 96 * device.KiB}, 1),
		runs("xdl-tiny", slab.Config{Segments: 32, UnitBytes: 1, RegionBytes: 2 * device.KiB}, 1),
		runs("xdl", slab.Config{Segments: 32, UnitBytes: 4 * device.KiB, RegionBytes: 16 * device.MiB}, 2),
		lists("blaze-tiny", slab.Config{MinClassBytes: 2, MaxClassBytes: device.KiB, RegionBytes: 4 * device.KiB}),
		lists("blaze-aligned", slab.Config{MinClassBytes: 256, MaxClassBytes: 64 * device.KiB, RegionBytes: 192 * device.KiB}),
		modern("bare", slab.Config{}, device.MiB),
		modern("tiny", slab.Config{
			SlabBytes: 4 * device.KiB, RegionBytes: 8 * device.KiB, Growth: "fixed", Selection: slab.Lowest,
			SlabSlots: 1, MaxClassBytes: 4 * device.KiB, Release: true, AlignBytes: 256, Waste: 16,
		}, 96*device.KiB),
		modern("magazines", slab.Config{
			SlabBytes: 8 * device.KiB, SlabSlots: 2, MaxClassBytes: 16 * device.KiB, RegionBytes: 16 * device.KiB, Classes: slab.ClassesPow2,
			MagazineRounds: 3, Depot: 2, Interval: 16, EmptySlabs: 1, Selection: slab.Lifo, Growth: "request",
		}, 128*device.KiB),
		modern("streams", slab.Config{
			Segments: 3, SlabBytes: 2 * device.KiB, SlabSlots: 4, MaxClassBytes: 4 * device.KiB, RegionBytes: 8 * device.KiB, EmptySlabs: 1, Classes: slab.ClassesK8,
			Release: true, KeepBytes: 16 * device.KiB, Growth: "doubling", Limit: 100 * device.KiB,
		}, 128*device.KiB),
		modern("selfish", slab.Config{
			Segments: 2, Assign: slab.AssignRoundRobin, Steal: slab.StealOff, SlabBytes: 8 * device.KiB,
			SlabSlots: 1, MaxClassBytes: 8 * device.KiB, RegionBytes: 8 * device.KiB, Classes: slab.ClassesK2, Selection: slab.Emptiest,
			MagazineRounds: 2, Depot: 1, Interval: 64,
		}, 96*device.KiB),
		modern("whole", slab.Config{
			Segments: 2, Assign: slab.AssignRoundRobin, SlabBytes: 4 * device.KiB, SlabSlots: 1, Growth: "whole", Limit: 64 * device.KiB,
			Quantum: 128, Selection: slab.Fifo, Steal: slab.StealEarly, ClassSizes: []device.Size{128, 300, 1000, 4096}, EmptySlabs: 2,
		}, 128*device.KiB),
		modern("depots", slab.Config{
			// Small magazines pass from segment to segment: those of one soon have slots of the other.
			Segments: 2, SlabBytes: device.KiB, SlabSlots: 1, MaxClassBytes: device.KiB, Classes: slab.ClassesPow2,
			MagazineRounds: 2, Depot: 1, EmptySlabs: 1, Steal: slab.StealEarly,
		}, 32*device.KiB),
		modern("roomy", roomy, 512*device.KiB),
		lists("blaze", slab.Config{MinClassBytes: 2, MaxClassBytes: 256 * device.MiB, RegionBytes: device.GiB}),
	}
}

// runs is a slab of mode "xdl" over a device with room for some regions.
func runs(name string, c slab.Config, regions device.Size) props.Subject {
	c.Compat = slab.CompatXDL
	on := sim.Config{Capacity: regions * c.RegionBytes, Align: 256, Policy: sim.TopDown}
	return props.SubjectOf(name, slab.New, c, on, c.Promises())
}

// lists is a slab of mode "blaze" over a device with room for four regions.
func lists(name string, c slab.Config) props.Subject {
	c.Compat = slab.CompatBlaze
	return props.SubjectOf(name, slab.New, c, sim.Config{Capacity: 4 * c.RegionBytes, Align: 256}, c.Promises())
}

// modern is a slab of the modern mode over a device of n bytes.
func modern(name string, c slab.Config, n device.Size) props.Subject {
	c, err := c.WithDefaults()
	if err != nil {
		panic(err) // a mistake in the list above
	}
	return props.SubjectOf(name, slab.New, c, sim.Config{Capacity: n, Align: 256}, c.Promises())
}
