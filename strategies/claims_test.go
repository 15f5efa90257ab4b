package strategies_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies"
)

// TestClaims judges what every name of the catalogue claims about capacity, limit and metadata.
func TestClaims(t *testing.T) {
	claimed := map[string]int{}
	for _, name := range strategies.All().Names() {
		s, err := strategies.All().Lookup(name, nil)
		require.NoError(t, err)
		if s.Preallocates {
			claimed["preallocates"]++
		}
		if s.Unbound() {
			claimed["unbound"]++
		}
		for _, charge := range []device.Size{256, 2 * device.MiB} {
			subject := props.SubjectOfSetup(s, sim.Config{Charge: charge})
			r, err := props.Claims(subject, props.Options{Sequences: 10})
			require.NoError(t, err)
			require.Positive(t, r.Frees, name)
			require.NoError(t, props.Metadata(subject))
		}
	}
	require.Greater(t, claimed["preallocates"], 5)
	require.Greater(t, claimed["unbound"], 20)
}
