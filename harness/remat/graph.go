package remat

// graph says which storages are made of which, through any of their views. A storage occurs once in
// a list, and never in its own.
type graph struct {
	parents, children [][]int32
	seen              []uint32 // by storage: the mark when it was met last
	mark              uint32
}

func newGraph(storages int) *graph {
	return &graph{parents: make([][]int32, storages), children: make([][]int32, storages), seen: make([]uint32, storages)}
}

// fresh begins to meet storages anew.
func (g *graph) fresh() {
	g.mark++
	if g.mark == 0 {
		clear(g.seen)
		g.mark = 1
	}
}

// meet reports whether a storage is met for the first time since fresh.
func (g *graph) meet(s int32) bool {
	if g.seen[s] == g.mark {
		return false
	}
	g.seen[s] = g.mark
	return true
}

func (g *graph) link(s *Schedule, op *Op) {
	first, end := op.outputs()
	for t := first; t < end; t++ {
		out := s.Tensors[t].Storage
		g.fresh()
		g.meet(out)
		for _, p := range g.parents[out] {
			g.meet(p)
		}
		for _, a := range op.Args {
			if p := s.Tensors[a].Storage; g.meet(p) {
				g.parents[out] = append(g.parents[out], p)
				g.children[p] = append(g.children[p], out)
			}
		}
	}
}

func (g *graph) cut(s int32) {
	for _, p := range g.parents[s] {
		g.children[p] = without(g.children[p], s)
	}
	for _, c := range g.children[s] {
		g.parents[c] = without(g.parents[c], s)
	}
}

// without removes the first occurrence of v from a list, in place.
func without[T comparable](list []T, v T) []T {
	for i, w := range list {
		if w == v {
			return append(list[:i], list[i+1:]...)
		}
	}
	return list
}
