package props

import (
	"slices"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// shrinkOp is the generator's shrinker of one operation: fewer options, lower numbers.
func shrinkOp(v any) gopter.Shrink {
	o := v.(Op)
	n, _ := number(&o)
	numbers := gen.UInt64Shrinker(*n).Map(func(value uint64) Op {
		lower := o
		n, _ := number(&lower)
		*n = value
		return lower
	})
	if o.Kind != OpAlloc {
		return numbers
	}
	plainer := plainer(o)
	options := func() (any, bool) {
		if len(plainer) == 0 {
			return nil, false
		}
		next := plainer[0]
		plainer = plainer[1:]
		return next, true
	}
	return gopter.ConcatShrinks(options, numbers)
}

// drops are functions that each remove one option from an operation.
var drops = [...]func(*Op){
	func(o *Op) { o.Align = 0 },
	func(o *Op) {
		if o.Stream = 0; o.Kind == OpPoolBegin {
			o.Stream = power.AllStreams
		}
	},
	func(o *Op) { o.Hint = alloc.HintNone },
	func(o *Op) { o.Before = 0 },
}

// plainer returns the operation with one option dropped, for each option that it has.
func plainer(o Op) (all []Op) {
	for _, drop := range drops {
		p := o
		if drop(&p); p != o {
			all = append(all, p)
		}
	}
	return all
}

type shrinker struct {
	best  Sequence
	tries int // remaining calls of fails
	fails func(Sequence) bool
}

// Shrink returns a smaller sequence for which fails still holds. It first tries one allocation.
// Then it removes runs of operations, single ones and pairs, joins two allocations into one, lowers
// numbers one by one, all equal ones together and in pairs, and repeats until nothing helps or
// fails was called tries times. The library's shrinker removes halves only and never considers two
// operations together, so this pass follows it.
//
// Precondition: fails(s) holds.
func Shrink(s Sequence, tries int, fails func(Sequence) bool) Sequence {
	sh := &shrinker{best: slices.Clone(s), tries: tries, fails: fails}
	sh.alone()
	for sh.tries > 0 {
		if !(sh.dropRuns() || sh.dropOne() || sh.plain() || sh.lower() || sh.lowerEqual() || sh.dropTwo() ||
			sh.dropEarlier() || sh.join() || sh.lowerTwo()) {
			break
		}
	}
	return sh.best
}

func (sh *shrinker) try(candidate Sequence) bool {
	if sh.tries <= 0 {
		return false
	}
	sh.tries--
	if !sh.fails(candidate) {
		return false
	}
	sh.best = candidate
	return true
}

// alone looks for a sequence of one allocation, of a power-of-two size, that also fails. One
// allocation suffices for a bug in a full region, and the other passes do not get there.
func (sh *shrinker) alone() {
	for n := device.Size(1); n <= 1<<40 && len(sh.best) > 1; n <<= 1 {
		sh.try(Sequence{{Kind: OpAlloc, Size: n}})
	}
}

func (sh *shrinker) edited(i int, o Op) Sequence {
	c := slices.Clone(sh.best)
	c[i] = o
	return c
}

// without returns a copy of the best sequence without operations i and j, i <= j.
func (sh *shrinker) without(i, j int) Sequence {
	c := make(Sequence, 0, len(sh.best))
	for k, o := range sh.best {
		if k != i && k != j {
			c = append(c, o)
		}
	}
	return c
}

// dropRuns removes every run of operations that is not needed, long ones first. If that fails, it
// also makes the operations after the run refer to the same blocks and frees as before.
func (sh *shrinker) dropRuns() (helped bool) {
	for n := len(sh.best) / 2; n > 0; n /= 2 {
		for i := len(sh.best) - n; i >= 0; i-- {
			rest := slices.Delete(slices.Clone(sh.best), i, i+n)
			if sh.try(rest) || sh.renames(rest, sh.best[i:i+n], i) {
				helped = true
				i = min(i, len(sh.best)-n+1)
			}
		}
	}
	return helped
}

// renames tries rest, the sequence without a run at index i, after adjusting the operations from i
// on: picks of blocks are lowered by the number of blocks that the run left live, bounds on frees
// by the number of its frees.
func (sh *shrinker) renames(rest, run Sequence, i int) bool {
	var blocks, frees uint64
	for _, o := range run {
		switch o.Kind {
		case OpAlloc:
			blocks++
		case OpFree:
			frees++
		}
	}
	blocks -= min(blocks, frees)
	changed := false
	lower := func(n *uint64, by uint64) {
		if *n >= by && by > 0 {
			*n, changed = *n-by, true
		}
	}
	for k := range rest[i:] {
		o := &rest[i+k]
		lower(&o.Before, frees)
		if o.Kind == OpFree || o.Kind == OpInterior || o.Kind == OpUse {
			lower(&o.Pick, blocks)
		}
	}
	return changed && sh.try(rest)
}

// dropOne removes every operation that is not needed, last first.
func (sh *shrinker) dropOne() (helped bool) {
	for i := len(sh.best) - 1; i >= 0; i-- {
		helped = sh.try(sh.without(i, i)) || helped
	}
	return helped
}

// eachPair calls try with each pair of operations until it returns true.
func (sh *shrinker) eachPair(try func(i, j int) bool) bool {
	for i := range sh.best {
		for j := i + 1; j < len(sh.best); j++ {
			if try(i, j) {
				return true
			}
		}
	}
	return false
}

// dropTwo removes the first pair that is not needed.
func (sh *shrinker) dropTwo() bool {
	return sh.eachPair(func(i, j int) bool { return sh.try(sh.without(i, j)) })
}

// dropEarlier removes the first pair that is not needed once every bound on the count of frees is
// one lower. Removing a block and its free renumbers the later frees, which the bounds refer to.
func (sh *shrinker) dropEarlier() bool {
	bounded := func(o Op) bool { return o.Before > 1 }
	if !slices.ContainsFunc(sh.best, bounded) {
		return false
	}
	return sh.eachPair(func(i, j int) bool {
		c := sh.without(i, j)
		for k := range c {
			if bounded(c[k]) {
				c[k].Before--
			}
		}
		return sh.try(c)
	})
}

// joinUnits are units that strategies round requests up to, so that one block can take the
// place of two.
var joinUnits = [...]device.Size{1, 256, 4 * device.KiB}

// join replaces two consecutive allocations by one: the first pair for which the sequence still
// fails.
func (sh *shrinker) join() bool {
	last := -1
	for i, o := range sh.best {
		if o.Kind != OpAlloc {
			continue
		}
		if last >= 0 && sh.joinPair(last, i) {
			return true
		}
		last = i
	}
	return false
}

// joinPair replaces two allocations by one of their total size, in the place of either.
func (sh *shrinker) joinPair(i, j int) bool {
	for _, unit := range joinUnits {
		a, b := sh.best[i].Size, sh.best[j].Size
		if !device.CanAlignUp(a, unit) || b > ^device.AlignUp(a, unit) {
			continue
		}
		for _, place := range [...][2]int{{i, j}, {j, i}} {
			c := slices.Clone(sh.best)
			c[place[0]].Size = device.AlignUp(a, unit) + b
			if sh.try(slices.Delete(c, place[1], place[1]+1)) {
				return true
			}
		}
	}
	return false
}

// plain drops every option that is not needed.
func (sh *shrinker) plain() (helped bool) {
	for i := range sh.best {
		for _, drop := range drops {
			p := sh.best[i]
			if drop(&p); p != sh.best[i] {
				helped = sh.try(sh.edited(i, p)) || helped
			}
		}
	}
	return helped
}

// number returns the number of the operation that can be lowered, and its least value.
func number(o *Op) (n *uint64, least uint64) {
	if o.Kind == OpAlloc || o.Kind == OpFault {
		least = 1
	}
	if numbers := o.numbers(); len(numbers) > 0 {
		return numbers[0], least
	}
	return &o.Pick, least
}

// lower finds by bisection the least number of every operation that still fails.
func (sh *shrinker) lower() (helped bool) {
	for i := range sh.best {
		helped = sh.lowest(func(o Op, j int) bool { return i == j }) || helped
	}
	return helped
}

// lowerEqual does the same to all allocations of one size together.
func (sh *shrinker) lowerEqual() (helped bool) {
	for i := range sh.best {
		size := sh.best[i].Size
		if sh.best[i].Kind != OpAlloc {
			continue
		}
		helped = sh.lowest(func(o Op, _ int) bool { return o.Kind == OpAlloc && o.Size == size }) || helped
	}
	return helped
}

// lowest lowers the number of the chosen operations, all equal, by bisection to the least at which
// the sequence still fails. Failing need not be monotone; the result always fails.
func (sh *shrinker) lowest(chosen func(Op, int) bool) (helped bool) {
	set := func(v uint64) Sequence {
		c := slices.Clone(sh.best)
		for j := range c {
			if chosen(sh.best[j], j) {
				n, _ := number(&c[j])
				*n = v
			}
		}
		return c
	}
	first := 0
	for !chosen(sh.best[first], first) {
		first++
	}
	n, least := number(&sh.best[first])
	for v := least; v < min(least+16, *n); v++ { // numbers that are used modulo another are not monotone
		if sh.try(set(v)) {
			return true
		}
	}
	for low, high := least, *n; low < high && sh.tries > 0; {
		middle := low + (high-low)/2
		if sh.try(set(middle)) {
			high, helped = middle, true
		} else {
			low = middle + 1
		}
	}
	return helped
}

// lowerTwo takes the same power of two from a pair of sizes: those whose difference
// matters can only shrink together.
func (sh *shrinker) lowerTwo() bool {
	return sh.eachPair(func(i, j int) bool {
		if sh.best[i].Kind != OpAlloc || sh.best[j].Kind != OpAlloc {
			return false
		}
		for bit := device.Size(1) << 40; bit != 0; bit >>= 1 {
			if sh.best[i].Size <= bit || sh.best[j].Size <= bit {
				continue
			}
			c := slices.Clone(sh.best)
			c[i].Size -= bit
			c[j].Size -= bit
			if sh.try(c) {
				return true
			}
		}
		return false
	})
}
