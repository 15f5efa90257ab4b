package remat_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

var seed = flag.Uint64("remat.seed", 1, "seed of the random schedules")

// schedules hands on some random schedules with what they were drawn from.
func schedules(t *testing.T, n int, f func(t *testing.T, s *remat.Schedule, r *workload.Rand)) {
	t.Helper()
	for i := range n {
		r := workload.NewRand(*seed*1000003 + uint64(i))
		s := draw(t, r)
		if !t.Run(fmt.Sprintf("seed=%d/%d", *seed, i), func(t *testing.T) { f(t, s, r) }) {
			return
		}
	}
}

// draw returns a random schedule: constants, operators of up to four inputs, most of them young,
// with repeats; views, several outputs, mutations, constants that are written to, nothing that
// takes no bytes or no time is left out.
func draw(t *testing.T, r *workload.Rand) *remat.Schedule {
	t.Helper()
	return drawOps(t, r, 5+int(r.Below(60)))
}

// drawOps is draw with a number of operators beside the constants.
func drawOps(t *testing.T, r *workload.Rand, ops int) *remat.Schedule {
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
			live, weights[i] = step(t, &b, live, weights[i], live[below(len(live))])
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
		if len(args) > 0 && below(8) == 0 { // what a mutation does to its argument
			live = drop(t, &b, live, args[0])
		}
		for len(live) > 1 && below(3) > 0 {
			live = drop(t, &b, live, live[below(len(live))])
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

// step writes to a weight in its place, with what another tensor says. Other views of the weight
// are dropped.
func step(t *testing.T, b *remat.Builder, live []remat.Tensor, weight, by remat.Tensor) ([]remat.Tensor, remat.Tensor) {
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
			live = drop(t, b, live, l)
		}
	}
	return live, next
}

// drop releases a tensor, unless it is the only one.
func drop(t *testing.T, b *remat.Builder, live []remat.Tensor, which remat.Tensor) []remat.Tensor {
	t.Helper()
	for i, l := range live {
		if l == which && len(live) > 1 {
			require.NoError(t, b.Release(l))
			return append(live[:i:i], live[i+1:]...)
		}
	}
	return live
}

// auditor believes nothing: it keeps its own account of what is resident, and gives each tensor a
// tag made of its operator and of what was read. It is a memory too, the first fit of a row of
// bytes.
type auditor struct {
	t        *testing.T
	s        *remat.Schedule
	capacity device.Size // bytes of the row
	blocks   []alloc.Block
	resident map[int32]bool
	defined  map[remat.Tensor]uint64
	first    map[remat.Tensor]uint64
	newest   map[int32]remat.Tensor // by storage: what it was written to for last
	shows    map[remat.Tensor]remat.Tensor
	pinned   map[int32]bool
	banished map[int32]bool
	pins     bool // banished storages come back as outputs of operators that make others, too
}

func newAuditor(t *testing.T, s *remat.Schedule, capacity device.Size) *auditor {
	return &auditor{t: t, s: s, capacity: capacity, resident: map[int32]bool{}, defined: map[remat.Tensor]uint64{},
		first: map[remat.Tensor]uint64{}, newest: map[int32]remat.Tensor{}, shows: map[remat.Tensor]remat.Tensor{},
		pinned: map[int32]bool{}, banished: map[int32]bool{}}
}

// Room says yes: a row of bytes can only tell by trying.
func (a *auditor) Room(device.Size) bool { return true }

func (a *auditor) Alloc(size device.Size, owner remat.Owner) (alloc.Block, bool) {
	require.NotZero(a.t, size)
	at := device.Addr(0)
	for i := 0; ; i++ {
		end := device.Addr(a.capacity)
		if i < len(a.blocks) {
			end = a.blocks[i].Addr
		}
		if device.Size(end-at) >= size && end >= at {
			b := alloc.Block{Addr: at, Size: size}
			a.blocks = append(a.blocks[:i:i], append([]alloc.Block{b}, a.blocks[i:]...)...)
			return b, true
		}
		if i >= len(a.blocks) {
			return alloc.Block{}, false
		}
		at = a.blocks[i].Addr + device.Addr(a.blocks[i].Size)
	}
}

func (a *auditor) Free(b alloc.Block) {
	for i, other := range a.blocks {
		if other == b {
			a.blocks = append(a.blocks[:i:i], a.blocks[i+1:]...)
			return
		}
	}
	require.Fail(a.t, "a block is freed that is not there", "%v", b)
}

