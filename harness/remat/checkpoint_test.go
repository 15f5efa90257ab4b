package remat

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/internal/budget"
)

// chainLog builds a chain of n links and its backward pass: operator j reads the gradient of
// j+1 and one or two of the results j and j-1. Size, cost and pick draw the numbers.
func chainLog(t *testing.T, n int, size func() device.Size, cost func() int64, pick func(int) int) *Schedule {
	t.Helper()
	var b Builder
	call := func(name string, args ...Tensor) Tensor {
		made, err := b.Call(Call{Name: name, Cost: cost(), Workspace: size() - 1, Args: args,
			Outputs: []Output{{Size: size(), Alias: NoAlias}}})
		require.NoError(t, err)
		return made
	}
	batch, err := b.Constant(size())
	require.NoError(t, err)
	results := []Tensor{batch}
	for i := 1; i <= n; i++ {
		results = append(results, call("f", results[i-1]))
	}
	gradient := call("loss", results[n])
	for j := n; j >= 1; j-- {
		reads := [][]Tensor{{results[j]}, {results[j-1]}, {results[j], results[j-1]}, {results[j-1], results[j]}}[pick(4)]
		if j == 1 {
			reads = []Tensor{batch, results[1]}
		}
		next := call("b", append([]Tensor{gradient}, reads...)...)
		require.NoError(t, b.Release(gradient))
		gradient = next
	}
	for _, r := range results[1:] {
		require.NoError(t, b.Release(r))
	}
	require.NoError(t, b.Release(gradient))
	return b.Schedule()
}

// leastTime runs all combinations of decisions within a budget. It returns the least clock, or -1
// if no run completes.
func leastTime(t *testing.T, s *Schedule, c *chain, budget device.Size) int64 {
	t.Helper()
	least := int64(-1)
	for list := []bool{}; ; {
		calls := 0
		next := func(int32, bool) bool {
			if calls++; calls > len(list) {
				list = append(list, false)
			}
			return list[calls-1]
		}
		res, err := runPlanned(s, &Counter{Budget: budget}, Config{Liveness: "eager", plan: &planLiveness{c: c, next: next}})
		require.NoError(t, err)
		if res.Verdict == OK && (least < 0 || res.Clock < least) {
			least = res.Clock
		}
		list = list[:calls]
		for len(list) > 0 && list[len(list)-1] {
			list = list[:len(list)-1]
		}
		if len(list) == 0 {
			return least
		}
		list[len(list)-1] = true
	}
}

// TestOptimalCheckpointsAreOptimal compares the dynamic program with all combinations of decisions.
func TestOptimalCheckpointsAreOptimal(t *testing.T) {
	rand := workload.NewRand(1)
	size := func() device.Size { return device.Size(1 + rand.Below(5)) }
	cost := func() int64 { return int64(1 + rand.Below(9)) }
	infeasible, recomputed := 0, 0
	for range 60 {
		s := chainLog(t, 2+int(rand.Below(3)), size, cost, func(n int) int { return int(rand.Below(uint64(n))) })
		c, err := chainOf(s)
		require.NoError(t, err)
		for _, most := range []device.Size{8, 12, 16, 20, 30} {
			want := leastTime(t, s, c, most)
			res, err := Run(s, &Counter{Budget: most}, Config{Heuristic: "chain-optimal", Budget: most, Liveness: "eager"})
			require.NoError(t, err)
			if want < 0 {
				infeasible++
				require.Equal(t, OOM, res.Verdict)
				continue
			}
			require.Equal(t, OK, res.Verdict)
			require.Equal(t, want, res.Clock)
			if res.RematTime > 0 {
				recomputed++
			}
		}
	}
	require.Greater(t, infeasible, 10)
	require.Greater(t, recomputed, 10)
}

