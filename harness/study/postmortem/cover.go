package postmortem

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/device"
)

// item is a region that may go back.
type item struct {
	cost
	value device.Size // bytes that go back
	index int         // of the region
}

// mostStates bounds the sets that the search for the least one looks at, each in 56 bytes. Where
// few blocks are enough, thousands of regions take less.
const mostStates = 1 << 18

// cover returns the indices of items whose values together reach a sum, of the least cost: fewest
// blocks, then fewest bytes, then fewest waits. least is false where the search was too long to be
// finished, and the set is only a good one. nil if all items together do not reach the sum.
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

// greedy takes the items that give most for a block until the sum is reached, then leaves out again
// what is not needed, the dearest first.
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

// state is a set of items, as the last of them and the set of the others.
type state struct {
	cost
	value device.Size
	item  int
	prev  int // index of a state; -1: none
}

// fronts finds the least set exactly, by dynamic programming: for each number of blocks it keeps
// the sets that no other one beats in value and cost. It fails where these are too many.
func fronts(items []item, sum device.Size, most int) (chosen []int, ok bool) {
	if most >= mostStates {
		return nil, false
	}
	states := []state{{item: -1, prev: -1}}
	front := make([][]int, most+1) // by blocks: states, by value falling and cost falling
	front[0] = []int{0}
	work := 0
	for k := range items {
		for n := most - items[k].blocks; n >= 0; n-- {
			// With no live block the set grows where it is read: what is added must not be met again.
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

// insert adds a state to a front, unless another one there is as good in everything, and takes out
// those that it beats.
func insert(front []int, states *[]state, x state) []int {
	all := *states
	at := 0
	for at < len(front) && all[front[at]].value >= x.value {
		at++
	}
	if at > 0 && all[front[at-1]].compare(x.cost) <= 0 {
		return front // the last one with so much is the cheapest
	}
	end := at
	for end < len(front) && x.compare(all[front[end]].cost) <= 0 {
		end++
	}
	// What has the same value and costs more stands just before.
	for at > 0 && all[front[at-1]].value == x.value {
		at--
	}
	*states = append(*states, x)
	return slices.Replace(front, at, end, len(all))
}
