package sweep

import (
	"cmp"
	"container/heap"
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
)

// share is a cell in a shard.
type share struct {
	row   int // of the plan
	part  int // number of the part, from 0, if several shards share a long search
	parts int
}

// mostParts bounds the shards that share one search. A search tries up to 64 independent
// capacities at once.
const mostParts = 16

// assign returns the cells of every shard, the most expensive first. A cell that costs more than an
// equal share of the plan is split: several shards get it, and share its probes in the store.
//
// The cells are dealt in order of descending cost, each to the shard with the least so far (longest
// processing time first, Graham 1969), which is at most 4/3 of the optimum. The seed decides
// between equals. The result depends on the plan and the number of shards alone.
func (p *Plan) assign(shards int) [][]share {
	cells := p.cells()
	target := p.Cost() / float64(shards)
	type item struct {
		share
		cost float64
		tie  uint64
	}
	var items []item
	for _, i := range cells {
		r := &p.Rows[i]
		parts := 1
		if r.Search != Replay && target > 0 {
			parts = min(max(int(math.Ceil(r.Cost/target)), 1), mostParts, shards)
		}
		for part := range parts {
			items = append(items, item{share{i, part, parts}, r.Cost / float64(parts), tie(p.Seed, r.Cell, part)})
		}
	}
	slices.SortFunc(items, func(a, b item) int {
		return cmp.Or(cmp.Compare(b.cost, a.cost), cmp.Compare(a.tie, b.tie), cmp.Compare(a.row, b.row))
	})
	loads := make(loads, shards)
	for i := range loads {
		loads[i] = load{shard: i, tie: tie(p.Seed, "", i)}
	}
	heap.Init(&loads)
	all := make([][]share, shards)
	for _, it := range items {
		var skipped []load // shards that have a part of this cell
		has := func(s share) bool { return s.row == it.row }
		for it.parts > 1 && slices.ContainsFunc(all[loads[0].shard], has) {
			skipped = append(skipped, heap.Pop(&loads).(load))
		}
		least := &loads[0]
		all[least.shard] = append(all[least.shard], it.share)
		least.cost += it.cost
		heap.Fix(&loads, 0)
		for _, l := range skipped {
			heap.Push(&loads, l)
		}
	}
	return all
}

// tie returns a number that orders equals: it depends on the seed and the cell alone.
func tie(seed uint64, name string, n int) uint64 {
	h := fnv.New64a()
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], seed)
	binary.LittleEndian.PutUint64(b[8:], uint64(n))
	_, _ = h.Write(b[:]) // never fails
	_, _ = h.Write([]byte(name))
	return h.Sum64()
}

// load is the cost of a shard so far.
type load struct {
	shard int
	cost  float64
	tie   uint64
}

// loads is a heap of shards by load.
type loads []load

func (l loads) Len() int { return len(l) }
func (l loads) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(l[i].cost, l[j].cost), cmp.Compare(l[i].tie, l[j].tie)) < 0
}
func (l loads) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l *loads) Push(x any)   { *l = append(*l, x.(load)) }
func (l *loads) Pop() any {
	last := len(*l) - 1
	x := (*l)[last]
	*l = (*l)[:last]
	return x
}
