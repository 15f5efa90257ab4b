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

// neighborhood is the evicted storages reachable from a resident one through evicted ones in one
// direction (inside), and the resident storages at their edge.
type neighborhood struct {
	inside, edge sparse
	cost         int64 // total local cost of inside in ns
}

// neighborhoods keeps both neighborhoods of every resident storage, as the simulator does. An
// evicted storage merges, with its region, into the regions whose edge it was on. When a storage is
// restored, the regions around it are rebuilt.
//
// A rebuild visits the whole region. It is avoided as long as storages depend only on earlier ones:
// then the result follows from the change, and from the fact that the simulator treats the outputs
// of an operator that has not run yet as evicted, but only in regions rebuilt since.
type neighborhoods struct {
	noopHooks
	r       *runner
	at      [2][]neighborhood // by direction and storage
	first   int               // first direction that counts; up always does
	list    []int32           // scratch for rebuild
	scratch [2]dense          // scratch for rebuild

	pending *Op  // the operator that is linked and has not run, or nil
	stale   bool // a view of pending adds to the cost of an evicted storage, so the sums of regions are stale
	crossed bool // a view has linked its storage to others, so regions must be rebuilt
}

// newNeighborhoods counts both directions if from is down, only ancestors if it is up.
func newNeighborhoods(from int) func(*runner) scorer {
	return func(r *runner) scorer {
		n := len(r.stores)
		r.graph = newGraph(n)
		return &neighborhoods{r: r, at: [2][]neighborhood{make([]neighborhood, n), make([]neighborhood, n)}, first: from,
			scratch: [2]dense{newDense(n), newDense(n)}}
	}
}

func (g *neighborhoods) onLink(op *Op) {
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

func (g *neighborhoods) onRun(_ *Op, again bool) {
	if !again {
		g.pending, g.stale = nil, false
	}
}

func (g *neighborhoods) onEvict(s int32, _ Cause) {
	for p := range g.at[up][s].edge.all {
		g.absorb(down, p, s)
	}
	for c := range g.at[down][s].edge.all {
		g.absorb(up, c, s)
	}
	g.at[up][s].reset()
	g.at[down][s].reset()
}

// absorb moves s and its region from the edge of base's region to its inside. As in the simulator,
// s counts again if it is already inside, which self-links through views can cause.
func (g *neighborhoods) absorb(side int, base, s int32) {
	from, to := &g.at[side][s], &g.at[side][base]
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

func (g *neighborhoods) onRestore(list []int32) {
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
			for c := range g.at[down][s].edge.all {
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
		for p := range g.at[up][s].edge.all {
			g.rebuild(down, p)
		}
		for c := range g.at[down][s].edge.all {
			g.rebuild(up, c)
		}
	}
}

// addNew puts a new storage on the edge of its parents' regions. All parents are resident, and it
// has no children yet.
func (g *neighborhoods) addNew(s int32) {
	for _, p := range g.r.graph.parents[s] {
		g.at[up][s].edge.add(p)
		to := &g.at[down][p]
		to.remove(g.r, s)
		to.edge.add(s)
	}
}

// restoreBelow removes s, which has been restored, and everything reachable only through s from the
// downward region of its parent p.
func (g *neighborhoods) restoreBelow(p, s int32) {
	to, from := &g.at[down][p], &g.at[down][s]
	to.remove(g.r, s)
	for x := range from.inside.all { // parents before children
		if !g.reaches(p, x) {
			to.remove(g.r, x)
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
func (g *neighborhoods) reaches(p, x int32) bool {
	for _, q := range g.r.graph.parents[x] {
		if q == p || g.at[down][p].inside.has(q) {
			return true
		}
	}
	return false
}

// restoreAbove removes s, which has been restored, and the parents reachable only through s from
// the upward region of c. All parents of s are resident.
func (g *neighborhoods) restoreAbove(c, s int32) {
	to, graph := &g.at[up][c], g.r.graph
	to.remove(g.r, s)
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

func (r *neighborhood) remove(run *runner, s int32) {
	if r.inside.drop(s) {
		r.cost -= run.stores[s].local
	}
}

func (g *neighborhoods) rebuild(side int, base int32) {
	graph, to := g.r.graph, &g.at[side][base]
	edges := graph.children
	if side == up {
		edges = graph.parents
	}
	to.reset()
	graph.reset()
	graph.visit(base)
	inside, edge := &g.scratch[0], &g.scratch[1]
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
func (g *neighborhoods) onForget(s int32) {
	// A storage that is not resident has no regions, so its slots can hold this search.
	g.rebuild(up, s)
	g.rebuild(down, s)
	g.r.graph.remove(s)
	for p := range g.at[up][s].edge.all {
		g.rebuild(down, p)
	}
	for c := range g.at[down][s].edge.all {
		g.rebuild(up, c)
	}
	g.at[up][s], g.at[down][s] = neighborhood{}, neighborhood{}
}

func (r *neighborhood) reset() { r.inside, r.edge, r.cost = r.inside[:0], r.edge[:0], 0 }

func (g *neighborhoods) cost(s int32) (cost, access int64) {
	st := &g.r.stores[s]
	cost = st.local
	for side := g.first; side <= up; side++ {
		cost += g.at[side][s].cost
	}
	return cost, st.access
}
