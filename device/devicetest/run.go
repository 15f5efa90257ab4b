package devicetest

import (
	"flag"
	"testing"

	"github.com/vramyard/vramyard/device"
)

var flagSeed = flag.Uint64("devicetest.seed", 1, "seed of the random sequences of calls")

// Maker returns a fresh device, or the real one, with the ordinal 0 or 1. Handles, events and
// pools of devices with different ordinals are foreign to each other.
type Maker func(t testing.TB, ordinal int) device.Device

// Run checks that a device fulfills the contract of package device, with a subtest for each
// promise.
func Run(t *testing.T, open Maker) {
	t.Helper()
	for name, check := range Checks {
		t.Run(name, func(t *testing.T) { check(t, open) })
	}
}

// Checks yields each check of the suite with its name. It is for programs that run the suite
// without go test, or a part of it; tests call [Run].
func Checks(yield func(name string, check func(t testing.TB, open Maker)) bool) {
	for _, group := range [][]promise{
		regionPromises, virtualPromises, misusePromises, contentsPromises,
		streamPromises, timelinePromises, poolPromises, randomPromises, faultPromises,
	} {
		for _, p := range group {
			if !yield(p.name, p.check) {
				return
			}
		}
	}
}

// promise is a property that every device must have.
type promise struct {
	name  string
	needs []device.Capability
	run   func(*rig)
}

// check verifies the promise on a fresh device, and that everything was released.
func (p promise) check(t testing.TB, open Maker) {
	t.Helper()
	d := open(t, 0)
	for _, c := range p.needs {
		if !device.Has(d, c) {
			t.Skipf("the device has no %v", c)
		}
	}
	r := newRig(t, d)
	r.open = open
	p.run(r)
	r.finish()
}
