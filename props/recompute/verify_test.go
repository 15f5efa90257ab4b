package recompute_test

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/props/recompute"
)

var (
	seed = flag.Int64("recompute.seed", 1, "seed of the first log")
	logs = flag.Int("recompute.logs", 10, "logs for each configuration")
)

// TestInvariantsOfRuns runs every heuristic and plan under every policy for dead tensors, with the
// other settings at their defaults and at random.
func TestInvariantsOfRuns(t *testing.T) {
	names := []string{"mge:time=2:size=0:neighbors=0.5", "mge:measure=time"}
	for _, h := range remat.Heuristics() {
		names = append(names, h.Name)
	}
	for _, p := range remat.Plans() {
		names = append(names, p.Name)
	}
	r := workload.NewRand(uint64(*seed))
	for _, name := range names {
		for _, liveness := range remat.Livenesses() {
			plain := remat.Config{Heuristic: name, Liveness: liveness}
			for _, c := range []remat.Config{plain, vary(plain, r)} {
				s := recompute.Subject{Name: name + " under " + liveness, Config: c}
				_, err := recompute.Verify(t.Context(), s, recompute.Options{Logs: *logs, Seed: *seed, Tries: 2000})
				require.NoError(t, err, "%+v", c)
			}
		}
	}
}

// vary draws the settings beside heuristic and liveness.
func vary(c remat.Config, r *workload.Rand) remat.Config {
	c.Seed, c.Quirks = r.Next(), remat.Quirks(r.Next())&remat.AllQuirks
	c.EagerInRemat, c.ParentOrder = r.Below(2) == 0, remat.ParentOrder(r.Below(3))
	if r.Below(2) == 0 {
		c.Trigger.Kind = "on-failure"
	}
	if r.Below(2) == 0 {
		c.Sampling = remat.Sampling{Kind: remat.SampleKind(r.Below(4)), K: 1 + int(r.Below(5))}
		c.MinEvictee = remat.Minimum{Size: device.Size(r.Below(15)), Cut: r.Below(2) == 0}
	} else {
		c.MinEvictee.Percent = int(r.Below(101))
	}
	return c
}

// TestDetachLeavesUnneededViews has a dead view that shows content from before an in-place write.
func TestDetachLeavesUnneededViews(t *testing.T) {
	l, err := recompute.Parse(`
call 1:0 2:0
call 3:0 fixed
call 4:@1 reads 2 3 1
release 4
call 5:=3 fixed reads 3
drop 1
release 2`)
	require.NoError(t, err)
	for _, liveness := range remat.Livenesses() {
		s := recompute.Subject{Name: liveness, Config: remat.Config{Heuristic: "eq", Liveness: liveness}}
		v, err := s.Check(l)
		require.NoError(t, err)
		require.Nil(t, v, liveness)
	}
}

func TestLogsAreText(t *testing.T) {
	for i := range uint64(50) {
		r := workload.NewRand(i)
		for _, l := range []recompute.Log{recompute.Draw(r, 20), recompute.DrawChain(r, 5, true)} {
			again, err := recompute.Parse(l.String())
			require.NoError(t, err)
			require.Equal(t, l.String(), again.String())
			require.Equal(t, l.Schedule(), again.Schedule())
		}
	}
}

func TestWrongLogsAreRefused(t *testing.T) {
	for _, line := range []string{"call", "call 1", "call 1:x", "call 1:2 reads x", "call 1:2 time 3:4", "drop x",
		"free 1", "drop 1 2", "budget -1"} {
		_, err := recompute.Parse("call 1:2\n" + line)
		require.ErrorContains(t, err, `line 2: "`+line+`": want call, retain, release, drop, keep or budget`)
	}
}
