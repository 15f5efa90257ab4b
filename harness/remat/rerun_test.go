package remat_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// again writes down which operators run again, and follows how many bytes are resident meanwhile.
type again struct {
	s    *remat.Schedule
	ops  []string
	used map[int32]bool
	most device.Size // while something was made again
}

func (a *again) OnRun(number int32, _ remat.Tensor, again bool) {
	op := &a.s.Ops[number]
	for i := range op.Outputs {
		a.used[a.s.Tensors[op.First+remat.Tensor(i)].Storage] = true
	}
	if !again {
		return
	}
	a.ops = append(a.ops, op.Name)
	sum := device.Size(0)
	for s, is := range a.used {
		if is {
			sum += a.s.Storages[s].Size
		}
	}
	a.most = max(a.most, sum)
}

func (a *again) OnEvict(s int32, _ remat.Cause) { a.used[s] = false }

func (*again) OnForget(int32) {}

// deep returns a schedule whose end is a chain of n dead tensors of a byte each, all of which are
// made again.
func deep(t *testing.T, n int) *remat.Schedule {
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
	require.NoError(t, b.Release(call(device.Size(n)))) // takes all memory there is
	call(0, last)
	return b.Schedule()
}

func TestChainOfDeadTensorsNeedsItsWidestStep(t *testing.T) {
	s := deep(t, 100)
	for eager, most := range map[bool]device.Size{false: 100, true: 2} {
		a := &again{s: s, used: map[int32]bool{}}
		res := play(t, s, 100, remat.Config{Heuristic: "eq", Liveness: "eager", Observer: a, EagerInRemat: eager})
		require.Equal(t, remat.OK, res.Verdict)
		require.Equal(t, 100, res.Remats)
		require.Equal(t, 100, res.DeepestChain)
		require.Equal(t, most, a.most)
	}
}

func TestEarlyEvictionKeepsTensorsThatAreReadAgain(t *testing.T) {
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

func TestMissingInputsAreMadeInTheOrderAskedFor(t *testing.T) {
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
		seen := &again{s: s, used: map[int32]bool{}}
		res := play(t, s, 100, remat.Config{Heuristic: "lru", Liveness: "eager", Observer: seen, ParentOrder: order})
		require.Equal(t, remat.OK, res.Verdict)
		require.Equal(t, want, seen.ops)
		require.Equal(t, 2, res.DeepestChain)
	}
}
