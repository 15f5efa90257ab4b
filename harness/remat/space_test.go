package remat_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/workload"
	"github.com/vramyard/vramyard/strategies"
)

// over returns a space in which a strategy of the catalogue places blocks.
func over(t testing.TB, name string, budget device.Size) *remat.Space {
	t.Helper()
	setup, err := strategies.All().Lookup(name, nil)
	require.NoError(t, err)
	p, err := remat.Over(setup, budget)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

func TestEveryStrategyRunsEveryScheduleToAVerdict(t *testing.T) {
	schedules(t, 2, func(t *testing.T, s *remat.Schedule, _ *workload.Rand) {
		peak := peakOf(t, s, "eager")
		for _, name := range strategies.All().Names() {
			for _, h := range []string{"lru", "eq"} {
				c := remat.Config{Heuristic: h, Liveness: "eager", Limit: 3*s.Cost + 1}
				for _, budget := range []device.Size{0, 1, peak / 2, peak, 512 * peak, 1 << 40} {
					res, err := remat.Run(s, over(t, name, budget), c)
					require.NoError(t, err)
					require.NotEqual(t, remat.OOM, res.Verdict)
					if budget == 1<<40 {
						require.Equal(t, remat.OK, res.Verdict, name)
						require.Zero(t, res.Remats+res.Evictions[remat.Pressure])
						require.Equal(t, peak, res.Peak)
					}
				}
			}
		}
	})
}
