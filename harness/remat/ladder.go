package remat

import (
	"fmt"
	"math"
	"strings"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Ladder is what a run tries, step by step, when memory refuses a request. Whenever a step has done
// something the request is made again, and if it is refused once more, the ladder is climbed from
// the bottom. A step other than evict acts once for a request, and once again after something was
// evicted.
type Ladder struct {
	Name  string // what Config calls it
	Steps string // in order, separated by commas
	Doc   string // for people
}

// Ladders returns the ladders that have a name.
func Ladders() []Ladder {
	return []Ladder{
		{"none", "evict", "evicts until the request has a place"},
		{"evict-first", "evict,release,defrag", "evicts all it can, then gives back, then moves once (MegEngine)"},
		{"defrag-first", "defrag-if-fits,evict,release", "moves as soon as enough is free, and evicts for what is missing"},
	}
}

// effect is what a step of a ladder did.
type effect uint8

const (
	nothing effect = iota // it had nothing to do
	acted                 // it did something
	evicted               // something was evicted
	failed                // the request has failed
)

// step is a step of a ladder, for a request of so many bytes.
type step struct {
	name string
	act  func(r *runner, size device.Size) effect
}

func ladderSteps() []*step {
	return []*step{
		{"evict", (*runner).evictWindow},
		{"release", func(r *runner, _ device.Size) effect {
			if r.space.Release() == 0 {
				return nothing
			}
			return acted
		}},
		{"defrag", func(r *runner, _ device.Size) effect { return r.defrag() }},
		{"defrag-if-fits", func(r *runner, size device.Size) effect {
			if free, _ := r.space.Refused(); free < size {
				return nothing
			}
			return r.defrag()
		}},
		{"fail", func(*runner, device.Size) effect { return failed }},
	}
}

// mostSteps is how many a ladder may have.
const mostSteps = 64

func ladderOf(text string) (ladder []*step, err error) {
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
		if len(ladder) == before || len(ladder) > mostSteps {
			return nil, fmt.Errorf("ladder %q: want %s, or up to %d of %s, separated by commas",
				text, strings.Join(names, ", "), mostSteps, strings.Join(all, ", "))
		}
	}
	return ladder, nil
}

// place asks for a block, and climbs the ladder as long as the memory refuses.
func (r *runner) place(size device.Size, owner Owner) (alloc.Block, bool) {
	r.want = size
	r.trigger.request(r, size)
	for done := uint64(0); ; {
		b, ok := r.mem.Alloc(size, owner)
		if ok {
			return b, true
		}
		r.refused()
		if done, ok = r.climb(size, done); !ok {
			return alloc.Block{}, false
		}
	}
}

// climb takes the lowest step that has something to do, and returns false if there is none. Done is
// a set of steps that are not to be taken again.
func (r *runner) climb(size device.Size, done uint64) (uint64, bool) {
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

func (r *runner) refused() {
	if r.space == nil {
		return
	}
	free, largest := r.space.Refused()
	r.res.Refusals.Count++
	r.res.Refusals.Free += int64(free)
	r.res.Refusals.Largest += int64(largest)
}

// runShort books once for each run of an operator that something is to be evicted for it.
func (r *runner) runShort() {
	if !r.short {
		r.short = true
		r.res.RoomsMade++
	}
}

func (r *runner) evictFor(device.Size) effect {
	r.runShort()
	if r.pool.n == 0 {
		return nothing
	}
	r.evict(r.choose(), Pressure)
	return evicted
}

// evictWindow evicts what lies side by side and makes room for a request together, if the heuristic
// goes by that and there is any such thing, or else one storage. What each of them is worth is
// looked at before the first goes, although that changes what the others are worth.
func (r *runner) evictWindow(size device.Size) effect {
	if r.space == nil || r.h.by&byPlace == 0 || r.pool.n == 0 {
		return r.evictFor(size)
	}
	least := r.leastEvictee()
	goes, whole := r.space.Window(size, func(owner Owner, at device.Addr) (float64, bool) {
		return r.price(owner, at, least)
	})
	if len(goes) == 0 {
		return r.evictFor(size)
	}
	r.runShort()
	for _, owner := range goes {
		if s := int32(owner) - 1; r.pool.has(s) {
			r.evict(s, Pressure)
			r.res.Windows++
		}
	}
	if whole {
		r.space.Release()
	}
	return evicted
}

// price returns what a block is worth to a window, or that it stays: its size is no part of that,
// because the window has to be large enough anyway.
func (r *runner) price(owner Owner, at device.Addr, least device.Size) (float64, bool) {
	s := int32(owner) - 1
	if s < 0 || !r.pool.has(s) || r.stores[s].block.Addr != at || r.s.Storages[s].Size < least {
		return 0, false
	}
	cost, access := r.costs.cost(s)
	if r.clock <= access {
		return math.Inf(1), true
	}
	return max(quotient(cost, 1, uint64(r.clock-access)), 0), true
}

// end returns where a storage should lie: at the high end if the operator that makes it costs more
// for each of its bytes than all operators do together. So holes among what is cheap grow together.
func (r *runner) end(owner Owner) alloc.Hint {
	if owner == 0 {
		return alloc.HintNone
	}
	op := &r.s.Ops[r.s.Tensors[r.s.Storages[owner-1].Root].Op]
	if float64(op.Cost)*float64(r.bytesMade) > float64(r.s.Cost)*float64(op.Need) {
		return alloc.HintHigh
	}
	return alloc.HintLow
}

// countWasted counts the victims where none of the blocks lie that they were evicted for.
func (r *runner) countWasted() {
	if r.space == nil {
		return
	}
	for _, v := range r.vacated {
		if !overlaps(v, r.blocks) {
			r.res.Wasted += int64(v.Size)
		}
	}
}

func overlaps(b alloc.Block, others []Moving) bool {
	for i := range others {
		if o := others[i].Block; o.Addr < b.Addr.Add(b.Size) && b.Addr < o.Addr.Add(o.Size) {
			return true
		}
	}
	return false
}

func (r *runner) outOfMemory() Verdict {
	if r.space == nil {
		return OOM
	}
	return r.space.Judge(r.want)
}