// FreeNeighbours implements remat.Neighbors.
func (a *auditor) FreeNeighbours(b alloc.Block) (below, above device.Size) {
	i := slices.Index(a.blocks, b)
	require.GreaterOrEqual(a.t, i, 0, "there is no block %v", b)
	from, to := device.Addr(0), device.Addr(a.capacity)
	if i > 0 {
		from = a.blocks[i-1].Addr + device.Addr(a.blocks[i-1].Size)
	}
	if i+1 < len(a.blocks) {
		to = a.blocks[i+1].Addr
	}
	return device.Size(b.Addr - from), device.Size(to - b.Addr - device.Addr(b.Size))
}

func (a *auditor) OnRun(number int32, of remat.Tensor, again bool) {
	op := &a.s.Ops[number]
	sum := uint64(number)
	for _, p := range op.Args {
		storage := a.s.Tensors[p].Storage
		if a.banished[storage] {
			require.False(a.t, again, "operator %d reads %d, which was banished", number, p)
		}
		tag, ok := a.defined[p]
		require.True(a.t, ok, "operator %d reads %d, which is gone", number, p)
		require.True(a.t, a.resident[storage], "operator %d reads %d, whose storage is gone", number, p)
		require.Equal(a.t, a.newest[storage], a.shows[p], "operator %d reads %d, which was written over", number, p)
		sum = workload.NewRand(sum ^ tag).Next()
	}
	require.NotContains(a.t, a.defined, of)
	for i := range op.Outputs {
		out := op.First + remat.Tensor(i)
		tag := workload.NewRand(sum + uint64(i)).Next()
		if !again {
			a.first[out] = tag
			if a.s.Tensors[out].Written {
				a.newest[a.s.Tensors[out].Storage] = out
			}
			a.shows[out] = a.newest[a.s.Tensors[out].Storage]
		}
		require.Equal(a.t, a.first[out], tag, "tensor %d comes back as another", out)
		if a.banished[a.s.Tensors[out].Storage] && !a.pins {
			continue // thrown away
		}
		a.defined[out] = tag
		a.resident[a.s.Tensors[out].Storage] = true
		if op.Fixed {
			a.pinned[a.s.Tensors[out].Storage] = true
		}
	}
	a.account()
}

func (a *auditor) OnEvict(storage int32, why remat.Cause) {
	require.True(a.t, a.resident[storage], "storage %d is evicted twice", storage)
	if why != remat.Banished && !a.banished[storage] {
		require.False(a.t, a.pinned[storage], "storage %d is pinned", storage)
	}
	a.resident[storage] = false
	for t := range a.s.Tensors {
		if a.s.Tensors[t].Storage == storage {
			delete(a.defined, remat.Tensor(t))
		}
	}
}

func (a *auditor) OnForget(storage int32) {
	require.False(a.t, a.resident[storage])
	require.False(a.t, a.banished[storage], "storage %d is freed for good twice", storage)
	a.banished[storage] = true
}

// account compares what is resident with the blocks.
func (a *auditor) account() {
	resident, blocks := device.Size(0), device.Size(0)
	for s, is := range a.resident {
		if is {
			resident += a.s.Storages[s].Size
		}
	}
	for _, b := range a.blocks {
		blocks += b.Size
	}
	require.Equal(a.t, resident, blocks)
}

// peakOf returns the bytes that a schedule takes without a budget.
func peakOf(t *testing.T, s *remat.Schedule, liveness string) device.Size {
	t.Helper()
	return play(t, s, remat.Unlimited, remat.Config{Heuristic: "lru", Liveness: liveness}).Peak
}

func TestRunsReadResidentStoragesOnly(t *testing.T) {
	schedules(t, 20, func(t *testing.T, s *remat.Schedule, r *workload.Rand) {
		for _, liveness := range remat.Livenesses() {
			peak := peakOf(t, s, liveness)
			for _, h := range remat.Heuristics() {
				c := remat.Config{Heuristic: h.Name, Liveness: liveness, Limit: 3*s.Cost + 1, Seed: r.Next(),
					Quirks: remat.Quirks(r.Next()) & remat.AllQuirks, EagerInRemat: r.Below(2) == 0,
					ParentOrder: remat.ParentOrder(r.Below(3))}
				if r.Below(2) == 0 {
					c.Sampling = remat.Sampling{Kind: remat.SampleKind(r.Below(4)), K: 1 + int(r.Below(5))}
					c.MinEvictee = remat.Minimum{Size: device.Size(r.Below(15)), Cut: r.Below(2) == 0}
				} else {
					c.MinEvictee.Percent = int(r.Below(101))
				}
				a := newAuditor(t, s, device.Size(r.Below(uint64(peak)+1)))
				c.Observer, a.pins = a, liveness == "banish"
				res, err := remat.Run(s, a, c)
				require.NoError(t, err)
				require.LessOrEqual(t, res.Peak, a.capacity)
				again := newAuditor(t, s, a.capacity)
				c.Observer, again.pins = again, a.pins
				second, err := remat.Run(s, again, c)
				require.NoError(t, err)
				require.Equal(t, res, second)
			}
		}
	})
}

