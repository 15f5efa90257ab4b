package strategies_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies"
)

var flagGrid = flag.Int("grid.points", 24, "random points of each strategy's grid to verify; a quarter with -short")

// TestRandomPointsOfEachGridKeepEveryInvariant draws settings at random from the grid of each
// strategy, where any two of them may meet, and verifies what comes out on devices of several
// sizes. The subjects of each strategy turn every setting; this is about their combinations.
func TestRandomPointsOfEachGridKeepEveryInvariant(t *testing.T) {
	points := *flagGrid
	if testing.Short() {
		points /= 4
	}
	for _, spec := range strategies.All() {
		t.Run(spec.Name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(1, uint64(len(spec.Name))))
			var grants int
			for legal, tries := 0, 0; legal < points; tries++ {
				require.Less(t, tries, 200*points, "nearly every point of the grid is refused")
				config := randomPoint(t, rng, spec)
				setup, err := strategies.All().Lookup(spec.Name, config)
				if err != nil {
					continue // values that exclude each other
				}
				legal++
				s := props.SubjectOfSetup(setup, randomDevice(rng))
				s.Name = fmt.Sprintf("%s %s on %+v", spec.Name, config, s.Device)
				r, err := props.Verify(s, props.Options{Sequences: 20, Operations: 100, Seed: int64(tries + 1)})
				require.NoError(t, err)
				grants += r.Grants
			}
			require.NotZero(t, grants)
		})
	}
}

// randomPoint draws a value for about half of the settings that have a grid.
func randomPoint(t *testing.T, rng *rand.Rand, spec setting.Spec) json.RawMessage {
	t.Helper()
	fields := map[string]json.RawMessage{}
	for _, k := range spec.Knobs {
		if len(k.Grid) > 0 && rng.IntN(2) == 0 {
			fields[k.Name] = json.RawMessage(k.Grid[rng.IntN(len(k.Grid))])
		}
	}
	config, err := json.Marshal(fields)
	require.NoError(t, err)
	return config
}

// randomDevice draws a device of 64 KiB to 64 MiB on which regions may touch.
func randomDevice(rng *rand.Rand) sim.Config {
	policies := []sim.Policy{sim.FirstFit, sim.TopDown, sim.Bump}
	return sim.Config{
		Capacity: 64 << (10 + rng.IntN(11)), Align: 256, Policy: policies[rng.IntN(len(policies))],
	}
}
