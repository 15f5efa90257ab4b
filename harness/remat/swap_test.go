package remat_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// swapping draws settings of swapping, for a link of 0.1 to 10 bytes per nanosecond.
func swapping(r *workload.Rand) string {
	text := ":evict=" + []string{"drop", "swap", "cheaper"}[r.Below(3)]
	text += ":link=" + []string{"0.1", "1", "10", "inf"}[r.Below(4)]
	if r.Below(3) == 0 {
		text += fmt.Sprintf(":host=%d", 1+r.Below(100))
	}
	return text
}

// TestDroppingOnlyIsTheDefault compares evict=drop with no setting at all.
func TestDroppingOnlyIsTheDefault(t *testing.T) {
	schedules(t, 10, func(t *testing.T, s *remat.Schedule, r *workload.Rand) {
		for _, liveness := range remat.Livenesses() {
			budget := device.Size(r.Below(uint64(peakOf(t, s, liveness)) + 1))
			for _, h := range remat.Heuristics() {
				c := remat.Config{Heuristic: h.Name, Liveness: liveness, Limit: 3 * s.Cost}
				want := play(t, s, budget, c)
				require.Zero(t, want.Swaps)
				c.Heuristic += ":evict=drop:link=1:host=1"
				require.Equal(t, want, play(t, s, budget, c))
			}
		}
	})
}

// TestAnInfiniteLinkCostsNoTime swaps only. Nothing is recomputed, since only tensors without
// references are dropped.
func TestAnInfiniteLinkCostsNoTime(t *testing.T) {
	swapped := 0
	schedules(t, 40, func(t *testing.T, s *remat.Schedule, r *workload.Rand) {
		for _, liveness := range []string{"none", "eager", "mge-refcount"} {
			peak := peakOf(t, s, liveness)
			for _, h := range remat.Heuristics() {
				budget := peak/2 + device.Size(r.Below(uint64(peak/2)+1))
				res := play(t, s, budget, remat.Config{Heuristic: h.Name + ":evict=swap:link=inf", Liveness: liveness})
				if res.Verdict == remat.OK {
					require.Equal(t, s.Cost+1, res.Clock)
				}
				swapped += res.Swaps.Out
			}
		}
	})
	require.Positive(t, swapped)
}

// timed is a run of one log, whose operators and copies are timed by hand. The link copies one
// byte in a nanosecond.
//
//	a  100 bytes, 50 ns
//	b  100 bytes, 500 ns
//	c  reads a, 100 bytes, 30 ns
//	d  reads b, no bytes, 20 ns
func timed(t *testing.T, budget device.Size, c remat.Config) remat.Result {
	t.Helper()
	var b remat.Builder
	call := func(cost int64, size device.Size, args ...remat.Tensor) remat.Tensor {
		made, err := b.Call(remat.Call{Cost: cost, Args: args, Outputs: []remat.Output{{Size: size, Alias: remat.NoAlias}}})
		require.NoError(t, err)
		return made
	}
	first := call(50, 100)
	second := call(500, 100)
	call(30, 100, first)
	call(20, 0, second)
	c.Liveness = "none"
	return play(t, b.Schedule(), budget, c)
}

// TestCopiesOverlapWithOperators compares the waits of runs with the ones computed by hand.
func TestCopiesOverlapWithOperators(t *testing.T) {
	const swap = "lru:evict=swap:link=1"
	late, ahead := remat.Trigger{}, remat.Trigger{Kind: "threshold", Bytes: 99}
	for _, one := range []struct {
		budget  device.Size
		trigger remat.Trigger
		stall   int64
		outs    int
	}{
		{300, late, 0, 0},
		// c needs 100 bytes: b leaves, 100 ns. d needs b: a leaves, 100 ns, then b comes back, 100 ns.
		{200, late, 300, 2},
		// a leaves while b runs. c waits for it, 100 ns, in which b leaves. b comes back while c runs,
		// and d waits for the last 70 ns. Before d, a and c leave.
		{300, ahead, 170, 4},
	} {
		res := timed(t, one.budget, remat.Config{Heuristic: swap, Trigger: one.trigger})
		require.Equal(t, remat.OK, res.Verdict)
		require.Equal(t, one.stall, res.Swaps.Stall, "%+v", one)
		require.Equal(t, one.outs, res.Swaps.Out, "%+v", one)
	}
}

// TestTheCheaperWayIsTaken swaps over a fast link, drops over a slow one, and drops when the host
// is full.
func TestTheCheaperWayIsTaken(t *testing.T) {
	for settings, swapped := range map[string]bool{
		"evict=cheaper:link=100": true, "evict=cheaper:link=0.1": false, "evict=cheaper:link=100:host=99": false,
		"evict=swap:link=0.1": true, "evict=drop": false,
	} {
		res := timed(t, 200, remat.Config{Heuristic: "lru:" + settings})
		require.Equal(t, remat.OK, res.Verdict, settings)
		require.Equal(t, swapped, res.Swaps.Out > 0, settings)
		require.Equal(t, !swapped, res.Remats > 0, settings)
	}
}

// TestLaddersMixSwapsAndDrops swaps until the host is full.
func TestLaddersMixSwapsAndDrops(t *testing.T) {
	on := remat.Trigger{Kind: "on-failure"}
	res := timed(t, 200, remat.Config{Heuristic: "lru:host=100:link=1", Trigger: on, Ladder: "swap,drop"})
	require.Equal(t, remat.OK, res.Verdict)
	require.Equal(t, device.Size(100), res.Swaps.HostPeak)
	require.Positive(t, res.Evictions[remat.Swapped])
}

// TestConstantsAreSwapped runs a log whose constants alone exceed the budget.
func TestConstantsAreSwapped(t *testing.T) {
	var b remat.Builder
	for range 4 {
		w, err := b.Constant(100)
		require.NoError(t, err)
		_, err = b.Call(remat.Call{Cost: 1, Args: []remat.Tensor{w},
			Outputs: []remat.Output{{Size: 1, Alias: remat.NoAlias}}})
		require.NoError(t, err)
	}
	for evict, want := range map[string]remat.Verdict{"drop": remat.OOM, "swap": remat.OK, "cheaper": remat.OK} {
		res := play(t, b.Schedule(), 150, remat.Config{Heuristic: "eq:evict=" + evict, Liveness: "eager"})
		require.Equal(t, want, res.Verdict, evict)
	}
}

func TestACheaperWayNeedsALogWithTimes(t *testing.T) {
	var b remat.Builder
	_, err := b.Constant(1)
	require.NoError(t, err)
	_, err = remat.Run(b.Schedule(), &remat.Counter{}, remat.Config{Heuristic: "eq:evict=cheaper", Liveness: "eager"})
	require.EqualError(t, err, "heuristic eq:evict=cheaper: the log has no times, want evict=drop or swap")
}
