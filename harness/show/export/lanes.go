package export

import (
	"cmp"
	"slices"
)

const (
	mostBlocks = 100_000 // blocks drawn
	mostCalls  = 100_000 // driver calls drawn
	mostLanes  = 256     // concurrent blocks drawn
)

// drawn is a candidate for drawing.
type drawn struct {
	*life
	need uint64 // importance
	lane int    // 0-based
}

// weightOf returns the importance of a block: blocks live at the first peak of allocated bytes come
// first, then by size.
func (r *Run) weightOf(l *life) uint64 {
	need := uint64(l.block.Size)
	if l.start <= r.peak && l.end > r.peak {
		need |= 1 << 63
	}
	return need
}

// largestOf returns the indices of the most highest values below n, in order.
func largestOf(n, most int, value func(i int) uint64) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	if n <= most {
		return order
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Or(cmp.Compare(value(j), value(i)), cmp.Compare(i, j)) })
	order = order[:most]
	slices.Sort(order)
	return order
}

// blocks returns the blocks to draw, by start, each in the lowest free lane. If there is no free
// lane, the least important block is dropped.
func (r *Run) blocks() []drawn {
	needs := make([]uint64, len(r.lives))
	for i := range needs {
		needs[i] = r.weightOf(&r.lives[i])
	}
	var all []drawn
	var taken [mostLanes]bool
	var now []int // indices of the blocks in lanes
	for _, i := range largestOf(len(r.lives), mostBlocks, func(i int) uint64 { return needs[i] }) {
		d := drawn{life: &r.lives[i], need: needs[i]}
		now = slices.DeleteFunc(now, func(i int) bool {
			over := all[i].end <= d.start
			if over {
				taken[all[i].lane] = false
			}
			return over
		})
		if d.lane = slices.Index(taken[:], false); d.lane < 0 {
			k := 0
			for i := range now {
				if all[now[i]].need <= all[now[k]].need { // the last of equals
					k = i
				}
			}
			last := &all[now[k]]
			if d.need <= last.need {
				continue
			}
			d.lane, last.lane = last.lane, -1
			now = slices.Delete(now, k, k+1)
		}
		taken[d.lane] = true
		now = append(now, len(all))
		all = append(all, d)
	}
	return slices.DeleteFunc(all, func(d drawn) bool { return d.lane < 0 })
}

// longest returns the driver calls to draw, in order: the longest ones.
func (r *Run) longest() []*call {
	var list []*call
	for _, i := range largestOf(len(r.calls), mostCalls, func(i int) uint64 { return uint64(r.calls[i].took) }) {
		list = append(list, &r.calls[i])
	}
	return list
}
