package remat

import "slices"

// graph holds the dependencies between storages: a parent is read by an operator that produces a
// view of the child. There are no duplicates and no self-loops.
type graph struct {
	marks             // over storages
	parents, children [][]int32
}

// marks is a set of visited indices that reset clears in O(1).
type marks struct {
	seen []uint32 // by index: the value of mark at its last visit
	mark uint32
}

func newGraph(storages int) *graph {
	return &graph{marks{seen: make([]uint32, storages)}, make([][]int32, storages), make([][]int32, storages)}
}

func (m *marks) reset() {
	if m.mark++; m.mark == 0 {
		clear(m.seen)
		m.mark = 1
	}
}

// visit reports whether this is the first visit of an index since reset.
func (m *marks) visit(n int32) bool {
	fresh := m.seen[n] != m.mark
	m.seen[n] = m.mark
	return fresh
}

func (g *graph) link(s *Schedule, op *Op) {
	for t := range op.outputs() {
		out := s.Tensors[t].Storage
		g.reset()
		g.visit(out)
		for _, p := range g.parents[out] {
			g.visit(p)
		}
		for _, a := range op.Args {
			if p := s.Tensors[a].Storage; g.visit(p) {
				g.parents[out] = append(g.parents[out], p)
				g.children[p] = append(g.children[p], out)
			}
		}
	}
}

func (g *graph) remove(s int32) {
	for _, p := range g.parents[s] {
		g.children[p] = removeFirst(g.children[p], s)
	}
	for _, c := range g.children[s] {
		g.parents[c] = removeFirst(g.parents[c], s)
	}
}

// removeFirst removes the first occurrence of v from a list, in place.
func removeFirst[T comparable](list []T, v T) []T {
	if i := slices.Index(list, v); i >= 0 {
		return append(list[:i], list[i+1:]...)
	}
	return list
}