func TestRunsEqualARecursiveOracle(t *testing.T) {
	schedules(t, 200, func(t *testing.T, s *remat.Schedule, r *workload.Rand) {
		peak := peakOf(t, s, "none")
		for _, h := range []string{"local", "lru", "size", "1/(m*s)"} {
			for _, liveness := range []string{"none", "eager"} {
				o := &oracle{s: s, score: h, eager: liveness == "eager", budget: int64(r.Below(uint64(peak) + 1)),
					limit: 3 * s.Cost,
					order: remat.ParentOrder(r.Below(3))}
				seen := &order{}
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

func TestMendedClassesHoldTheCostsOfWhatIsEvicted(t *testing.T) {
	evicted := 0
	schedules(t, 100, func(t *testing.T, s *remat.Schedule, r *workload.Rand) {
		for _, liveness := range []string{"none", "eager", "mge-refcount"} {
			budget := device.Size(r.Below(uint64(peakOf(t, s, liveness)) + 1))
			for _, h := range []string{"eq-mended", "mge"} {
				res := remat.AuditClasses(t, s, budget, remat.Config{Heuristic: h, Liveness: liveness, Limit: 3 * s.Cost})
				evicted += res.Evictions[remat.Pressure]
			}
		}
	})
	require.Positive(t, evicted)
}

func TestIncrementalRegionsEqualRebuiltOnes(t *testing.T) {
	spared := 0
	for i := range 400 {
		r := workload.NewRand(*seed*104729 + uint64(i))
		s := drawOps(t, r, 5+int(r.Below(20)))
		for _, liveness := range []string{"none", "eager", "mge-refcount"} {
			peak := peakOf(t, s, liveness)
			budget := peak/3 + device.Size(r.Below(uint64(peak)+1))
			for _, h := range []string{"estar", "msps"} {
				c := remat.Config{Heuristic: h, Liveness: liveness, Limit: 3 * s.Cost, EagerInRemat: r.Below(2) == 0}
				if remat.AuditRegions(t, s, budget, c) {
					spared++
				}
			}
		}
	}
	require.Greater(t, spared, 20)
	t.Logf("%d runs without", spared)
}

func TestCreditForFreeNeighboursNeedsAddresses(t *testing.T) {
	schedules(t, 40, func(t *testing.T, s *remat.Schedule, r *workload.Rand) {
		budget := device.Size(r.Below(uint64(peakOf(t, s, "eager")) + 1))
		run := func(h string) remat.Result {
			return play(t, s, budget, remat.Config{Heuristic: h, Liveness: "eager", Limit: 3 * s.Cost})
		}
		require.Equal(t, run("eq"), run("dte"), "counted bytes have no neighbours")
	})
}

// order writes down which storages are evicted for memory.
type order struct{ list []int32 }

func (*order) OnRun(int32, remat.Tensor, bool) {}

func (*order) OnForget(int32) {}

func (o *order) OnEvict(storage int32, why remat.Cause) {
	if why == remat.Pressure {
		o.list = append(o.list, storage)
	}
}

func TestNothingIsEvictedForMemoryWithoutABudget(t *testing.T) {
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

// TestPlansTakeAnyLog gives random logs to the plans, which refuse them or run them within the
// budget.
func TestPlansTakeAnyLog(t *testing.T) {
	schedules(t, 200, func(t *testing.T, s *remat.Schedule, r *workload.Rand) {
		budget := device.Size(r.Below(uint64(peakOf(t, s, "none")) + 1))
		for _, p := range remat.Plans() {
			c := remat.Config{Heuristic: p.Name, Budget: budget, Liveness: "eager"}
			res, err := remat.Run(s, &remat.Counter{Budget: budget}, c)
			if refused := remat.Plannable(s, p.Name); refused != nil {
				require.Equal(t, refused, err)
				continue
			}
			require.NoError(t, err)
			require.LessOrEqual(t, res.Peak, budget)
		}
	})
}
