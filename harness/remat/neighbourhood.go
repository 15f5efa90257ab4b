package remat

import "slices"

// neighbourhood says what it would cost to have a storage again. It is told what happens to
// storages, so that it need not look at all of them for each score. It is a coster or a ranker,
// too.
type neighbourhood interface {
	// linked is called when an operator is seen for the first time, before it runs. Its outputs are
	// part of the graph from then on.
	linked(op *Op)
	// used is called when an operator is about to run, before any of its inputs is made again.
	used(op *Op)
	// left is called when a storage has been evicted.
	left(s int32, why Cause)
	// back is called when storages have become resident.
	back(s []int32)
	// ran is called behind back when an operator has run; again is false for its first time.
	ran(op *Op, again bool)
	// gone is called when a storage that is not resident will never be needed again.
	gone(s int32)
}

// coster gives the numerator of a score that is a quotient.
type coster interface {
	// cost returns nanoseconds for a resident storage, and when it counts as used last.
	cost(s int32) (cost, access int64)
}

// ranker has scores of its own.
type ranker interface {
	// rank returns the score of a resident storage, and what decides between equal scores.
	rank(s int32) (score, tie float64)
}

// passive is told and does not care.
type passive struct{}

func (passive) linked(*Op)        {}
func (passive) used(*Op)          {}
func (passive) left(int32, Cause) {}
func (passive) back([]int32)      {}
func (passive) ran(*Op, bool)     {}
func (passive) gone(int32)        {}

// alone is a neighbourhood that looks at the storage alone.
type alone struct {
	passive
	r  *runner
	of func(*store) int64
}

func (a alone) cost(s int32) (cost, access int64) {
	st := &a.r.stores[s]
	return a.of(st), st.access
}

// around returns what makes a neighbourhood of a storage alone.
func around(of func(*store) int64) func(*runner) neighbourhood {
	return func(r *runner) neighbourhood { return alone{r: r, of: of} }
}

// whole is the evicted storages that can be reached through evicted ones in one direction or the
// other, each counted once, found anew for each score. A storage counts as used when any of them
// was.
type whole struct {
	passive
	r     *runner
	stack []int32
}

func newWhole(r *runner) neighbourhood {
	r.graph = newGraph(len(r.stores))
	return &whole{r: r}
}

func (w *whole) linked(op *Op) { w.r.graph.link(w.r.s, op) }
func (w *whole) gone(s int32)  { w.r.graph.cut(s) }

func (w *whole) cost(s int32) (cost, access int64) {
	g := w.r.graph
	up := slices.Clone(w.reach(s, g.parents))
	down := w.reach(s, g.children)
	cost, access = w.r.stores[s].local, w.r.stores[s].access
	g.fresh()
	for _, list := range [][]int32{up, down} {
		for _, n := range list {
			if g.meet(n) {
				cost += w.r.stores[n].local
				access = max(access, w.r.stores[n].access)
			}
		}
	}
	return cost, access
}

// reach returns the evicted storages that can be reached from s through evicted ones.
func (w *whole) reach(s int32, edges [][]int32) []int32 {
	g := w.r.graph
	g.fresh()
	w.stack = append(w.stack[:0], s)
	for i := 0; i < len(w.stack); i++ {
		for _, n := range edges[w.stack[i]] {
			if !w.r.stores[n].resident && g.meet(n) {
				w.stack = append(w.stack, n)
			}
		}
	}
	return w.stack[1:]
}
