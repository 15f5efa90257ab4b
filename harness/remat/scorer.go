package remat

import "slices"

// scorer estimates the cost of recomputing a storage. Its hooks keep the estimate up to
// date, so that scoring need not visit every storage. Each is a coster or a ranker as well.
type scorer interface {
	// onLink is called when an operator is first seen, before it runs. From then on its outputs are
	// part of the graph.
	onLink(op *Op)
	// onUse is called when an operator is about to run, before any of its inputs is recomputed.
	onUse(op *Op)
	// onEvict is called when a storage has been evicted.
	onEvict(s int32, why Cause)
	// onRestore is called when storages have become resident.
	onRestore(s []int32)
	// onRun is called after onRestore when an operator has run. Again is false on its first run.
	onRun(op *Op, again bool)
	// onForget is called when a storage that is not resident will never be needed again.
	onForget(s int32)
}

// coster returns the numerator of a score.
type coster interface {
	// cost returns the recomputation cost of a resident storage in ns, and its last access.
	cost(s int32) (cost, access int64)
}

// ranker computes whole scores.
type ranker interface {
	// rank returns the score of a resident storage and its tie-breaker.
	rank(s int32) (score, tie float64)
}

// noopHooks has hooks that do nothing.
type noopHooks struct{}

func (noopHooks) onLink(*Op)           {}
func (noopHooks) onUse(*Op)            {}
func (noopHooks) onEvict(int32, Cause) {}
func (noopHooks) onRestore([]int32)    {}
func (noopHooks) onRun(*Op, bool)      {}
func (noopHooks) onForget(int32)       {}

// single scores a storage by its own fields only.
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

// reachable scores a storage by the evicted storages reachable from it through evicted ones, in
// either direction, each counted once. It searches for each score. A storage counts as used when
// any of them was.
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

// reach returns the evicted storages reachable from s along edges through evicted ones.
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
