package remat

import (
	"fmt"
	"math"
	"strings"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Ladder is a sequence of steps to try when memory refuses a request. After a step that had an
// effect the request is repeated; if it is refused again, the ladder restarts at its first step. A
// step other than evict acts at most once for a request, and at most once more after each eviction.
type Ladder struct {
	Name  string // as in Config.Ladder
	Steps string // in order, comma-separated
	Doc   string // one line of help
}

// Ladders returns the named ladders.
func Ladders() []Ladder {
	return []Ladder{
		{"none", "evict", "evict until the request succeeds"},
		{"evict-first", "evict,release,defrag", "evict all, then release cached memory, then defragment once (MegEngine)"},
		{"defrag-first", "defrag-if-fits,evict,release", "defragment once enough bytes are free, evict until they are"},
	}
}

// effect is the outcome of a ladder step.
type effect uint8

const (
	nothing effect = iota // no effect: try the next step
	acted                 // retry the request; do not repeat this step
	evicted               // retry the request; all steps may be repeated
	failed                // give up the request
)

// step is a step of a ladder.
type ladderStep struct {
	name  string
	moves bool                                     // needs a memory with addresses
	act   func(r *runner, size device.Size) effect // size: of the refused request
}

func ladderSteps() []*ladderStep {
	return []*ladderStep{
		{"evict", false, (*runner).evictWindow},
		{"drop", false, evictBy(dropAlways)},
		{"swap", false, evictBy(swapAlways)},
		{"release", true, func(r *runner, _ device.Size) effect {
			if r.addressed.Release() == 0 {
				return nothing
			}
			return acted
		}},
		{"defrag", true, func(r *runner, _ device.Size) effect { return r.defrag() }},
		{"defrag-if-fits", true, func(r *runner, size device.Size) effect {
			if free, _ := r.addressed.LastRefusal(); free < size {
				return nothing
			}
			return r.defrag()
		}},
		{"fail", false, func(*runner, device.Size) effect { return failed }},
	}
}

// evictBy returns a step that evicts as evict does, but in this way.
func evictBy(w way) func(*runner, device.Size) effect {
	return func(r *runner, size device.Size) effect {
		if r.swap != nil {
			chosen := r.swap.way
			r.swap.way = w
			defer func() { r.swap.way = chosen }()
		}
		return r.evictWindow(size)
	}
}

const maxLadder = 64

func ladderOf(text string) (ladder []*ladderStep, err error) {
	known, names := ladderSteps(), []string{}
	list := text
	for _, l := range Ladders() {
		names = append(names, l.Name)
		if l.Name == text || text == "" && l.Name == "none" {
			list = l.Steps
		}
	}
	all := []string{}
	for _, s := range known {
		all = append(all, s.name)
	}
	for name := range strings.SplitSeq(list, ",") {
		before := len(ladder)
		for _, s := range known {
			if s.name == name {
				ladder = append(ladder, s)
			}
		}
		if len(ladder) == before || len(ladder) > maxLadder {
			return nil, fmt.Errorf("ladder %q: want %s, or up to %d of %s, separated by commas",
				text, strings.Join(names, ", "), maxLadder, strings.Join(all, ", "))
		}
	}
	return ladder, nil
}

// allocate requests a block and climbs the ladder until memory grants it or no step is left.
func (r *runner) allocate(size device.Size, owner Owner) (alloc.Block, bool) {
	r.requested = size
	r.trigger.request(r, size)
	for done := uint64(0); ; {
		b, ok := r.mem.Alloc(size, owner)
		if ok {
			return b, true
		}
		r.countRefusal()
		if done, ok = r.climb(size, done); !ok {
			return alloc.Block{}, false
		}
	}
}

// climb takes the first step that has an effect and is not in the set done. It returns the new set,
// and false if no step has an effect or the request is given up.
func (r *runner) climb(size device.Size, done uint64) (uint64, bool) {
	if r.awaitCopy() {
		return done, true
	}
	for i, s := range r.ladder {
		if done>>i&1 != 0 {
			continue
		}
		switch s.act(r, size) {
		case nothing:
		case acted:
			return done | 1<<i, true
		case evicted:
			return 0, true
		case failed:
			return 0, false
		}
	}
	return 0, false
}

func (r *runner) countRefusal() {
	if r.addressed == nil {
		return
	}
	free, largest := r.addressed.LastRefusal()
	r.res.Refusals.Count++
	r.res.Refusals.Free += int64(free)
	r.res.Refusals.Largest += int64(largest)
}

// countEvictingRun counts the current run of an operator once, however many storages it evicts.
func (r *runner) countEvictingRun() {
	if !r.evicting {
		r.evicting = true
		r.res.EvictingRuns++
	}
}

func (r *runner) evictFor(device.Size) effect {
	r.countEvictingRun()
	switch {
	case r.hasCandidates():
		r.expel(r.chooseVictim())
	case r.swap == nil || !r.swap.await(&r.swap.back): // a storage that is back can be evicted
		return nothing
	}
	return evicted
}

// awaitCopy waits for the next copy to the host to end and free its memory. It returns false if
// there is none.
func (r *runner) awaitCopy() bool { return r.swap != nil && r.swap.await(&r.swap.out) }

// expel evicts a victim, by a copy to the host if that is permitted and cheaper.
func (r *runner) expel(s int32) {
	if r.swap != nil && r.swap.swaps(s) {
		r.swap.swapOut(s)
		return
	}
	r.evict(s, Pressure)
}

// evictWindow evicts adjacent blocks that together make room for a request, if the heuristic has
// the trait inWindows and there is such a window. Otherwise it evicts one storage. Each cost is
// computed before the first eviction, although evictions change costs.
func (r *runner) evictWindow(size device.Size) effect {
	if r.addressed == nil || r.h.traits&inWindows == 0 || !r.hasCandidates() {
		return r.evictFor(size)
	}
	least := r.minEvictee()
	victims, emptiesRegions := r.addressed.Window(size, func(owner Owner, at device.Addr) (float64, bool) {
		return r.windowCost(owner, at, least)
	})
	if len(victims) == 0 {
		return r.evictFor(size)
	}
	r.countEvictingRun()
	for _, owner := range victims {
		if s := int32(owner) - 1; r.evictable(s) {
			r.expel(s)
			r.res.WindowEvictions++
		}
	}
	if emptiesRegions {
		for r.awaitCopy() { // a region is empty when the last copy has ended
		}
		r.addressed.Release()
	}
	return evicted
}

// windowCost returns the cost of evicting a block as a part of a window, or false to keep it. It is
// not divided by the size, because the window has to be large enough anyway.
func (r *runner) windowCost(owner Owner, at device.Addr, least device.Size) (float64, bool) {
	s := int32(owner) - 1
	if s < 0 || !r.evictable(s) || r.stores[s].block.Addr != at || r.s.Storages[s].Size < least {
		return 0, false
	}
	cost, access := r.costs.cost(s)
	if r.swap != nil {
		cost = r.swap.cost(s, cost)
	}
	if r.clock <= access {
		return math.Inf(1), true
	}
	return max(quotient(cost, 1, uint64(r.clock-access)), 0), true
}

// hintFor returns the end of memory for a block: the high end if the operator of its storage costs
// more per byte than the average. Cheap storages, which are evicted first, then lie side by side,
// so that their holes merge.
func (r *runner) hintFor(owner Owner) alloc.Hint {
	if owner == 0 {
		return alloc.HintNone
	}
	op := &r.s.Ops[r.s.Tensors[r.s.Storages[owner-1].Root].Op]
	if float64(op.Cost)*float64(r.outputBytes) > float64(r.s.Cost)*float64(op.OutputBytes) {
		return alloc.HintHigh
	}
	return alloc.HintLow
}

// countWasted counts the bytes of the victims that overlap no block of the current operator.
func (r *runner) countWasted() {
	if r.addressed == nil {
		return
	}
	for _, v := range r.vacated {
		if !overlaps(v, r.blocks) && (r.swap == nil || !overlaps(v, r.swap.fetched)) {
			r.res.WastedBytes += int64(v.Size)
		}
	}
}

func overlaps(b alloc.Block, others []OwnedBlock) bool {
	for i := range others {
		if o := others[i].Block; o.Addr < b.Addr.Add(b.Size) && b.Addr < o.Addr.Add(o.Size) {
			return true
		}
	}
	return false
}

func (r *runner) outOfMemory() Verdict {
	if r.addressed == nil {
		return OOM
	}
	return r.addressed.Classify(r.requested)
}
