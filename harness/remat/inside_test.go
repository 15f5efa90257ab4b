package remat

import (
	"encoding/hex"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
)

// poolChecker checks the pool of a run after each event.
type poolChecker struct {
	t *testing.T
	r *runner
}

func (i poolChecker) OnRun(int32, Tensor, bool) { i.check() }

func (i poolChecker) OnEvict(int32, Cause) { i.check() }

func (poolChecker) OnReturn(int32, bool) {}

func (i poolChecker) OnForget(int32) { i.check() }

// check compares the pool and the bytes in use with the states of the storages.
func (i poolChecker) check() {
	in, used := 0, device.Size(0)
	for s := range i.r.stores {
		st := &i.r.stores[s]
		// A require for each storage would take most of the time.
		if may := st.resident && st.locks == 0; may != i.r.pool.has(int32(s)) {
			require.Equal(i.t, may, !may, "storage %d in the pool", s)
		}
		if i.r.pool.has(int32(s)) {
			in++
		}
		if st.resident {
			used += i.r.s.Storages[s].Size
		}
	}
	require.Equal(i.t, in, i.r.pool.n)
	require.Equal(i.t, used, i.r.used)
	require.LessOrEqual(i.t, used, i.r.mem.(*Counter).Budget)
}

func TestPoolHoldsResidentUnlockedStorages(t *testing.T) {
	s, err := ReadFile("testdata/syn_resnet20.log.gz", nil)
	require.NoError(t, err)
	for _, liveness := range Livenesses() {
		r, err := newRunner(s, &Counter{Budget: Unlimited}, Config{Heuristic: "local", Liveness: liveness})
		require.NoError(t, err)
		require.Equal(t, OK, r.steps())
		for _, percent := range []device.Size{20, 50, 90} {
			r, err := newRunner(s, &Counter{Budget: r.res.Peak * percent / 100},
				Config{Heuristic: "local", Liveness: liveness, Limit: s.Cost})
			require.NoError(t, err)
			r.c.Observer = poolChecker{t, r}
			if r.steps() != OK || liveness == "banish" { // banish may leave inputs locked
				continue
			}
			for i := range r.stores {
				require.Equal(t, r.stores[i].pinned, r.stores[i].locks != 0, "locks of storage %d at the end", i)
			}
		}
	}
}

func TestNoStorageRemainsAfterAllReleases(t *testing.T) {
	s, err := ReadFile("testdata/syn_transformer6.log.gz", nil)
	require.NoError(t, err)
	refs := map[Tensor]int{}
	for _, step := range s.Steps {
		switch step.Kind {
		case Compute:
			for o := range s.Ops[step.Of].outputs() {
				refs[o]++
			}
		case Retain:
			refs[Tensor(step.Of)]++
		case Release:
			refs[Tensor(step.Of)]--
		}
	}
	for o := range s.Tensors {
		for range refs[Tensor(o)] {
			s.Steps = append(s.Steps, Step{Release, int32(o)})
		}
	}
	for _, c := range []Config{
		{Heuristic: "eq"}, {Heuristic: "estar"}, {Heuristic: "lru"}, {Heuristic: "estar-maxstale"}, {Heuristic: "oneflow"},
		{Heuristic: "mge"}, {Heuristic: "mge", Quirks: AllQuirks}, {Heuristic: "mge-static", EagerInRemat: true},
		{Heuristic: "mge", MinEvictee: Minimum{Size: 1 << 20, Cut: true}, Sampling: Sampling{Kind: SampleMGE}},
	} {
		m := &Counter{Budget: 400 << 20}
		c.Liveness = "mge-refcount"
		r, err := newRunner(s, m, c)
		require.NoError(t, err)
		require.Equal(t, OK, r.steps(), "%+v", c)
		require.Positive(t, r.res.Evictions[Pressure])
		require.Zero(t, m.used)
		for i := range r.stores {
			require.True(t, r.stores[i].discarded, "storage %d is not freed permanently", i)
			require.Zero(t, r.live.(*refcount).count[i])
		}
	}
}

// sumChecker compares the sums of classes with the costs of evicted storages after each event.
type sumChecker struct {
	t         *testing.T
	r         *runner
	forgotten map[int32]bool
}

func (w sumChecker) OnRun(int32, Tensor, bool) { w.check() }

func (w sumChecker) OnEvict(int32, Cause) { w.check() }

func (sumChecker) OnReturn(int32, bool) {}

func (w sumChecker) OnForget(s int32) { w.forgotten[s] = true }

func (w sumChecker) check() {
	if m, ok := w.r.scorer.(*mge); ok {
		w.components(&m.components)
		return
	}
	c := w.r.scorer.(*classes)
	sum, evicted := int64(0), int64(0)
	for n := range c.parent {
		if c.parent[n] == int32(n) {
			require.GreaterOrEqual(w.t, c.sum[n], int64(0))
			sum += c.sum[n]
		}
	}
	for s := range w.r.stores {
		st := &w.r.stores[s]
		switch {
		case st.resident:
			cost, _ := c.cost(int32(s))
			require.GreaterOrEqual(w.t, cost, st.local)
		case st.access != math.MinInt64 && !w.forgotten[int32(s)]: // it was resident before
			evicted += st.local
		}
	}
	require.Equal(w.t, evicted, sum)
}

// components compares the sums of the components of evicted storages with their own costs.
func (w sumChecker) components(c *components) {
	sum, evicted, seen := 0.0, 0.0, map[int32]bool{}
	for s, is := range c.evicted {
		if !is {
			continue
		}
		require.False(w.t, w.r.stores[s].resident)
		evicted += c.ownCost[s]
		if root := c.root(c.node[s]); !seen[root] {
			seen[root] = true
			sum += c.sum[root]
		}
	}
	require.Equal(w.t, evicted, sum)
}

// CheckClassSums runs a schedule with a sumChecker.
func CheckClassSums(t *testing.T, s *Schedule, budget device.Size, c Config) Result {
	r, err := newRunner(s, &Counter{Budget: budget}, c)
	require.NoError(t, err)
	r.c.Observer = sumChecker{t, r, map[int32]bool{}}
	r.res.Verdict = r.steps()
	return r.res
}

// CompareNeighborhoods runs a schedule twice and compares the results: once with incremental
// updates of neighborhoods, once with a rebuild at each restore. It reports whether the first run
// recomputed something and needed no rebuild to its end.
func CompareNeighborhoods(t *testing.T, s *Schedule, budget device.Size, c Config) bool {
	var end [2]Result
	incremental := false
	for i := range end {
		r, err := newRunner(s, &Counter{Budget: budget}, c)
		require.NoError(t, err)
		r.scorer.(*neighborhoods).crossed = i == 1
		r.res.Verdict = r.steps()
		end[i] = r.res
		end[i].VictimsSHA256 = hex.EncodeToString(r.victims.Sum(nil))
		incremental = incremental || !r.scorer.(*neighborhoods).crossed && r.res.Remats > 0
	}
	require.Equal(t, end[1], end[0])
	return incremental
}
