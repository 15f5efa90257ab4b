package postmortem

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/device"
)

// item is a region that could be returned.
type item struct {
	cost
	value device.Size // bytes returned
	index int         // index of the region
}

// mostStates bounds the sets examined by the exact search, at 56 bytes each. Thousands of regions
// need fewer if few blocks suffice.
const mostStates = 1 << 18

// cover returns the indices of items whose values add up to at least sum, at the least cost: fewest
// blocks, then bytes, then waits. least is false if the exact search was too long, so that the
// result may not be optimal. It returns nil if all items together are too little.
func cover(items []item, sum device.Size) (chosen []int, least bool) {
	best, reached := greedy(items, sum)
	if !reached {
		return nil, false
	}
	most := 0
	for _, k := range best {
		most += items[k].blocks
	}
	if exact, ok := fronts(items, sum, most); ok {
		best, least = exact, true
	}
	for _, k := range best {
		chosen = append(chosen, items[k].index)
	}
	return chosen, least
}

// greedy takes the items with the most value per block until the sum is reached, then drops
// unnecessary ones, most expensive first.
func greedy(items []item, sum device.Size) (chosen []int, reached bool) {
	for k := range items {
		chosen = append(chosen, k)
	}
	slices.SortStableFunc(chosen, func(a, b int) int {
		x, y := &items[a], &items[b]
		return cmp.Or(
			cmp.Compare(float64(x.blocks)*float64(y.value), float64(y.blocks)*float64(x.value)),
			x.compare(y.cost))
	})
	var got device.Size
	k := 0
	for ; k < len(chosen) && got < sum; k++ {
		got += items[chosen[k]].value
	}
	if got < sum {
		return nil, false
	}
	chosen = chosen[:k]
	slices.SortStableFunc(chosen, func(a, b int) int { return items[b].compare(items[a].cost) })
	kept := chosen[:0]
	for _, i := range chosen {
		if got-items[i].value >= sum {
			got -= items[i].value
			continue
		}
		kept = append(kept, i)
	}
	return kept, true
}

// state is a set of items: its last item, and the state of the others.
type state struct {
	cost
	value device.Size
	item  int
	prev  int // index; -1: none
}

// fronts finds the optimal set by dynamic programming: for each number of blocks it keeps the sets
// that are Pareto-optimal in value and cost. It fails if there are too many.
func fronts(items []item, sum device.Size, most int) (chosen []int, ok bool) {
	if most >= mostStates {
		return nil, false
	}
	states := []state{{item: -1, prev: -1}}
	front := make([][]int, most+1) // by number of blocks: states by falling value and cost
	front[0] = []int{0}
	work := 0
	for k := range items {
		for n := most - items[k].blocks; n >= 0; n-- {
			// Items without blocks extend the front being read, so iterate over a copy.
			for _, s := range slices.Clone(front[n]) {
				x := states[s]
				if work++; work > mostStates {
					return nil, false
				}
				if x.value >= sum {
					continue
				}
				x.blocks += items[k].blocks
				x.bytes += items[k].bytes
				x.waits += items[k].waits
				x.value = min(x.value+items[k].value, sum)
				x.item, x.prev = k, s
				front[x.blocks] = insert(front[x.blocks], &states, x)
			}
		}
	}
	for _, f := range front {
		if len(f) == 0 || states[f[0]].value < sum {
			continue
		}
		for s := f[0]; s > 0; s = states[s].prev {
			chosen = append(chosen, states[s].item)
		}
		return chosen, true
	}
	return nil, false
}

// insert adds a state to a front unless it is dominated, and removes the states it dominates.
func insert(front []int, states *[]state, x state) []int {
	all := *states
	at := 0
	for at < len(front) && all[front[at]].value >= x.value {
		at++
	}
	if at > 0 && all[front[at-1]].compare(x.cost) <= 0 {
		return front // the last one of at least this value is the cheapest
	}
	end := at
	for end < len(front) && x.compare(all[front[end]].cost) <= 0 {
		end++
	}
	// States of equal value and higher cost precede it directly.
	for at > 0 && all[front[at-1]].value == x.value {
		at--
	}
	*states = append(*states, x)
	return slices.Replace(front, at, end, len(all))
}
