package remat_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

func TestTriggersOfOneBudgetGiveTheSameRun(t *testing.T) {
	schedules(t, 80, func(t *testing.T, s *remat.Schedule, r *workload.Rand) {
		budget := device.Size(r.Below(uint64(peakOf(t, s, "eager")) + 1))
		c := remat.Config{Heuristic: "local", Liveness: "eager", Limit: 2*s.Cost + 1}
		room := play(t, s, budget, c)
		c.Trigger = remat.Trigger{Kind: "on-failure"}
		require.Equal(t, room, play(t, s, budget, c))
		c.Trigger = remat.Trigger{Kind: "budget", Bytes: budget}
		require.Equal(t, room, play(t, s, remat.Unlimited, c))
		res, err := remat.Run(s, over(t, "bestfit", 1<<30), c)
		require.NoError(t, err)
		if res.Verdict == remat.OOMCapacity {
			res.Verdict = remat.OOM
		}
		res.WastedBytes = 0 // in a space, blocks lie somewhere
		require.Equal(t, room, res)
	})
}

func TestReserveEvictsTheVictimsOfRefusals(t *testing.T) {
	schedules(t, 40, func(t *testing.T, s *remat.Schedule, r *workload.Rand) {
		big := scaled(s, 256)
		budget := device.Size(r.Below(uint64(peakOf(t, s, "eager"))+1)) * 256
		c := remat.Config{Heuristic: "local", Liveness: "eager", Limit: 2*s.Cost + 1}
		want, err := remat.Run(big, over(t, "bestfit:strict", budget), c)
		require.NoError(t, err)
		c.Trigger.Kind = "reserve"
		got, err := remat.Run(big, over(t, "bestfit:strict", budget), c)
		require.NoError(t, err)
		got.Refusals = want.Refusals
		require.Equal(t, want, got)
	})
}

func TestThresholdDoesNotBoundTheMemoryInUse(t *testing.T) {
	s := logOf(t, "syn_resnet20")
	peak := peakOf(t, s, "eager")
	for _, kind := range []string{"threshold", "post-op"} {
		last := peak
		for _, percent := range []device.Size{90, 75, 60} {
			res := play(t, s, remat.Unlimited, remat.Config{Heuristic: "eq", Liveness: "eager", Limit: 10 * s.Cost,
				Trigger: remat.Trigger{Kind: kind, Bytes: peak * percent / 100}})
			require.Equal(t, remat.OK, res.Verdict)
			require.Greater(t, res.Peak, peak*percent/100, "the operator's own outputs come on top")
			require.Less(t, res.Peak, last, "%s of %d %%", kind, percent)
			require.Positive(t, res.Remats)
			last = res.Peak
		}
	}
}

func TestInvalidTriggersAreNamed(t *testing.T) {
	bad := func(c remat.Config, want string) {
		t.Helper()
		c.Heuristic, c.Liveness = "lru", "none"
		_, err := remat.Run(&remat.Schedule{}, &remat.Counter{}, c)
		require.ErrorContains(t, err, want)
	}
	bad(remat.Config{Trigger: remat.Trigger{Kind: "never"}},
		`trigger "never": want room, budget, threshold, post-op, on-failure, reserve`)
	bad(remat.Config{Trigger: remat.Trigger{Kind: "reserve"}}, "trigger reserve needs a memory with addresses")
	bad(remat.Config{Ladder: "up"},
		`ladder "up": want none, evict-first, defrag-first, or up to 64 of evict, drop, swap, release, defrag, `)
	bad(remat.Config{Ladder: "evict,"}, `ladder "evict,": want `)
	bad(remat.Config{Ladder: "evict-first"}, `ladder "evict-first": step release needs a memory with addresses`)
	bad(remat.Config{Defrag: remat.Defrag{Kind: "lift"}}, `defrag "lift": want slide, bounce, remap`)
	bad(remat.Config{Defrag: remat.Defrag{Costs: remat.MoveCosts{Sync: 1}}}, "want PCIe, HBM and Page above 0")
	c := remat.DefaultMoveCosts()
	c.Launch = -1
	bad(remat.Config{Defrag: remat.Defrag{Costs: c}}, "want times of at least 0")
}
