package remat

import (
	"math"

	"github.com/vramyard/vramyard/device"
)

// candidates returns the storages that may be evicted, valid until the next call.
func (r *runner) candidates() []int32 {
	if r.swap != nil {
		return r.swap.candidates()
	}
	return r.pool.list()
}

func (r *runner) hasCandidates() bool {
	return r.swap == nil && r.pool.n > 0 || r.swap != nil && len(r.swap.candidates()) > 0
}

// evictable reports whether a storage is a candidate.
func (r *runner) evictable(s int32) bool {
	return r.swap == nil && r.pool.has(s) || r.swap != nil && r.swap.evictable(s)
}

func (r *runner) chooseVictim() int32 {
	all := r.candidates()
	if r.scorer == nil {
		return all[r.random.Below(uint64(len(all)))]
	}
	for _, list := range [2][]int32{r.sample(all), all} {
		if list = r.largeEnough(list); len(list) > 0 {
			return r.leastScore(list)
		}
	}
	return r.leastScore(all)
}

// leastScore returns the storage with the least score in a non-empty list. The last of equals wins,
// or the first with QuirkVector.
func (r *runner) leastScore(list []int32) int32 {
	best, least, victim := math.Inf(1), math.Inf(1), none32
	for _, s := range list {
		score, tie, worse := r.score(s, best)
		if worse || score > best || score == best && tie > least {
			continue
		}
		if r.pool.swap && score == best && tie == least && victim != none32 {
			continue
		}
		best, least, victim = score, tie, s
		if score == 0 {
			break
		}
	}
	return victim
}

// slack exceeds the relative error of a quotient of floats that was rounded three times.
const slack = 1 + 1e-14

// score returns the score of a storage and its tie-breaker. Worse is true if a cheap estimate
// already exceeds best; then the score is not computed.
func (r *runner) score(s int32, best float64) (score, tie float64, worse bool) {
	if r.ranks != nil {
		score, tie = r.ranks.rank(s)
		return score, tie, false
	}
	cost, access := r.costs.cost(s)
	if r.swap != nil && r.swap.timed {
		cost = r.swap.cost(s, cost)
	}
	size, age := uint64(1), uint64(1)
	if r.h.traits&perByte != 0 {
		size = uint64(r.creditedSize(s))
	}
	if r.h.traits&perAge != 0 {
		age = uint64(r.clock - access)
	}
	if size == 0 || age == 0 {
		return math.Inf(1), 0, false
	}
	if cost > 0 && float64(cost)/(float64(size)*float64(age)) > best*slack {
		return 0, 0, true
	}
	return quotient(cost, size, age), 0, false
}

// creditedSize returns the bytes that the heuristic credits to the eviction of a storage.
func (r *runner) creditedSize(s int32) device.Size {
	size := r.s.Storages[s].Size
	if r.h.traits&addFree == 0 {
		return size
	}
	size += r.adjacentFree(s)
	if r.h.traits&capCredit != 0 && r.requested > 0 {
		size = min(size, r.requested)
	}
	return size
}

// adjacentFree returns the free bytes that would merge with a resident storage if it were evicted.
func (r *runner) adjacentFree(s int32) device.Size {
	if r.adjacent == nil || r.s.Storages[s].Size == 0 {
		return 0
	}
	below, above := r.adjacent.FreeNeighbours(r.stores[s].block)
	return below + above
}
