package remat

import (
	"math/bits"
	"slices"
)

// The directions of a region.
const (
	down = iota // through children
	up          // through parents
)

// region is the evicted storages that can be reached from a resident one through evicted ones, in
// one direction, and the resident ones at their edge.
type region struct {
	inside, edge sparse
	cost         int64 // ns, of inside
}

// regions keeps both regions of every resident storage, as the simulator does: one that is evicted
// is absorbed, with its region, by those it was at the edge of; when one comes back, the regions
// around it are found anew.
//
// To find them anew means to look at all they hold. As long as storages are made only of such that
// came before them, what that would find can be told from what changes, and from the simulator's
// view that outputs are there, evicted, before their operator has run: it counts them where a
// region is found anew meanwhile.
type regions struct {
	passive
	r     *runner
	of    [2][]region // by direction and storage
	sides int         // the first direction that counts: up does always
	list  []int32     // for rebuild
	parts [2]dense    // for rebuild

	born    *Op  // has not run yet; nil for none
	grown   bool // a view of born adds to the cost of an evicted storage: what regions hold of it is old
	crossed bool // a view has linked its storage to others, which regions see only when they are found anew
}

// newRegions counts both directions if from is down, and only ancestors if it is up.
func newRegions(from int) func(*runner) neighbourhood {
	return func(r *runner) neighbourhood {
		n := len(r.stores)
		r.graph = newGraph(n)
		return &regions{r: r, of: [2][]region{make([]region, n), make([]region, n)}, sides: from,
			parts: [2]dense{newDense(n), newDense(n)}}
	}
}

func (g *regions) linked(op *Op) {
	g.r.graph.link(g.r.s, op)
	g.born, g.grown = op, false
	for t := range op.outputs() {
		s := g.r.s.Tensors[t].Storage
		if g.r.s.Storages[s].Root == t {
			continue
		}
		g.grown = g.grown || !g.r.stores[s].resident
		for _, a := range op.Args {
			g.crossed = g.crossed || g.r.s.Tensors[a].Storage != s
		}
	}
}

func (g *regions) ran(_ *Op, again bool) {
	if !again {
		g.born, g.grown = nil, false
	}
}

func (g *regions) left(s int32, _ Cause) {
	for p := range g.of[up][s].edge.all {
		g.absorb(down, p, s)
	}
	for c := range g.of[down][s].edge.all {
		g.absorb(up, c, s)
	}
	g.of[up][s].reset()
	g.of[down][s].reset()
}

// absorb moves s from the edge of base's region to its inside, with the region of s. The simulator
// counts s even if it is inside already, as what views link to itself may be.
func (g *regions) absorb(side int, base, s int32) {
	from, to := &g.of[side][s], &g.of[side][base]
	to.edge.drop(s)
	for _, w := range from.edge {
		to.edge.merge(w)
	}
	to.inside.add(s)
	to.cost += g.r.stores[s].local
	for _, w := range from.inside {
		for b := to.inside.merge(w); b != 0; b &= b - 1 {
			to.cost += g.r.stores[w.at*64+int32(bits.TrailingZeros64(b))].local
		}
	}
}

// none32 stands for no storage.
const none32 int32 = -1

func (g *regions) back(list []int32) {
	switch {
	case g.crossed:
	case g.born != nil && len(list) > 0 && g.r.s.Storages[list[0]].Root >= g.born.First:
		for _, s := range list {
			g.bear(s)
		}
		return
	case !g.grown:
		for _, s := range list {
			g.rebuild(down, s)
			g.rebuild(up, s)
		}
		for _, s := range list {
			for _, p := range g.r.graph.parents[s] {
				g.below(p, s)
			}
			for c := range g.of[down][s].edge.all {
				g.above(c, s)
			}
		}
		return
	}
	for _, s := range list {
		g.rebuild(down, s)
		g.rebuild(up, s)
	}
	for _, s := range list {
		for p := range g.of[up][s].edge.all {
			g.rebuild(down, p)
		}
		for c := range g.of[down][s].edge.all {
			g.rebuild(up, c)
		}
	}
}

