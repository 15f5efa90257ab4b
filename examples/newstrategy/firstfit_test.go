package main

import (
	"testing"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/propstest"
)

// subject is a first fit of the given capacity, on a device of the same capacity.
func subject(name string, capacity device.Size) props.Subject {
	c := Config{Capacity: capacity}
	return props.SubjectOf(name, New, c, sim.Config{Capacity: capacity}, c.Promises())
}

func TestConformance(t *testing.T) {
	propstest.Run(t, subject("tiny", 4*device.KiB), subject("small", device.MiB), subject("default", device.GiB))
}

func BenchmarkPair(b *testing.B) {
	propstest.Lognormal.At(100, 1_000, 10_000).Over(10_000).Bench(b, subject("firstfit", device.GiB))
}

func FuzzConformance(f *testing.F) {
	propstest.Fuzz(f, subject("tiny", 4*device.KiB))
}
