package index

import "github.com/vramyard/vramyard/device"

// groupLeaves is how many leaves share a bound. With a million entries there are some
// four hundred groups.
const groupLeaves = 64

// Raise says that an entry of leaf j has so much.
func (l *AddrList[V]) Raise(j int, n device.Size) {
	l.bounds[j] = max(l.bounds[j], n)
	g := j / groupLeaves
	l.groups[g] = max(l.groups[g], n)
}

// Lower says that no entry of leaf j has more than n.
func (l *AddrList[V]) Lower(j int, n device.Size) { l.bounds[j] = n }

// NextLeaf returns the lowest leaf from j on whose bound is at least n, and Leaves() if there
// is none.
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

// PrevLeaf returns the highest leaf up to j whose bound is at least n, and -1 if there is
// none.
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

// tighten lowers the bound of a group to the largest of its leaves.
func (l *AddrList[V]) tighten(g int) {
	most := device.Size(0)
	for _, b := range l.bounds[g*groupLeaves : l.groupEnd(g)] {
		most = max(most, b)
	}
	l.groups[g] = most
}

// regroup renews the bounds of the groups from that of leaf j on, after leaves have moved.
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
