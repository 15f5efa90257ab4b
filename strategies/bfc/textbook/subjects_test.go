package textbook_test

import (
	"testing"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/propstest"
	"github.com/vramyard/vramyard/strategies/bfc"
	"github.com/vramyard/vramyard/strategies/bfc/textbook"
)

func TestConformance(t *testing.T) { propstest.Run(t, subjects()...) }

func TestEveryKnobIsTurned(t *testing.T) { propstest.EveryKnob(t, subjects()...) }

func TestMetamorphic(t *testing.T) { propstest.RunMetamorphic(t, subjects()...) }

func FuzzConformance(f *testing.F) { propstest.FuzzEach(f, subjects()...) }

// subjects are the configurations that the property suite runs, with what each promises.
func subjects() (all []props.Subject) {
	for _, c := range []struct {
		name   string
		config textbook.Config
	}{
		{"textbook", textbook.Config{Compat: "textbook", Limit: 16 * device.MiB}},
		{"textbook-growth", textbook.Config{AllowGrowth: true, Limit: 16 * device.MiB}},
		{"textbook-large", textbook.Config{AllowGrowth: true, Limit: 16 * device.GiB}},
	} {
		on := sim.Config{Capacity: c.config.Limit / 4 * 3, Align: 256}
		all = append(all, props.SubjectOf(c.name, textbook.New, c.config, on, c.config.Promises()))
	}
	return all
}

// TestPlacesLikeBFC runs every subject in lockstep with package bfc in the same configuration, over
// devices that refuse the same calls.
func TestPlacesLikeBFC(t *testing.T) {
	for _, s := range subjects() {
		c := s.Config.(textbook.Config)
		like := bfc.Config{Limit: c.Limit, AllowGrowth: c.AllowGrowth, AllocationIDs: true}
		other := props.SubjectOf("bfc", bfc.New, like, s.Device, like.Promises())
		propstest.RunIdentical(t, s, other.Wrapped("reduced", reduce))
	}
}

// reduced is a strategy that, like the textbook's, cannot release regions or free by reference.
type reduced struct{ alloc.Strategy }

func reduce(s alloc.Strategy) (alloc.Strategy, error) { return reduced{s}, nil }

func (s reduced) Alloc(r alloc.Request) (alloc.Block, error) {
	b, err := s.Strategy.Alloc(r)
	b.Ref = 0
	return b, err
}

func (s reduced) ClearStats() { _ = power.ClearStats(s.Strategy) }

func (s reduced) LastRefusal() (power.Refusal, bool) { return power.LastRefusal(s.Strategy) }
