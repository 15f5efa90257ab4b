package offline

import (
	"fmt"

	"github.com/vramyard/vramyard/device"
)

// search decides capacities, with few steps at first and twice as many in each round.
//
// A round covers the capacities from the least that is not refuted to the best height. It tries the
// least first, since many problems can be packed without loss, and then bisects. Capacities
// undecided within a round count as refuted until the next.
func (r *searcher) search() {
	if r.enough() {
		return
	}
	parts, floor := r.searchable()
	if floor >= r.best.Height {
		return
	}
	e := newEngine(r.p, r.meter)
	for share := uint64(stepsAtFirst); !r.enough() && r.best.Height > floor; share *= 2 {
		low := max(r.proven, floor)
		for aim := max(low, r.limits.Capacity); low < r.best.Height && !r.enough(); {
			if result := r.decide(e, parts, aim, share); result != found {
				low = aim + r.p.unit
				if result == refuted {
					r.proven = max(r.proven, low)
				}
			}
			aim = low + (max(r.best.Height, low)-low)/2/r.p.unit*r.p.unit
			if r.limits.Capacity > 0 {
				break // the requested capacity is reached
			}
		}
	}
}

// searchable returns the parts small enough to search, and the height of the others. If those are
// the highest, it sets the reason to stop.
func (r *searcher) searchable() (parts []part, floor device.Size) {
	largest := 0
	for _, t := range r.p.parts() {
		if len(t.buffers) <= mostSearched {
			parts = append(parts, t)
		} else if h := r.heightOf(t); h > floor {
			floor, largest = h, len(t.buffers)
		}
	}
	if floor >= r.best.Height {
		r.meter.stopped = fmt.Sprintf("a part has %d buffers: want at most %d to search it", largest, mostSearched)
	}
	return parts, floor
}

func (r *searcher) heightOf(t part) (height device.Size) {
	for _, b := range t.buffers {
		height = max(height, r.best.Offsets[b]+r.p.buffers[b].Size)
	}
	return height
}

// decide tries to bring every part below a capacity, with all orders in turns. On success it
// updates the best solution.
func (r *searcher) decide(e *engine, parts []part, capacity device.Size, share uint64) outcome {
	s := Solution{Offsets: append([]device.Size(nil), r.best.Offsets...)}
	for _, t := range parts {
		if r.heightOf(t) <= capacity {
			continue
		}
		n := uint64(len(t.buffers))
		result := aborted
		for _, o := range preorders {
			if result = e.attempt(t, capacity, o, share*n*n); result != aborted {
				s.Method = "search in order " + string(o)
				break
			}
		}
		if result != found {
			return result
		}
		for _, b := range t.buffers {
			s.Offsets[b] = e.offsets[b]
		}
	}
	for i := range r.p.buffers {
		s.Height = max(s.Height, s.Offsets[i]+r.p.buffers[i].Size)
	}
	r.best = &s
	return found
}

// parts divides time into parts that share no buffer, in order. Empty buffers belong to none.
func (p *Problem) parts() []part {
	cuts := p.cuts()
	at := make([]int32, len(cuts)) // part of each section
	var parts []part
	for k := range cuts {
		if k == 0 || cuts[k-1] == 0 {
			parts = append(parts, part{lo: int32(k)})
		}
		at[k] = int32(len(parts) - 1)
		parts[at[k]].hi = int32(k + 1)
	}
	for i, b := range p.buffers {
		if b.Size > 0 {
			t := &parts[at[p.spans[i].First]]
			t.buffers = append(t.buffers, int32(i))
		}
	}
	return parts
}

// cuts returns for each section the number of non-empty buffers live in it and the next.
func (p *Problem) cuts() []int32 {
	cuts := make([]int32, len(p.peaks))
	for i, b := range p.buffers {
		if b.Size > 0 {
			cuts[p.spans[i].First]++
			cuts[p.spans[i].Last-1]--
		}
	}
	for k := 1; k < len(cuts); k++ {
		cuts[k] += cuts[k-1]
	}
	return cuts
}
