package recall_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/propstest"
	"github.com/vramyard/vramyard/strategies/recall"
)

func TestConformance(t *testing.T) { propstest.Run(t, subjects()...) }

// TestConformanceWithPlan runs sequences that begin in the middle of a planned step.
func TestConformanceWithPlan(t *testing.T) {
	s := subject("plan", recall.Config{Memory: 1 << 10, Limit: 4 * device.MiB})
	var all []*recall.Allocator
	inner := s.New
	s.New = func(src device.Source) (alloc.Strategy, error) {
		a, err := inner(src)
		if x, ok := a.(*recall.Allocator); ok {
			all = append(all, x)
		}
		return a, err
	}
	for _, s := range []props.Subject{s.Trained(), s.Trained().Filled()} {
		all = nil
		r, err := props.Verify(s, props.Options{Sequences: 100, Seed: 1})
		require.NoError(t, err)
		require.Greater(t, r.Grants, 100*200)
		if len(all) == 0 {
			t.Log("plans are not counted: the build tag invariants wraps every instance")
			continue
		}
		plans := uint64(0)
		for _, x := range all {
			plans += x.Recalled().Plans
		}
		require.Positive(t, plans, "the steps lead to no plan: choose others in props/trained.go")
	}
}

func TestEveryKnobIsTurned(t *testing.T) { propstest.EveryKnob(t, subjects()...) }
