package export

import (
	"cmp"
	"slices"
)

const (
	mostBlocks = 100_000 // blocks that are drawn
	mostCalls  = 100_000 // calls to the device that are drawn
	mostLanes  = 256     // blocks that are drawn side by side
)

// drawn is a block that may be drawn.
type drawn struct {
	*life
	need uint64 // how much the picture needs it
	lane int    // from 0
}

// needOf returns how much the picture needs a block: those that were there when allocated bytes
// first were highest come first, then the largest.
func (r *Run) needOf(l *life) uint64 {
	need := uint64(l.block.Size)
	if l.start <= r.peak && l.end > r.peak {
		need |= 1 << 63
	}
	return need
}

// foremost returns the numbers below n with the highest values, in order: all, or most of them.
func foremost(n, most int, value func(i int) uint64) []int {
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

// blocks returns the blocks to draw, by their start, each in a lane in which no other one is at the
// same time: the lowest. If none is left, the block that the picture needs least is not drawn.
func (r *Run) blocks() []drawn {
	needs := make([]uint64, len(r.lives))
	for i := range needs {
		needs[i] = r.needOf(&r.lives[i])
	}
	var all []drawn
	var taken [mostLanes]bool
	var now []int // those in all that have a lane
	for _, i := range foremost(len(r.lives), mostBlocks, func(i int) uint64 { return needs[i] }) {
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
				if all[now[i]].need <= all[now[k]].need { // of equals the last
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

// longest returns the calls to draw, in order: all, or those that took longest.
func (r *Run) longest() []*call {
	var list []*call
	for _, i := range foremost(len(r.calls), mostCalls, func(i int) uint64 { return uint64(r.calls[i].took) }) {
		list = append(list, &r.calls[i])
	}
	return list
}