// bear puts a storage that comes for the first time to the edge of its parents, all of which are
// resident, and of nobody else. Nothing is made of it yet.
func (g *regions) bear(s int32) {
	for _, p := range g.r.graph.parents[s] {
		g.of[up][s].edge.add(p)
		to := &g.of[down][p]
		to.lose(g.r, s)
		to.edge.add(s)
	}
}

// below tells the region of p downwards that s has come back, which is made of it: what can be
// reached through s alone is lost.
func (g *regions) below(p, s int32) {
	to, from := &g.of[down][p], &g.of[down][s]
	to.lose(g.r, s)
	for x := range from.inside.all { // parents before children
		if !g.reaches(p, x) {
			to.lose(g.r, x)
		}
	}
	for c := range from.edge.all {
		if !g.reaches(p, c) {
			to.edge.drop(c)
		}
	}
	to.edge.add(s)
	if g.born == nil {
		return
	}
	for t := range g.born.outputs() {
		if u := g.r.s.Tensors[t].Storage; g.r.s.Storages[u].Root == t && !to.inside.has(u) && g.reaches(p, u) {
			to.inside.add(u)
			to.cost += g.r.stores[u].local
		}
	}
}

// reaches reports whether x is made of p, or of what is inside the region of p downwards.
func (g *regions) reaches(p, x int32) bool {
	for _, q := range g.r.graph.parents[x] {
		if q == p || g.of[down][p].inside.has(q) {
			return true
		}
	}
	return false
}

// above tells the region of c upwards that s has come back, which was inside. The parents of s are
// all resident; those that can be reached through s alone are lost.
func (g *regions) above(c, s int32) {
	to, graph := &g.of[up][c], g.r.graph
	to.lose(g.r, s)
	for _, p := range graph.parents[s] {
		if slices.Contains(graph.parents[c], p) {
			continue
		}
		children := graph.children[p] // in order, and what is inside came before c
		last, _ := slices.BinarySearch(children, c)
		if !slices.ContainsFunc(children[:last], to.inside.has) {
			to.edge.drop(p)
		}
	}
	to.edge.add(s)
}

func (r *region) lose(run *runner, s int32) {
	if r.inside.drop(s) {
		r.cost -= run.stores[s].local
	}
}

func (g *regions) rebuild(side int, base int32) {
	graph, to := g.r.graph, &g.of[side][base]
	edges := graph.children
	if side == up {
		edges = graph.parents
	}
	to.reset()
	graph.fresh()
	graph.meet(base)
	inside, edge := &g.parts[0], &g.parts[1]
	g.list = append(g.list[:0], base)
	for i := 0; i < len(g.list); i++ {
		for _, n := range edges[g.list[i]] {
			switch {
			case !graph.meet(n):
			case g.r.stores[n].resident:
				edge.add(n)
			default:
				g.list = append(g.list, n)
				to.cost += g.r.stores[n].local
			}
		}
	}
	edge.into(&to.edge)
	for _, s := range g.list[1:] {
		inside.add(s)
	}
	inside.into(&to.inside)
}

// gone finds those regions anew that the storage was inside of.
func (g *regions) gone(s int32) {
	// A storage that is not resident has no regions of its own, so there is room to find out
	// from where it can be reached.
	g.rebuild(up, s)
	g.rebuild(down, s)
	g.r.graph.cut(s)
	for p := range g.of[up][s].edge.all {
		g.rebuild(down, p)
	}
	for c := range g.of[down][s].edge.all {
		g.rebuild(up, c)
	}
	g.of[up][s], g.of[down][s] = region{}, region{}
}

func (r *region) reset() { r.inside, r.edge, r.cost = r.inside[:0], r.edge[:0], 0 }

func (g *regions) cost(s int32) (cost, access int64) {
	st := &g.r.stores[s]
	cost = st.local
	for side := g.sides; side <= up; side++ {
		cost += g.of[side][s].cost
	}
	return cost, st.access
}
