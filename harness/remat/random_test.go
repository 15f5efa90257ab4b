package remat_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

var seed = flag.Uint64("remat.seed", 1, "seed of the random schedules")

// schedules calls f in a subtest for each of n random schedules, with the source that drew it.
func schedules(t *testing.T, n int, f func(t *testing.T, s *remat.Schedule, r *workload.Rand)) {
	t.Helper()
	for i := range n {
		r := workload.NewRand(*seed*1000003 + uint64(i))
		s := randomSchedule(t, r)
		if !t.Run(fmt.Sprintf("seed=%d/%d", *seed, i), func(t *testing.T) { f(t, s, r) }) {
			return
		}
	}
}

// randomSchedule returns a schedule of constants and of operators with up to four inputs, most of
// them recent, some repeated. It has views, several outputs, mutations, in-place writes to
// constants, and tensors and operators without bytes or time.
func randomSchedule(t *testing.T, r *workload.Rand) *remat.Schedule {
	t.Helper()
	return randomScheduleOf(t, r, 5+int(r.Below(60)))
}

// randomScheduleOf is randomSchedule with this number of operators, constants excluded.
func randomScheduleOf(t *testing.T, r *workload.Rand, ops int) *remat.Schedule {
	t.Helper()
	var b remat.Builder
	live := []remat.Tensor{}
	below := func(n int) int { return int(r.Below(uint64(n))) }
	weights := []remat.Tensor{}
	for range 1 + below(3) {
		c, err := b.Constant(device.Size(below(20)))
		require.NoError(t, err)
		live, weights = append(live, c), append(weights, c)
	}
	for range ops {
		if below(10) == 0 {
			i := below(len(weights))
			live, weights[i] = writeInPlace(t, &b, live, weights[i], live[below(len(live))])
		}
		args := []remat.Tensor{}
		for range below(5) {
			young := max(0, len(live)-1-below(4))
			if below(4) == 0 {
				young = below(len(live))
			}
			args = append(args, live[young])
		}
		outs := []remat.Output{}
		for range 1 + max(0, below(5)-2) {
			o := remat.Output{Size: device.Size(below(30)), Alias: remat.NoAlias}
			if len(args) > 0 && below(4) == 0 {
				o = remat.Output{Alias: below(len(args))}
			}
			outs = append(outs, o)
		}
		first, err := b.Call(remat.Call{Cost: int64(below(12)), Args: args, Outputs: outs, Fixed: below(40) == 0,
			Workspace: device.Size(max(0, below(20)-15))})
		require.NoError(t, err)
		for i := range outs {
			live = append(live, first+remat.Tensor(i))
		}
		if len(args) > 0 && below(8) == 0 { // as a mutation releases the old content
			live = release(t, &b, live, args[0])
		}
		for len(live) > 1 && below(3) > 0 {
			live = release(t, &b, live, live[below(len(live))])
		}
		if below(6) == 0 {
			require.NoError(t, b.Retain(live[len(live)-1]))
			require.NoError(t, b.Release(live[len(live)-1]))
		}
	}
	for _, l := range live {
		require.NoError(t, b.Pin(l))
	}
	return b.Schedule()
}

// writeInPlace updates a weight in place from another tensor, and releases the older views of it.
func writeInPlace(
	t *testing.T, b *remat.Builder, live []remat.Tensor, weight, by remat.Tensor,
) ([]remat.Tensor, remat.Tensor) {
	t.Helper()
	if !slices.Contains(live, weight) {
		return live, weight
	}
	next, err := b.Call(remat.Call{Cost: 1, Args: []remat.Tensor{weight, by},
		Outputs: []remat.Output{{Alias: 0, Written: true}}, Fixed: true})
	require.NoError(t, err)
	views := b.Schedule().Tensors
	live = append(live, next)
	for _, l := range slices.Clone(live) {
		if l != next && views[l].Storage == views[next].Storage {
			live = release(t, b, live, l)
		}
	}
	return live, next
}

// release releases a tensor and removes it from the list, unless it is the only one.
func release(t *testing.T, b *remat.Builder, live []remat.Tensor, which remat.Tensor) []remat.Tensor {
	t.Helper()
	for i, l := range live {
		if l == which && len(live) > 1 {
			require.NoError(t, b.Release(l))
			return append(live[:i:i], live[i+1:]...)
		}
	}
	return live
}

// peakOf returns the peak of a schedule without a budget.
func peakOf(t *testing.T, s *remat.Schedule, liveness string) device.Size {
	t.Helper()
	return play(t, s, remat.Unlimited, remat.Config{Heuristic: "lru", Liveness: liveness}).Peak
}

