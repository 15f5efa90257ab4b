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

// region is the evicted storages reachable from a resident one through evicted ones in one
// direction (inside), and the resident storages at their edge.
type region struct {
	inside, edge sparse
	cost         int64 // total local cost of inside in ns
}

// regions keeps both regions of every resident storage, as the simulator does. An evicted storage
// merges, with its region, into the regions whose edge it was on. When a storage is restored, the
// regions around it are rebuilt.
//
// A rebuild visits the whole region. It is avoided as long as storages depend only on earlier ones:
// then the result follows from the change, and from the fact that the simulator treats the outputs
// of an operator that has not run yet as evicted, but only in regions rebuilt since.
type regions struct {
	noopNeighbourhood
	r     *runner
	of    [2][]region // by direction and storage
	sides int         // first direction that counts; up always does
	list  []int32     // scratch for rebuild
	parts [2]dense    // scratch for rebuild

	pending *Op  // the operator that is linked and has not run, or nil
	stale   bool // a view of pending adds to the cost of an evicted storage, so the sums of regions are stale
	crossed bool // a view has linked its storage to others, so regions must be rebuilt
}

// newRegions counts both directions if from is down, only ancestors if it is up.
func newRegions(from int) func(*runner) neighbourhood {
	return func(r *runner) neighbourhood {
		n := len(r.stores)
		r.graph = newGraph(n)
		return &regions{r: r, of: [2][]region{make([]region, n), make([]region, n)}, sides: from,
			parts: [2]dense{newDense(n), newDense(n)}}
	}
}

func (g *regions) onLink(op *Op) {
	g.r.graph.link(g.r.s, op)
	g.pending, g.stale = op, false
	for t := range op.outputs() {
		s := g.r.s.Tensors[t].Storage
		if g.r.s.Storages[s].Root == t {
			continue
		}
		g.stale = g.stale || !g.r.stores[s].resident
		for _, a := range op.Args {
			g.crossed = g.crossed || g.r.s.Tensors[a].Storage != s
		}
	}
}

func (g *regions) onRun(_ *Op, again bool) {
	if !again {
		g.pending, g.stale = nil, false
	}
}

func (g *regions) onEvict(s int32, _ Cause) {
	for p := range g.of[up][s].edge.all {
		g.absorb(down, p, s)
	}
	for c := range g.of[down][s].edge.all {
		g.absorb(up, c, s)
	}
	g.of[up][s].reset()
	g.of[down][s].reset()
}

// absorb moves s and its region from the edge of base's region to its inside. As in the simulator,
// s counts again if it is already inside, which self-links through views can cause.
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

// none32 means no storage.
const none32 int32 = -1

func (g *regions) onRestore(list []int32) {
	switch {
	case g.crossed:
	case g.pending != nil && len(list) > 0 && g.r.s.Storages[list[0]].Root >= g.pending.First:
		for _, s := range list {
			g.addNew(s)
		}
		return
	case !g.stale:
		for _, s := range list {
			g.rebuild(down, s)
			g.rebuild(up, s)
		}
		for _, s := range list {
			for _, p := range g.r.graph.parents[s] {
				g.restoreBelow(p, s)
			}
			for c := range g.of[down][s].edge.all {
				g.restoreAbove(c, s)
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

// addNew puts a new storage on the edge of its parents' regions. All parents are resident, and it
// has no children yet.
func (g *regions) addNew(s int32) {
	for _, p := range g.r.graph.parents[s] {
		g.of[up][s].edge.add(p)
		to := &g.of[down][p]
		to.lose(g.r, s)
		to.edge.add(s)
	}
}

// restoreBelow removes s, which has been restored, and everything reachable only through s from the
// downward region of its parent p.
func (g *regions) restoreBelow(p, s int32) {
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
	if g.pending == nil {
		return
	}
	for t := range g.pending.outputs() {
		if u := g.r.s.Tensors[t].Storage; g.r.s.Storages[u].Root == t && !to.inside.has(u) && g.reaches(p, u) {
			to.inside.add(u)
			to.cost += g.r.stores[u].local
		}
	}
}

// reaches reports whether a parent of x is p or inside the downward region of p.
func (g *regions) reaches(p, x int32) bool {
	for _, q := range g.r.graph.parents[x] {
		if q == p || g.of[down][p].inside.has(q) {
			return true
		}
	}
	return false
}

// restoreAbove removes s, which has been restored, and the parents reachable only through s from
// the upward region of c. All parents of s are resident.
func (g *regions) restoreAbove(c, s int32) {
	to, graph := &g.of[up][c], g.r.graph
	to.lose(g.r, s)
	for _, p := range graph.parents[s] {
		if slices.Contains(graph.parents[c], p) {
			continue
		}
		children := graph.children[p] // sorted; storages inside are older than c
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
	graph.reset()
	graph.visit(base)
	inside, edge := &g.parts[0], &g.parts[1]
	g.list = append(g.list[:0], base)
	for i := 0; i < len(g.list); i++ {
		for _, n := range edges[g.list[i]] {
			switch {
			case !graph.visit(n):
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

// onForget rebuilds the regions that contained the storage.
func (g *regions) onForget(s int32) {
	// A storage that is not resident has no regions, so its slots can hold this search.
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
