package index

import "github.com/vramyard/vramyard/device"

// groupLeaves is the number of leaves that share a bound. A million entries have about 400 groups.
const groupLeaves = 64

// Raise raises the bound of leaf j to at least n, the size of one of its entries.
func (l *AddrList[V]) Raise(j int, n device.Size) {
	l.bounds[j] = max(l.bounds[j], n)
	g := j / groupLeaves
	l.groups[g] = max(l.groups[g], n)
}

// Lower sets the bound of leaf j. No entry of the leaf may exceed it.
func (l *AddrList[V]) Lower(j int, n device.Size) { l.bounds[j] = n }

// NextLeaf returns the lowest leaf from j on whose bound is at least n, or Leaves().
func (l *AddrList[V]) NextLeaf(j int, n device.Size) int {
	for j < len(l.bounds) {
		g := j / groupLeaves
		if l.groups[g] >= n {
			first, end := g*groupLeaves, l.groupEnd(g)
			for i := j; i < end; i++ {
				if l.bounds[i] >= n {
					return i
				}
			}
			if j == first {
				l.tighten(g)
			}
		}
		j = (g + 1) * groupLeaves
	}
	return len(l.bounds)
}

// PrevLeaf returns the highest leaf up to j whose bound is at least n, or -1.
func (l *AddrList[V]) PrevLeaf(j int, n device.Size) int {
	for j >= 0 {
		g := j / groupLeaves
		first := g * groupLeaves
		if l.groups[g] >= n {
			for i := j; i >= first; i-- {
				if l.bounds[i] >= n {
					return i
				}
			}
			if j == l.groupEnd(g)-1 {
				l.tighten(g)
			}
		}
		j = first - 1
	}
	return -1
}

func (l *AddrList[V]) groupEnd(g int) int { return min((g+1)*groupLeaves, len(l.bounds)) }

// tighten lowers the bound of a group to the maximum of its leaves.
func (l *AddrList[V]) tighten(g int) {
	most := device.Size(0)
	for _, b := range l.bounds[g*groupLeaves : l.groupEnd(g)] {
		most = max(most, b)
	}
	l.groups[g] = most
}

// regroup recomputes the group bounds from leaf j on, after leaves have moved.
func (l *AddrList[V]) regroup(j int) {
	n := (len(l.bounds) + groupLeaves - 1) / groupLeaves
	for len(l.groups) < n {
		l.groups = append(l.groups, 0)
	}
	l.groups = l.groups[:n]
	for g := j / groupLeaves; g < n; g++ {
		l.tighten(g)
	}
}
