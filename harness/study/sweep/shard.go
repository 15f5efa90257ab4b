package sweep

import (
	"cmp"
	"container/heap"
	"encoding/binary"
	"hash/fnv"
	"maps"
	"math"
	"slices"
)

// share is a cell in a shard.
type share struct {
	row   int // of the plan
	part  int // number of the part, from 0, if several shards share a long search
	parts int
}

// mostParts bounds the shards that share one search. Most of its groups of independent capacities
// have three, and about a quarter of it, the measurements, is not shared.
const (
	mostParts = 4
	unshared  = 0.25
)

// Opening a trace takes as long as openedReplays replays of it: 7 to 13 probes of bestfit or
// caching on the seven recordings, with the hash of its events. A
// block of cells of one trace is therefore dealt as a whole, long enough that opening the trace is
// at most one part in overhead, but no longer than one part in blocks of an equal share.
const (
	openedReplays = 10
	overhead      = 200
	blocks        = 4
)

// block is cells of one trace that are dealt together, or one part of a cell.
type block struct {
	shares []share
	cost   float64
	tie    uint64
}

// assign returns the cells of every shard. A cell that costs more than an equal share of the plan
// is split: several shards get it, and share its probes in the store.
//
// The blocks are dealt in order of descending cost, each to the shard with the least so far
// (longest processing time first, Graham 1969). The seed decides between equals. The result depends
// on the plan and the number of shards alone.
func (p *Plan) assign(shards int) [][]share {
	items := p.blocks(p.Cost()/float64(shards), min(mostParts, shards))
	slices.SortFunc(items, func(a, b block) int {
		return cmp.Or(cmp.Compare(b.cost, a.cost), cmp.Compare(a.tie, b.tie), cmp.Compare(a.shares[0].row, b.shares[0].row))
	})
	loads := make(loads, shards)
	for i := range loads {
		loads[i] = load{shard: i, tie: tie(p.Seed, "", i)}
	}
	heap.Init(&loads)
	all := make([][]share, shards)
	for _, it := range items {
		var skipped []load // shards that have a part of this cell
		first := it.shares[0]
		has := func(s share) bool { return s.row == first.row }
		for first.parts > 1 && slices.ContainsFunc(all[loads[0].shard], has) {
			skipped = append(skipped, heap.Pop(&loads).(load))
		}
		least := &loads[0]
		all[least.shard] = append(all[least.shard], it.shares...)
		least.cost += it.cost
		heap.Fix(&loads, 0)
		for _, l := range skipped {
			heap.Push(&loads, l)
		}
	}
	return all
}

// blocks returns the cells in blocks, and cells that cost more than the target in at most some
// parts.
func (p *Plan) blocks(target float64, most int) (all []block) {
	byTrace := map[string][]int{}
	for _, i := range p.cells() {
		r := &p.Rows[i]
		if r.Search == Replay || r.Search == Remat || r.Cost <= target {
			byTrace[r.Trace] = append(byTrace[r.Trace], i)
			continue
		}
		parts := min(int(math.Ceil(r.Cost/target)), most)
		for part := range parts {
			cost := r.Cost * (unshared + (1-unshared)/float64(parts))
			all = append(all, block{[]share{{i, part, parts}}, cost, tie(p.Seed, r.Cell, part)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byTrace)) {
		all = append(all, p.blocksOf(byTrace[name], target)...)
	}
	return all
}

// blocksOf returns the cells of one trace in blocks. They become shorter towards the end, so that
// they balance the shards.
func (p *Plan) blocksOf(rows []int, target float64) (all []block) {
	left, replay := 0.0, 0.0
	ties := make(map[int]uint64, len(rows))
	for _, i := range rows {
		ties[i] = tie(p.Seed, p.Rows[i].Cell, 0)
		left += p.Rows[i].Cost
		replay += p.Rows[i].Cost / typicalReplays[p.Rows[i].Search] / float64(len(rows))
	}
	longest := min(overhead*openedReplays*replay, target/blocks)
	slices.SortFunc(rows, func(a, b int) int {
		return cmp.Or(cmp.Compare(ties[a], ties[b]), cmp.Compare(a, b))
	})
	for len(rows) > 0 {
		b := block{tie: ties[rows[0]]}
		for want := min(longest, left/2); len(rows) > 0 && (b.shares == nil || b.cost < want); rows = rows[1:] {
			b.shares = append(b.shares, share{row: rows[0], parts: 1})
			b.cost += p.Rows[rows[0]].Cost
		}
		left -= b.cost
		all = append(all, b)
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
