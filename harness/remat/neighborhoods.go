package remat

import (
	"math/bits"
	"slices"
)

// The directions of a neighborhood.
const (
	down = iota // descendants, through children
	up          // ancestors, through parents
)

// neighborhood is the evicted storages reachable in one direction from a resident one, through
// evicted ones only (inside), and the resident storages where this search ends (edge). DTR calls
// both directions together the evicted neighborhood.
type neighborhood struct {
	inside, edge sparse
	cost         int64 // total local cost of inside in ns
}

// neighborhoods keeps the neighborhoods of every resident storage in both directions, as the
// simulator does. A storage that is evicted merges, with its own neighborhood, into each one whose
// edge it was on. When a storage is restored, the neighborhoods around it are rebuilt.
//
// A rebuild visits a whole neighborhood. As long as storages depend only on earlier ones, the
// result is computed from the change alone. It must then include that the simulator treats the
// outputs of the operator that is about to run as evicted, but only in neighborhoods rebuilt since
// it was linked.
type neighborhoods struct {
	noopHooks
	r       *runner
	at      [2][]neighborhood // by direction and storage
	first   int               // first direction that counts; up always does
	list    []int32           // scratch for rebuild
	scratch [2]dense          // scratch for rebuild

	pending *Op  // the operator that was linked and has not run, or nil
	stale   bool // a view made by pending added to the cost of an evicted storage: rebuild, to sum again
	crossed bool // a view made its storage depend on others, perhaps later ones: always rebuild
}

// newNeighborhoods returns a constructor of [neighborhoods]. The cost of a storage counts both
// directions if from is down, and only ancestors if it is up.
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

// absorb moves s from the edge of base's neighborhood to its inside, and merges the neighborhood of
// s. As in the simulator, the cost of s is added again if s is inside already, which happens if
// views make storages depend on each other.
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

// onRestore updates the neighborhoods from the change if the storages are new, or if they depend
// only on earlier ones and all costs are up to date. Otherwise it rebuilds.
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

// addNew puts a new storage on the edge of its parents' neighborhoods. All parents are resident,
// and it has no children yet.
func (g *neighborhoods) addNew(s int32) {
	for _, p := range g.r.graph.parents[s] {
		g.at[up][s].edge.add(p)
		to := &g.at[down][p]
		to.remove(g.r, s)
		to.edge.add(s)
	}
}

// restoreBelow updates the descendants of p, a parent of the restored storage s: s moves to the
// edge, and storages reachable only through s are removed.
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

// reaches reports whether a parent of x is p or inside the descendants of p.
func (g *neighborhoods) reaches(p, x int32) bool {
	for _, q := range g.r.graph.parents[x] {
		if q == p || g.at[down][p].inside.has(q) {
			return true
		}
	}
	return false
}

// restoreAbove updates the ancestors of c, a descendant of the restored storage s: s moves to the
// edge, and parents of s reachable only through s are removed from it. They are all resident.
func (g *neighborhoods) restoreAbove(c, s int32) {
	to, graph := &g.at[up][c], g.r.graph
	to.remove(g.r, s)
	for _, p := range graph.parents[s] {
		if slices.Contains(graph.parents[c], p) {
			continue
		}
		children := graph.children[p] // sorted; only storages older than c are inside
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

// onForget rebuilds the neighborhoods that contained the storage.
func (g *neighborhoods) onForget(s int32) {
	// The storage is not resident, so its own neighborhoods are unused: they hold the
	// storages whose neighborhoods contain it.
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
