package remat

import "slices"

// scorer computes the scores of a heuristic. Its hooks keep sums up to date, so that a score need
// not visit the whole graph. Each scorer implements [coster] or [ranker] as well.
type scorer interface {
	// onLink is called before an operator runs for the first time, and before its inputs are
	// recomputed. From then on its outputs are part of the graph.
	onLink(op *Op)
	// onUse is called when an operator is about to run, before any of its inputs is recomputed.
	onUse(op *Op)
	// onEvict is called when a storage has been evicted.
	onEvict(s int32, why Cause)
	// onRestore is called when storages have become resident.
	onRestore(s []int32)
	// onRun is called after onRestore when an operator has run. Again is false on its first run.
	onRun(op *Op, again bool)
	// onForget is called when a storage has been freed permanently. It is not resident.
	onForget(s int32)
}

// coster is a scorer of the dividends of scores.
type coster interface {
	// cost returns the dividend for a resident storage, and the clock at its last use.
	cost(s int32) (cost, access int64)
}

// ranker is a scorer of whole scores.
type ranker interface {
	// rank returns the score of a resident storage. Among equal scores the least tie is evicted
	// first.
	rank(s int32) (score, tie float64)
}

// noopHooks is embedded by a scorer that needs only some of the hooks.
type noopHooks struct{}

func (noopHooks) onLink(*Op)           {}
func (noopHooks) onUse(*Op)            {}
func (noopHooks) onEvict(int32, Cause) {}
func (noopHooks) onRestore([]int32)    {}
func (noopHooks) onRun(*Op, bool)      {}
func (noopHooks) onForget(int32)       {}

// single is the scorer of heuristics that look at the state of the storage alone.
type single struct {
	noopHooks
	r  *runner
	of func(*store) int64
}

func (a single) cost(s int32) (cost, access int64) {
	st := &a.r.stores[s]
	return a.of(st), st.access
}

// singleBy returns a constructor of [single].
func singleBy(of func(*store) int64) func(*runner) scorer {
	return func(r *runner) scorer { return single{r: r, of: of} }
}

// reachable adds to the cost of a storage the costs of its evicted ancestors and descendants, each
// once, by a search for each score. The last use is the latest of any of them.
type reachable struct {
	noopHooks
	r     *runner
	stack []int32
}

func newReachable(r *runner) scorer {
	r.graph = newGraph(len(r.stores))
	return &reachable{r: r}
}

func (w *reachable) onLink(op *Op)    { w.r.graph.link(w.r.s, op) }
func (w *reachable) onForget(s int32) { w.r.graph.remove(s) }

func (w *reachable) cost(s int32) (cost, access int64) {
	g := w.r.graph
	up := slices.Clone(w.reach(s, g.parents))
	down := w.reach(s, g.children)
	cost, access = w.r.stores[s].local, w.r.stores[s].access
	g.reset()
	for _, list := range [][]int32{up, down} {
		for _, n := range list {
			if g.visit(n) {
				cost += w.r.stores[n].local
				access = max(access, w.r.stores[n].access)
			}
		}
	}
	return cost, access
}

// reach returns the evicted storages reachable from s along edges, through evicted ones only.
func (w *reachable) reach(s int32, edges [][]int32) []int32 {
	g := w.r.graph
	g.reset()
	w.stack = append(w.stack[:0], s)
	for i := 0; i < len(w.stack); i++ {
		for _, n := range edges[w.stack[i]] {
			if !w.r.stores[n].resident && g.visit(n) {
				w.stack = append(w.stack, n)
			}
		}
	}
	return w.stack[1:]
}
