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

// checkedMemory is a memory and an observer that checks the events of a run. It keeps its own
// record of resident storages, and gives each tensor a tag computed from its operator and the tags
// of the inputs. As a memory it places blocks by first fit in one range.
type checkedMemory struct {
	t              *testing.T
	s              *remat.Schedule
	capacity       device.Size // bytes of the range
	blocks         []alloc.Block
	resident       map[int32]bool
	defined        map[remat.Tensor]uint64
	first          map[remat.Tensor]uint64
	lastWrite      map[int32]remat.Tensor // by storage: the tensor of its last in-place write
	seenWrite      map[remat.Tensor]remat.Tensor
	pinned         map[int32]bool
	banished       map[int32]bool
	banishedReturn bool // banished storages are restored by reruns for other outputs
}

func newCheckedMemory(t *testing.T, s *remat.Schedule, capacity device.Size) *checkedMemory {
	return &checkedMemory{t: t, s: s, capacity: capacity, resident: map[int32]bool{}, defined: map[remat.Tensor]uint64{},
		first: map[remat.Tensor]uint64{}, lastWrite: map[int32]remat.Tensor{}, seenWrite: map[remat.Tensor]remat.Tensor{},
		pinned: map[int32]bool{}, banished: map[int32]bool{}}
}

// Room returns true: only Alloc shows whether there is a hole.
func (a *checkedMemory) Room(device.Size) bool { return true }

func (a *checkedMemory) Alloc(size device.Size, owner remat.Owner) (alloc.Block, bool) {
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

func (a *checkedMemory) Free(b alloc.Block) {
	for i, other := range a.blocks {
		if other == b {
			a.blocks = append(a.blocks[:i:i], a.blocks[i+1:]...)
			return
		}
	}
	require.Fail(a.t, "free of an unknown block", "%v", b)
}

// FreeNeighbours implements remat.Neighbors.
func (a *checkedMemory) FreeNeighbours(b alloc.Block) (below, above device.Size) {
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

func (a *checkedMemory) OnRun(number int32, of remat.Tensor, again bool) {
	op := &a.s.Ops[number]
	sum := uint64(number)
	for _, p := range op.Args {
		storage := a.s.Tensors[p].Storage
		if a.banished[storage] {
			require.False(a.t, again, "operator %d reads tensor %d, which was banished", number, p)
		}
		tag, ok := a.defined[p]
		require.True(a.t, ok, "operator %d reads tensor %d, which is undefined", number, p)
		require.True(a.t, a.resident[storage], "operator %d reads tensor %d, whose storage is not resident", number, p)
		require.Equal(a.t, a.lastWrite[storage], a.seenWrite[p],
			"operator %d reads tensor %d, which was overwritten", number, p)
		sum = workload.NewRand(sum ^ tag).Next()
	}
	require.NotContains(a.t, a.defined, of)
	for i := range op.Outputs {
		out := op.First + remat.Tensor(i)
		tag := workload.NewRand(sum + uint64(i)).Next()
		if !again {
			a.first[out] = tag
			if a.s.Tensors[out].Written {
				a.lastWrite[a.s.Tensors[out].Storage] = out
			}
			a.seenWrite[out] = a.lastWrite[a.s.Tensors[out].Storage]
		}
		require.Equal(a.t, a.first[out], tag, "tensor %d is recomputed with another content", out)
		if a.banished[a.s.Tensors[out].Storage] && !a.banishedReturn {
			continue // the output is discarded
		}
		a.defined[out] = tag
		a.resident[a.s.Tensors[out].Storage] = true
		if op.Fixed {
			a.pinned[a.s.Tensors[out].Storage] = true
		}
	}
	a.checkTotals()
}

func (a *checkedMemory) OnEvict(storage int32, why remat.Cause) {
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

func (a *checkedMemory) OnForget(storage int32) {
	require.False(a.t, a.resident[storage])
	require.False(a.t, a.banished[storage], "storage %d is freed permanently twice", storage)
	a.banished[storage] = true
}

// checkTotals compares the bytes of resident storages with the bytes of blocks.
func (a *checkedMemory) checkTotals() {
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

// peakOf returns the peak of a schedule without a budget.
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
				a := newCheckedMemory(t, s, device.Size(r.Below(uint64(peak)+1)))
				c.Observer, a.banishedReturn = a, liveness == "banish"
				res, err := remat.Run(s, a, c)
				require.NoError(t, err)
				require.LessOrEqual(t, res.Peak, a.capacity)
				again := newCheckedMemory(t, s, a.capacity)
				c.Observer, again.banishedReturn = again, a.banishedReturn
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
			if refused := remat.Plannable(s, p.Name); refused != nil {
				require.Equal(t, refused, err)
				continue
			}
			require.NoError(t, err)
			require.LessOrEqual(t, res.Peak, budget)
		}
	})
}
