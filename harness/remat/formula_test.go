package remat

import (
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// hollow is a counter in which every block has free neighbours.
type hollow struct{ Counter }

func (*hollow) FreeNeighbours(alloc.Block) (below, above device.Size) { return 3 << 20, 5 << 20 }

// calculator compares the score of a storage with the formula of the heuristic after each run of an
// operator.
type calculator struct {
	t        *testing.T
	r        *runner
	turn     int // calls of Ran
	compared int
}

func (*calculator) Evicted(int32, Cause) {}
func (*calculator) Gone(int32)           {}

func (c *calculator) Ran(int32, Tensor, bool) {
	formula := c.r.h.Formula()
	inWindow := strings.HasPrefix(formula, "sum of ")
	formula = strings.TrimSuffix(strings.TrimPrefix(formula, "sum of "), " over a window")
	c.turn++
	list := c.r.pool.list()
	if len(list) == 0 {
		return
	}
	s := list[c.turn%len(list)]
	score, _, _ := c.r.score(s, math.Inf(1))
	if inWindow {
		score, _ = c.r.windowWorth(Owner(s+1), c.r.stores[s].block.Addr, 0)
	}
	symbols := c.symbols(s)
	isNew := c.r.stores[s].access == math.MinInt64 // a new output gets its time after the call
	if isNew || math.IsInf(score, 1) || math.IsInf(symbols["n"], 1) || c.r.want == 0 || symbols["R"] == 0 {
		return
	}
	want := evaluate(c.t, formula, symbols)
	require.InDelta(c.t, want, score, 1e-9*math.Abs(want), "storage %d: %s with %v", s, formula, symbols)
	c.compared++
}

// symbols returns the values of the symbols for a storage.
func (c *calculator) symbols(s int32) map[string]float64 {
	r, st := c.r, &c.r.stores[s]
	v := map[string]float64{"m": float64(r.s.Storages[s].Size), "c": float64(st.local), "t": float64(st.access),
		"s": float64(r.clock - st.access), "f": float64(r.freeBeside(s)), "r": float64(r.want), "R": 1}
	switch near := r.near.(type) {
	case *regions:
		v["U"], v["D"] = float64(near.of[up][s].cost), float64(near.of[down][s].cost)
	case *reachable:
		cost, access := near.cost(s)
		v["V"], v["s"] = float64(cost-st.local), float64(r.clock-access)
	case *classes:
		cost, _ := near.cost(s)
		v["E"] = float64(cost - st.local)
	case *mge:
		v["b"], v["N"] = near.own[s], near.neighbourCost(s)
		v["k"], v["a"] = float64(near.times[s]), near.now-near.access[s]
	case *oneflow:
		v["N"] = near.neighbourCost(s)
	case *belady:
		v["n"] = near.next(s)
	case *static:
		near.rank(s) // brings the sums up to date
		root := r.s.Storages[s].Root
		v["R"], v["F"], v["M"] = near.before[r.s.Tensors[root].Op], near.behind[root], near.memory[root]
		v["n"] = near.next(s)
		if st.first != st.last { // views add to R and F
			v["R"] = 0
		}
	}
	return v
}

var symbolPattern = regexp.MustCompile(`\b[A-Za-z]\b`)

// evaluate computes a formula, which with other signs is an expression of Go.
func evaluate(t *testing.T, formula string, symbols map[string]float64) float64 {
	t.Helper()
	power := fmt.Sprintf("%.17g", math.Pow(1.0001, symbols["k"]))
	expression := strings.NewReplacer("·", "*", "2^20", "1048576.0", "1.0001^k", power).Replace(formula)
	expression = symbolPattern.ReplaceAllStringFunc(expression, func(name string) string {
		require.Contains(t, symbols, name, "%s", formula)
		return fmt.Sprintf("(%.17e)", symbols[name])
	})
	value, err := types.Eval(token.NewFileSet(), nil, token.NoPos, expression)
	require.NoError(t, err, "%s", expression)
	result, _ := constant.Float64Val(value.Value)
	return result
}

// TestFormulas evaluates the formula of every heuristic during a run and compares it with the
// scores.
func TestFormulas(t *testing.T) {
	s, err := ReadFile("testdata/syn_unet4.log.gz", nil)
	require.NoError(t, err)
	for _, h := range Heuristics() {
		if h.near == nil {
			continue
		}
		t.Run(h.Name, func(t *testing.T) {
			config := Config{Heuristic: h.Name, Liveness: "eager", Limit: s.Cost}
			r, err := newRunner(s, &hollow{Counter{Budget: 330 << 20}}, config)
			require.NoError(t, err)
			c := &calculator{t: t, r: r}
			r.c.Watch = c
			r.steps()
			require.Greater(t, c.compared, 20)
		})
	}
}
