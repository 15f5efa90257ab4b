package remat

import "slices"

// graph says which storages are made of which, through any of their views. A storage occurs once in
// a list, and never in its own.
type graph struct {
	marks             // of storages
	parents, children [][]int32
}

// marks records which numbers were met since the last call of fresh.
type marks struct {
	seen []uint32 // by number: the mark when it was met last
	mark uint32
}

func newGraph(storages int) *graph {
	return &graph{marks{seen: make([]uint32, storages)}, make([][]int32, storages), make([][]int32, storages)}
}

func (m *marks) fresh() {
	if m.mark++; m.mark == 0 {
		clear(m.seen)
		m.mark = 1
	}
}

// meet reports whether a number is met for the first time since fresh.
func (m *marks) meet(n int32) bool {
	fresh := m.seen[n] != m.mark
	m.seen[n] = m.mark
	return fresh
}

func (g *graph) link(s *Schedule, op *Op) {
	for t := range op.outputs() {
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
	if i := slices.Index(list, v); i >= 0 {
		return append(list[:i], list[i+1:]...)
	}
	return list
}