func TestRunsEqualARecursiveOracle(t *testing.T) {
	schedules(t, 200, func(t *testing.T, s *remat.Schedule, r *workload.Rand) {
		peak := peakOf(t, s, "none")
		for _, h := range []string{"local", "lru", "size", "1/(m*s)"} {
			for _, liveness := range []string{"none", "eager"} {
				o := &oracle{s: s, score: h, eager: liveness == "eager", budget: int64(r.Below(uint64(peak) + 1)),
					limit: 3 * s.Cost,
					order: remat.ParentOrder(r.Below(3))}
				seen := &victimList{}
				want := o.run()
				got := play(t, s, device.Size(o.budget),
					remat.Config{Heuristic: h, Liveness: liveness, Limit: o.limit, Observer: seen, ParentOrder: o.order})
				require.Equal(t, o.victims, seen.list)
				require.Equal(t, []any{want, o.clock, o.remat, o.peak, o.deepest},
					[]any{got.Verdict, got.Clock, got.RematTime, int64(got.Peak), got.DeepestChain})
			}
		}
	})
}

func TestMendedClassesSumTheCostsOfEvictedStorages(t *testing.T) {
	evicted := 0
	schedules(t, 100, func(t *testing.T, s *remat.Schedule, r *workload.Rand) {
		for _, liveness := range []string{"none", "eager", "mge-refcount"} {
			budget := device.Size(r.Below(uint64(peakOf(t, s, liveness)) + 1))
			for _, h := range []string{"eq-mended", "mge"} {
				res := remat.CheckClassSums(t, s, budget, remat.Config{Heuristic: h, Liveness: liveness, Limit: 3 * s.Cost})
				evicted += res.Evictions[remat.Pressure]
			}
		}
	})
	require.Positive(t, evicted)
}

func TestIncrementalNeighborhoodsEqualRebuiltOnes(t *testing.T) {
	spared := 0
	for i := range 400 {
		r := workload.NewRand(*seed*104729 + uint64(i))
		s := randomScheduleOf(t, r, 5+int(r.Below(20)))
		for _, liveness := range []string{"none", "eager", "mge-refcount"} {
			peak := peakOf(t, s, liveness)
			budget := peak/3 + device.Size(r.Below(uint64(peak)+1))
			for _, h := range []string{"estar", "msps"} {
				c := remat.Config{Heuristic: h, Liveness: liveness, Limit: 3 * s.Cost, EagerInRemat: r.Below(2) == 0}
				if remat.CompareNeighborhoods(t, s, budget, c) {
					spared++
				}
			}
		}
	}
	require.Greater(t, spared, 20)
	t.Logf("%d runs without a rebuild", spared)
}

func TestCreditForFreeMemoryNeedsAddresses(t *testing.T) {
	schedules(t, 40, func(t *testing.T, s *remat.Schedule, r *workload.Rand) {
		budget := device.Size(r.Below(uint64(peakOf(t, s, "eager")) + 1))
		run := func(h string) remat.Result {
			return play(t, s, budget, remat.Config{Heuristic: h, Liveness: "eager", Limit: 3 * s.Cost})
		}
		require.Equal(t, run("eq"), run("dte"), "a counter has no adjacent memory")
	})
}

// victimList records the storages evicted because memory was short.
type victimList struct{ list []int32 }

func (*victimList) OnRun(int32, remat.Tensor, bool) {}

func (*victimList) OnReturn(int32, bool) {}

func (*victimList) OnForget(int32) {}

func (o *victimList) OnEvict(storage int32, why remat.Cause) {
	if why == remat.Pressure {
		o.list = append(o.list, storage)
	}
}

func TestUnlimitedBudgetEvictsNothing(t *testing.T) {
	schedules(t, 40, func(t *testing.T, s *remat.Schedule, _ *workload.Rand) {
		for _, h := range remat.Heuristics() {
			res := play(t, s, remat.Unlimited, remat.Config{Heuristic: h.Name, Liveness: "none"})
			require.Equal(t, remat.OK, res.Verdict)
			require.Zero(t, res.Evictions)
			require.Zero(t, res.Remats)
			require.Equal(t, s.Cost+1, res.Clock)
		}
		require.LessOrEqual(t, peakOf(t, s, "eager"), peakOf(t, s, "none"))
		require.LessOrEqual(t, peakOf(t, s, "mge-refcount"), peakOf(t, s, "none"))
	})
}

// TestPlansRefuseOrRunRandomLogs checks that a plan refuses a random schedule or runs it within the
// budget.
func TestPlansRefuseOrRunRandomLogs(t *testing.T) {
	schedules(t, 200, func(t *testing.T, s *remat.Schedule, r *workload.Rand) {
		budget := device.Size(r.Below(uint64(peakOf(t, s, "none")) + 1))
		for _, p := range remat.Plans() {
			c := remat.Config{Heuristic: p.Name, Budget: budget, Liveness: "eager"}
			res, err := remat.Run(s, &remat.Counter{Budget: budget}, c)
			if refused := remat.CanRun(s, p.Name); refused != nil {
				require.Equal(t, refused, err)
				continue
			}
			require.NoError(t, err)
			require.LessOrEqual(t, res.Peak, budget)
		}
	})
}
