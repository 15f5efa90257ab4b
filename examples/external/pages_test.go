package main

import (
	"testing"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/propstest"
)

// subject is a pool of pages on a device of the same capacity.
func subject(name string, page, capacity device.Size) props.Subject {
	c := Config{Page: page, Capacity: capacity}
	return props.SubjectOf(name, New, c, sim.Config{Capacity: capacity}, c.Promises())
}

func TestConformance(t *testing.T) {
	propstest.Run(t, subject("16 pages", 256, 4*device.KiB), subject("64 pages", 64*device.KiB, 4*device.MiB))
}

func BenchmarkPair(b *testing.B) {
	propstest.Lognormal.At(100, 1_000, 10_000).Over(10_000).Bench(b, subject("pages", 64*device.KiB, device.GiB))
}

func FuzzConformance(f *testing.F) {
	propstest.Fuzz(f, subject("16 pages", 256, 4*device.KiB))
}
