package remat

// The directions of a region.
const (
	down = iota // through children
	up          // through parents
)

// region is the evicted storages that can be reached from a resident one through evicted ones, in one
// direction, and the resident ones at their edge.
type region struct {
	inside, edge []int32
	cost         int64 // ns, of inside
}

// regions keeps both regions of every resident storage, as the simulator does: one that is evicted is
// absorbed, with its region, by those it was at the edge of; when one comes back, the
// regions around it are found anew.
type regions struct {
	passive
	r     *runner
	of    [2][]region // by direction and storage
	sides int         // the first direction that counts: up does always
	list  []int32     // for rebuild
}

// newRegions keeps regions and counts both directions.
func newRegions(r *runner) neighbourhood { return makeRegions(r, down) }

// newAncestors keeps regions and counts what a storage is made of.
func newAncestors(r *runner) neighbourhood { return makeRegions(r, up) }

// makeRegions counts the directions from the given one on.
func makeRegions(r *runner, from int) neighbourhood {
	r.graph = newGraph(len(r.stores))
	n := len(r.stores)
	return &regions{r: r, of: [2][]region{make([]region, n), make([]region, n)}, sides: from}
}

func (g *regions) linked(op *Op) { g.r.graph.link(g.r.s, op) }

func (g *regions) left(s int32, _ Cause) {
	for _, p := range g.of[up][s].edge {
		g.absorb(down, p, s)
	}
	for _, c := range g.of[down][s].edge {
		g.absorb(up, c, s)
	}
	g.of[up][s].reset()
	g.of[down][s].reset()
}

// absorb moves s from the edge of base's region to its inside, with the region of s.
func (g *regions) absorb(side int, base, s int32) {
	from, to := &g.of[side][s], &g.of[side][base]
	to.edge = without(to.edge, s)
	to.edge, _ = g.join(to.edge, from.edge, none32)
	if side < g.sides {
		return // nobody asks what is inside
	}
	gain := int64(0)
	to.inside, gain = g.join(to.inside, from.inside, s)
	to.cost += gain
}

// none32 stands for no storage.
const none32 int32 = -1

// join appends what a list lacks of another, and one more, and returns their cost. The simulator counts the
// one even if it is in the list already, as what views link to itself may be.
func (g *regions) join(list, other []int32, one int32) ([]int32, int64) {
	if len(other) == 0 && one == none32 {
		return list, 0
	}
	graph, gain := g.r.graph, int64(0)
	graph.fresh()
	for _, s := range list {
		graph.seen[s] = graph.mark
	}
	known := one != none32 && graph.seen[one] == graph.mark
	if one != none32 {
		gain += g.r.stores[one].local
		graph.seen[one] = graph.mark
		if !known {
			list = append(list, one)
		}
	}
	for _, s := range other {
		if graph.meet(s) {
			list = append(list, s)
			gain += g.r.stores[s].local
		}
	}
	return list, gain
}

func (g *regions) back(list []int32) {
	for _, s := range list {
		g.rebuild(down, s)
		g.rebuild(up, s)
	}
	for _, s := range list {
		for _, p := range g.of[up][s].edge {
			g.rebuild(down, p)
		}
		for _, c := range g.of[down][s].edge {
			g.rebuild(up, c)
		}
	}
}

// rebuild finds a region anew.
func (g *regions) rebuild(side int, base int32) {
	graph, to := g.r.graph, &g.of[side][base]
	edges := graph.children
	if side == up {
		edges = graph.parents
	}
	to.reset()
	graph.fresh()
	graph.meet(base)
	g.list = append(g.list[:0], base)
	for i := 0; i < len(g.list); i++ {
		for _, n := range edges[g.list[i]] {
			switch {
			case !graph.meet(n):
			case g.r.stores[n].resident:
				to.edge = append(to.edge, n)
			default:
				g.list = append(g.list, n)
				to.cost += g.r.stores[n].local
			}
		}
	}
	if side >= g.sides {
		to.inside = append(to.inside, g.list[1:]...)
	}
}

// gone finds those regions anew that the storage was inside of.
func (g *regions) gone(s int32) {
	// A storage that is not resident has no regions of its own, so there is room to find out
	// from where it can be reached.
	g.rebuild(up, s)
	g.rebuild(down, s)
	g.r.graph.cut(s)
	for _, p := range g.of[up][s].edge {
		g.rebuild(down, p)
	}
	for _, c := range g.of[down][s].edge {
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
