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

// drawn is a block that is drawn.
type drawn struct {
	*life
	lane int // from 0
}

// atPeak reports whether a block was there when allocated bytes first were highest.
func (r *Recording) atPeak(l *life) bool { return l.start <= r.peak && l.end > r.peak }

// before orders blocks by how much the picture needs them: those of the peak, then the largest.
func (r *Recording) before(a, b *life) int {
	x, y := r.atPeak(a), r.atPeak(b)
	switch {
	case x != y && x:
		return -1
	case x != y:
		return 1
	}
	return cmp.Compare(b.block.Size, a.block.Size)
}

// selected returns the blocks to draw, by their start: all, or the most needed ones.
func (r *Recording) selected(most int) []*life {
	list := make([]*life, len(r.lives))
	for i := range r.lives {
		list[i] = &r.lives[i]
	}
	if len(list) <= most {
		return list
	}
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return r.before(list[i], list[j]) })
	order = order[:most]
	slices.Sort(order)
	for k, i := range order {
		list[k] = list[i]
	}
	return list[:most]
}

// lanes gives blocks, by their start, a lane each, in which no other one is at the same time: the
// lowest. If none is left, the block that the picture needs least is not drawn.
func (r *Recording) lanes(list []*life) []drawn {
	var all []drawn
	var taken [mostLanes]bool
	var now []int // those in all that have a lane
	for _, l := range list {
		now = slices.DeleteFunc(now, func(i int) bool {
			over := all[i].end <= l.start
			if over {
				taken[all[i].lane] = false
			}
			return over
		})
		lane := slices.Index(taken[:], false)
		if lane < 0 {
			k := 0
			for i := range now {
				if r.before(all[now[i]].life, all[now[k]].life) > 0 {
					k = i
				}
			}
			if r.before(l, all[now[k]].life) >= 0 {
				continue
			}
			last := &all[now[k]]
			lane, last.lane = last.lane, -1
			now = slices.Delete(now, k, k+1)
		}
		taken[lane] = true
		now = append(now, len(all))
		all = append(all, drawn{l, lane})
	}
	return slices.DeleteFunc(all, func(d drawn) bool { return d.lane < 0 })
}

// longest returns the calls to draw, in order: all, or those that took longest.
func (r *Recording) longest(most int) []call {
	if len(r.calls) <= most {
		return r.calls
	}
	order := make([]int, len(r.calls))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(r.calls[j].took, r.calls[i].took) })
	order = order[:most]
	slices.Sort(order)
	list := make([]call, most)
	for k, i := range order {
		list[k] = r.calls[i]
	}
	return list
}
