package remat

import "math/bits"

// The directions of a region.
const (
	down = iota // through children
	up          // through parents
)

// region is the evicted storages that can be reached from a resident one through evicted ones, in one
// direction, and the resident ones at their edge.
type region struct {
	inside, edge sparse
	cost         int64 // ns, of inside
}

// regions keeps both regions of every resident storage, as the simulator does: one that is evicted is
// absorbed, with its region, by those it was at the edge of; when one comes back, the
// regions around it are found anew.
//
// What comes for the first time can be spared that. Its parents are locked, so nothing but them has it at its edge,
// and the rest of their regions is what it would be found to be, unless it was found while the new one was
// a part of the graph already, or a view has linked storages of before without telling the regions.
type regions struct {
	passive
	r     *runner
	of    [2][]region // by direction and storage
	sides int         // the first direction that counts: up does always
	list  []int32     // for rebuild
	parts [2]dense    // for rebuild

	born    *Op  // has not run yet; nil for none
	anew    bool // a region was found anew since
	crossed bool // a view links its storage to others
}

// newRegions keeps regions and counts both directions.
func newRegions(r *runner) neighbourhood { return makeRegions(r, down) }

// newAncestors keeps regions and counts what a storage is made of.
func newAncestors(r *runner) neighbourhood { return makeRegions(r, up) }

// makeRegions counts the directions from the given one on.
func makeRegions(r *runner, from int) neighbourhood {
	r.graph = newGraph(len(r.stores))
	n := len(r.stores)
	return &regions{r: r, of: [2][]region{make([]region, n), make([]region, n)}, sides: from,
		parts: [2]dense{newDense(n), newDense(n)}}
}

func (g *regions) linked(op *Op) {
	g.r.graph.link(g.r.s, op)
	g.born, g.anew = op, false
	first, end := op.outputs()
	for t := first; t < end; t++ {
		s := g.r.s.Tensors[t].Storage
		if g.r.s.Storages[s].Root == t {
			continue
		}
		for _, a := range op.Args {
			g.crossed = g.crossed || g.r.s.Tensors[a].Storage != s
		}
	}
}

func (g *regions) ran(_ *Op, again bool) {
	if !again {
		g.born = nil
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

// absorb moves s from the edge of base's region to its inside, with the region of s. The simulator counts s
// even if it is inside already, as what views link to itself may be.
func (g *regions) absorb(side int, base, s int32) {
	from, to := &g.of[side][s], &g.of[side][base]
	to.edge.drop(s)
	for _, w := range from.edge {
		to.edge.merge(w)
	}
	if side < g.sides {
		return // nobody asks what is inside
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
	if g.spared(list) {
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

// spared puts storages that come for the first time to the edges of their parents, and returns false if
// that is not all.
func (g *regions) spared(list []int32) bool {
	if g.crossed || g.anew || g.born == nil || len(list) == 0 {
		return false
	}
	if g.r.s.Storages[list[0]].Root < g.born.First {
		return false // it comes back
	}
	for _, s := range list {
		for _, p := range g.r.graph.parents[s] {
			g.of[up][s].edge.add(p)
			g.of[down][p].edge.add(s)
		}
	}
	return true
}

// rebuild finds a region anew.
func (g *regions) rebuild(side int, base int32) {
	g.anew = true
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
	if side >= g.sides {
		for _, s := range g.list[1:] {
			inside.add(s)
		}
		inside.into(&to.inside)
	}
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

// reset empties a region and keeps its room.
func (r *region) reset() { r.inside, r.edge, r.cost = r.inside[:0], r.edge[:0], 0 }

func (g *regions) cost(s int32) (cost, access int64) {
	st := &g.r.stores[s]
	cost = st.local
	for side := g.sides; side <= up; side++ {
		cost += g.of[side][s].cost
	}
	return cost, st.access
}
