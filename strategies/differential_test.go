package strategies_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/propstest"
	"github.com/vramyard/vramyard/strategies"
)

// TestStrategiesDifferInPlacementOnly runs every name of the catalogue in lockstep. What
// one of them does not serve is skipped for all, so those with the lowest ceilings and the
// smallest alignments stand aside in turn.
func TestStrategiesDifferInPlacementOnly(t *testing.T) {
	for name, group := range map[string]struct {
		share   int // one in so many of the sequences
		without []string
	}{
		"all":              {6, nil},
		"large requests":   {16, []string{"slab:xdl"}},
		"large alignments": {16, []string{"slab:xdl", "slab:blaze"}},
		"one family":       {16, []string{"slab:xdl", "slab:blaze", "buddy:xdl", "slabbuddy:xdl"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			propstest.RunDifferential(t, group.share, catalogueSubjects(t, group.without...)...)
		})
	}
}

// catalogueSubjects returns a subject over an unlimited device for every name of the
// catalogue but those given.
func catalogueSubjects(t *testing.T, without ...string) (all []props.Subject) {
	t.Helper()
	for _, name := range strategies.All().Names() {
		if slices.Contains(without, name) {
			continue
		}
		setup, err := strategies.All().Lookup(name, nil)
		require.NoError(t, err)
		all = append(all, props.SubjectOfSetup(setup, sim.Config{}))
	}
	for _, name := range without {
		require.Contains(t, strategies.All().Names(), name)
	}
	return all
}
