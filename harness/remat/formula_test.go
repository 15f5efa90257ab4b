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

// roomyCounter is a counter that reports adjacent free memory for every block.
type roomyCounter struct{ Counter }

func (*roomyCounter) FreeNeighbours(alloc.Block) (below, above device.Size) { return 3 << 20, 5 << 20 }

// formulaChecker compares the score of a storage with the formula of the heuristic after each run
// of an operator.
type formulaChecker struct {
	t        *testing.T
	r        *runner
	turn     int // calls of OnRun
	compared int
}

func (*formulaChecker) OnEvict(int32, Cause) {}
func (*formulaChecker) OnReturn(int32, bool) {}

func (*formulaChecker) OnForget(int32) {}

func (c *formulaChecker) OnRun(int32, Tensor, bool) {
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
		score, _ = c.r.windowCost(Owner(s+1), c.r.stores[s].block.Addr, 0)
	}
	symbols := c.symbols(s)
	isNew := c.r.stores[s].access == math.MinInt64 // a new output gets its time after the call
	if isNew || math.IsInf(score, 1) || math.IsInf(symbols["n"], 1) || c.r.requested == 0 || symbols["R"] == 0 {
		return
	}
	want := evaluate(c.t, formula, symbols)
	require.InDelta(c.t, want, score, 1e-9*math.Abs(want), "storage %d: %s with %v", s, formula, symbols)
	c.compared++
}

// symbols returns the values of the symbols for a storage.
func (c *formulaChecker) symbols(s int32) map[string]float64 {
	r, st := c.r, &c.r.stores[s]
	v := map[string]float64{"m": float64(r.s.Storages[s].Size), "c": float64(st.local), "t": float64(st.access),
		"s": float64(r.clock - st.access), "f": float64(r.adjacentFree(s)), "r": float64(r.requested), "R": 1}
	switch scorer := r.scorer.(type) {
	case *neighborhoods:
		v["U"], v["D"] = float64(scorer.at[up][s].cost), float64(scorer.at[down][s].cost)
	case *reachable:
		cost, access := scorer.cost(s)
		v["V"], v["s"] = float64(cost-st.local), float64(r.clock-access)
	case *classes:
		cost, _ := scorer.cost(s)
		v["E"] = float64(cost - st.local)
	case *mge:
		v["b"], v["N"] = scorer.ownCost[s], scorer.neighborCost(s)
		v["k"], v["a"] = float64(scorer.remats[s]), scorer.now-scorer.access[s]
	case *oneflow:
		v["N"] = scorer.neighborCost(s)
	case *belady:
		v["n"] = scorer.next(s)
	case *static:
		scorer.rank(s) // computes the sums
		root := r.s.Storages[s].Root
		v["R"], v["F"], v["M"] = scorer.recompute[r.s.Tensors[root].Op], scorer.descendants[root], scorer.inputBytes[root]
		v["n"] = scorer.next(s)
		if st.first != st.last { // views add to R and F
			v["R"] = 0
		}
	}
	return v
}

var symbolPattern = regexp.MustCompile(`\b[A-Za-z]\b`)

// evaluate computes a formula. With other signs for its operators it is an expression of Go.
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
		if h.newScorer == nil {
			continue
		}
		t.Run(h.Name, func(t *testing.T) {
			config := Config{Heuristic: h.Name, Liveness: "eager", Limit: s.Cost}
			r, err := newRunner(s, &roomyCounter{Counter{Budget: 330 << 20}}, config)
			require.NoError(t, err)
			c := &formulaChecker{t: t, r: r}
			r.c.Observer = c
			r.steps()
			require.Greater(t, c.compared, 20)
		})
	}
}

// refusalHook is a counter that calls onRefusal when an operator has no room, before each choice of
// a victim.
type refusalHook struct {
	Counter
	onRefusal func()
}

func (o *refusalHook) Room(n device.Size) bool {
	fits := o.Counter.Room(n)
	if !fits {
		o.onRefusal()
	}
	return fits
}

// Choices returns the example of docs/remat.md: the candidates and their scores for each victim
// that eq chooses in a small program.
func Choices(t *testing.T) string {
	t.Helper()
	var b Builder
	names, sizes, costs := "abcdef", []device.Size{32, 128, 32, 64, 64, 96}, []int64{2, 4, 8, 1, 2, 1}
	for i := range names {
		call := Call{Name: names[i : i+1], Cost: costs[i] * 1e6, Outputs: []Output{{Size: sizes[i] << 20, Alias: NoAlias}}}
		if i > 0 {
			call.Args = []Tensor{Tensor(i - 1)}
		}
		_, err := b.Call(call)
		require.NoError(t, err)
	}
	m := &refusalHook{Counter: Counter{Budget: 256 << 20}}
	r, err := newRunner(b.Schedule(), m, Config{Heuristic: "eq", Liveness: "none"})
	require.NoError(t, err)
	text := "| operator | candidate | `m`, MiB | `c`, ms | `s`, ms | `E`, ms | `local` | `eq` |\n" +
		"|---|---|--:|--:|--:|--:|--:|--:|\n"
	m.onRefusal = func() {
		list := r.pool.list()
		for i, s := range list {
			v := (&formulaChecker{t: t, r: r}).symbols(s)
			operator := ""
			if i == 0 {
				operator = "`" + names[len(r.s.Ops)-operatorsLeft(r):][:1] + "`"
			}
			size, own, stale, around := v["m"]/(1<<20), v["c"]/1e6, v["s"]/1e6, v["E"]/1e6
			text += fmt.Sprintf("| %s | `%c` | %.0f | %.0f | %.0f | %.0f | %.1f | %.1f |\n", operator, names[s], size, own,
				stale, around, own/(size/1024*stale), (own+around)/(size/1024*stale))
		}
	}
	v := &victimNames{names: names}
	r.c.Observer = v
	require.Equal(t, OK, r.steps())
	require.Equal(t, "bd", v.victims, "the text below the table names these victims")
	return text
}

// operatorsLeft returns the number of operators that have not run.
func operatorsLeft(r *runner) (n int) {
	for i := range r.s.Ops {
		if r.storeOf(r.s.Ops[i].First).access == math.MinInt64 {
			n++
		}
	}
	return n
}

// victimNames collects the names of the victims.
type victimNames struct{ names, victims string }

func (*victimNames) OnRun(int32, Tensor, bool) {}
func (*victimNames) OnReturn(int32, bool)      {}

func (*victimNames) OnForget(int32)             {}
func (v *victimNames) OnEvict(s int32, _ Cause) { v.victims += v.names[s : s+1] }
