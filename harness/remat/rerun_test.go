package remat_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// rerunLog records the operators that rerun, and the most resident bytes after a rerun.
type rerunLog struct {
	s        *remat.Schedule
	ops      []string
	resident map[int32]bool
	peak     device.Size
}

func (a *rerunLog) OnRun(number int32, _ remat.Tensor, again bool) {
	op := &a.s.Ops[number]
	for i := range op.Outputs {
		a.resident[a.s.Tensors[op.First+remat.Tensor(i)].Storage] = true
	}
	if !again {
		return
	}
	a.ops = append(a.ops, op.Name)
	sum := device.Size(0)
	for s, is := range a.resident {
		if is {
			sum += a.s.Storages[s].Size
		}
	}
	a.peak = max(a.peak, sum)
}

func (a *rerunLog) OnEvict(s int32, _ remat.Cause) { a.resident[s] = false }

func (*rerunLog) OnReturn(int32, bool) {}

func (*rerunLog) OnForget(int32) {}

// deadChain returns a schedule of a chain of n dead tensors of one byte. Its last operator reads
// the end of the chain, after another operator has taken all memory: the whole chain is recomputed.
func deadChain(t *testing.T, n int) *remat.Schedule {
	t.Helper()
	var b remat.Builder
	call := func(size device.Size, args ...remat.Tensor) remat.Tensor {
		out, err := b.Call(remat.Call{Name: "op", Cost: 1, Args: args,
			Outputs: []remat.Output{{Size: size, Alias: remat.NoAlias}}})
		require.NoError(t, err)
		return out
	}
	last := call(1)
	for range n - 1 {
		next := call(1, last)
		require.NoError(t, b.Release(last))
		last = next
	}
	require.NoError(t, b.Release(call(device.Size(n)))) // takes all memory
	call(0, last)
	return b.Schedule()
}

func TestChainOfDeadTensorsNeedsItsWidestStep(t *testing.T) {
	s := deadChain(t, 100)
	for eager, most := range map[bool]device.Size{false: 100, true: 2} {
		a := &rerunLog{s: s, resident: map[int32]bool{}}
		res := play(t, s, 100, remat.Config{Heuristic: "eq", Liveness: "eager", Observer: a, EagerInRemat: eager})
		require.Equal(t, remat.OK, res.Verdict)
		require.Equal(t, 100, res.Remats)
		require.Equal(t, 100, res.DeepestChain)
		require.Equal(t, most, a.peak)
	}
}

func TestEagerInRematEvictsOnlyDeadTensors(t *testing.T) {
	schedules(t, 60, func(t *testing.T, s *remat.Schedule, r *workload.Rand) {
		alive := *s
		alive.Steps = nil
		for _, step := range s.Steps {
			if step.Kind != remat.Release {
				alive.Steps = append(alive.Steps, step)
			}
		}
		budget := device.Size(r.Below(uint64(peakOf(t, &alive, "none")) + 1))
		c := remat.Config{Heuristic: "eq", Liveness: "eager", Limit: 3 * s.Cost}
		want := play(t, &alive, budget, c)
		c.EagerInRemat = true
		require.Equal(t, want, play(t, &alive, budget, c), "nothing is dead")
	})
}

func TestMissingInputsAreRecomputedInTheChosenOrder(t *testing.T) {
	var b remat.Builder
	call := func(name string, cost int64, size device.Size, args ...remat.Tensor) remat.Tensor {
		out, err := b.Call(remat.Call{Name: name, Cost: cost, Args: args,
			Outputs: []remat.Output{{Size: size, Alias: remat.NoAlias}}})
		require.NoError(t, err)
		return out
	}
	a1 := call("a1", 9, 10)
	a := call("a", 1, 1, a1) // a chain of 10 ns, at most 11 bytes
	c := call("c", 2, 5)     // 2 ns, 5 bytes
	d1 := call("d1", 2, 30)
	d := call("d", 3, 1, d1) // 5 ns, 31 bytes
	require.NoError(t, b.Release(a1))
	require.NoError(t, b.Release(d1))
	require.NoError(t, b.Release(call("all", 1, 100)))
	call("reader", 1, 1, a, c, d)
	s := b.Schedule()
	for order, want := range map[remat.ParentOrder][]string{
		remat.ByArgument:    {"a1", "a", "c", "d1", "d"},
		remat.CheapestFirst: {"c", "d1", "d", "a1", "a"},
		remat.LargestFirst:  {"d1", "d", "a1", "a", "c"},
	} {
		seen := &rerunLog{s: s, resident: map[int32]bool{}}
		res := play(t, s, 100, remat.Config{Heuristic: "lru", Liveness: "eager", Observer: seen, ParentOrder: order})
		require.Equal(t, remat.OK, res.Verdict)
		require.Equal(t, want, seen.ops)
		require.Equal(t, 2, res.DeepestChain)
	}
}