// TestSublinearNeedsTwoRoots runs a chain of n equal links within 2√n tensors and a few.
func TestSublinearNeedsTwoRoots(t *testing.T) {
	one := func() device.Size { return 1 }
	for _, n := range []int{16, 64, 100} {
		s := chainLog(t, n, one, func() int64 { return 1 }, func(int) int { return 1 })
		most := device.Size(2*math.Sqrt(float64(n))) + 4
		for _, p := range Plans() {
			res, err := Run(s, &Counter{Budget: most}, Config{Heuristic: p.Name, Budget: most, Liveness: "eager"})
			require.NoError(t, err)
			require.Equal(t, OK, res.Verdict, p.Name)
			require.LessOrEqual(t, res.Peak, most)
			require.LessOrEqual(t, res.RematTime, int64(n), "at most one more forward pass")
		}
	}
}

// TestPlansOnALog checks the statements of docs/remat.md about the curves of a log.
func TestPlansOnALog(t *testing.T) {
	s, err := ReadFile("testdata/syn_chain64.log.gz", budget.New(1<<30))
	require.NoError(t, err)
	for share := 10; share <= 100; share += 5 {
		most := device.Size(66<<20*share) / 100
		clock := map[string]float64{}
		for _, name := range []string{"sublinear", "chain-optimal", "eq"} {
			res, err := Run(s, &Counter{Budget: most}, Config{Heuristic: name, Budget: most, Liveness: "eager", Limit: s.Cost})
			require.NoError(t, err)
			if clock[name] = math.Inf(1); res.Verdict == OK {
				clock[name] = float64(res.Clock)
			}
		}
		assert.LessOrEqual(t, clock["chain-optimal"], clock["sublinear"], share)
		switch {
		case share < 15:
			assert.Equal(t, math.Inf(1), clock["chain-optimal"])
		case share < 30:
			assert.Less(t, clock["chain-optimal"], clock["eq"])
			assert.Less(t, clock["eq"]/clock["chain-optimal"], 1.06)
			assert.Equal(t, math.Inf(1), clock["sublinear"])
		default:
			assert.Equal(t, clock["chain-optimal"], clock["eq"], share)
			assert.Less(t, clock["sublinear"], math.Inf(1))
		}
	}
}

func TestPlansRefuseOtherLogs(t *testing.T) {
	const none = "sublinear: want a chain of operators that each read the result before: operator "
	for path, want := range map[string]string{
		"testdata/syn_unet4.log.gz":       `37 ("concat") does not read results in reverse order`,
		"testdata/syn_lstm64.log.gz":      `6 ("chunk") returns a view of a result`,
		"testdata/syn_resnet20.log.gz":    `4 ("batch_norm") has 3 results`,
		"../../examples/remat/cnn.log.gz": `484 ("convolution") does not read the result of the operator before it`,
	} {
		s, err := ReadFile(path, budget.New(1<<30))
		require.NoError(t, err)
		require.EqualError(t, CanRun(s, "sublinear"), none+want)
		_, err = Run(s, &Counter{Budget: 1 << 40}, Config{Heuristic: "sublinear", Budget: 1 << 40, Liveness: "eager"})
		require.EqualError(t, err, none+want)
		require.NoError(t, CanRun(s, "eq"))
	}
	one := func() device.Size { return 1 }
	long := chainLog(t, maxLinks+1, one, func() int64 { return 1 }, func(int) int { return 1 })
	require.NoError(t, CanRun(long, "sublinear"))
	require.EqualError(t, CanRun(long, "chain-optimal"), "chain-optimal: the chain has 129 operators, want at most 128")
	timeless := chainLog(t, 3, one, func() int64 { return 0 }, func(int) int { return 1 })
	require.ErrorContains(t, CanRun(timeless, "mge:measure=time"), "the log has no times, want measure=bytes")
	require.ErrorContains(t, CanRun(timeless, "eq:evict=cheaper"), "the log has no times, want evict=drop or swap")
	require.NoError(t, CanRun(timeless, "eq"))
}
