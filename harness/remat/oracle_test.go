package remat_test

import (
	"cmp"
	"math"
	"math/big"
	"slices"

	"github.com/vramyard/vramyard/harness/remat"
)

// oracle is a second implementation of the runtime, as short as possible: it recurses, keeps the
// pool in a slice, and computes scores as fractions. It has only heuristics that score single
// storages.
type oracle struct {
	s                *remat.Schedule
	score            string
	eager            bool
	order            remat.ParentOrder
	depth, deepest   int
	budget           int64
	limit            int64
	clock, used      int64
	remat, peak      int64
	pool, victims    []int32
	resident, pinned map[int32]bool
	defined          map[remat.Tensor]bool
	views            map[int32][]remat.Tensor // views by storage
	locks, refs      map[int32]int
	access           map[int32]int64
}

// endRun is the panic that ends a run with a verdict.
type endRun remat.Verdict

// run returns the verdict.
func (o *oracle) run() (end remat.Verdict) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case endRun:
			end = remat.Verdict(v)
		default:
			panic(v)
		}
	}()
	o.clock, o.resident, o.pinned, o.defined = 1, map[int32]bool{}, map[int32]bool{}, map[remat.Tensor]bool{}
	o.views, o.locks, o.refs, o.access = map[int32][]remat.Tensor{}, map[int32]int{}, map[int32]int{}, map[int32]int64{}
	for _, step := range o.s.Steps {
		switch t := remat.Tensor(step.Of); step.Kind {
		case remat.Compute:
			o.compute(&o.s.Ops[step.Of])
		case remat.Retain:
			o.refs[o.storageOf(t)]++
		case remat.Release:
			s := o.storageOf(t)
			if o.refs[s]--; o.refs[s] == 0 && o.eager && o.resident[s] && !o.pinned[s] {
				o.evict(s)
			}
		case remat.Pin:
			if !o.defined[t] {
				o.materialize(t, true)
			}
			o.pin(o.storageOf(t))
		}
	}
	return remat.OK
}

func (o *oracle) storageOf(t remat.Tensor) int32 { return o.s.Tensors[t].Storage }

func (o *oracle) outputs(op *remat.Op) (list []remat.Tensor) {
	for i := range op.Outputs {
		list = append(list, op.First+remat.Tensor(i))
	}
	return list
}

func (o *oracle) compute(op *remat.Op) {
	for _, t := range o.outputs(op) {
		o.views[o.storageOf(t)] = append(o.views[o.storageOf(t)], t)
		o.refs[o.storageOf(t)]++
	}
	o.materialize(op.First, false)
	for _, t := range o.outputs(op) {
		o.access[o.storageOf(t)] = o.clock
		if op.Fixed {
			o.pin(o.storageOf(t))
		}
	}
}

func (o *oracle) lock(s int32) {
	o.pool = slices.DeleteFunc(o.pool, func(p int32) bool { return p == s })
	o.locks[s]++
}

func (o *oracle) pin(s int32) {
	if !o.pinned[s] {
		o.pinned[s] = true
		o.lock(s)
	}
}

func (o *oracle) evict(s int32) {
	o.resident[s] = false
	o.used -= int64(o.s.Storages[s].Size)
	o.pool = slices.DeleteFunc(o.pool, func(p int32) bool { return p == s })
	for _, t := range o.views[s] {
		o.defined[t] = false
	}
}

func (o *oracle) materialize(t remat.Tensor, again bool) {
	op := &o.s.Ops[o.s.Tensors[t].Op]
	if again {
		o.depth++
		o.deepest = max(o.deepest, o.depth)
		defer func() { o.depth-- }()
	}
	missing := []remat.Tensor{}
	for _, p := range op.Args {
		o.access[o.storageOf(p)] = o.clock
		if o.defined[p] {
			o.lock(o.storageOf(p))
		} else {
			missing = append(missing, p)
		}
	}
	slices.SortStableFunc(missing, func(a, b remat.Tensor) int { return cmp.Compare(o.sortKey(a), o.sortKey(b)) })
	for _, p := range missing {
		if !o.defined[p] {
			o.materialize(p, true)
		}
		o.lock(o.storageOf(p))
	}
	for o.used+int64(op.OutputBytes+op.Workspace) > o.budget {
		if len(o.pool) == 0 {
			panic(endRun(remat.OOM))
		}
		s := o.choose()
		o.victims = append(o.victims, s)
		o.evict(s)
	}
	o.clock += op.Cost
	o.used += int64(op.OutputBytes)
	o.peak = max(o.peak, o.used+int64(op.Workspace))
	if again {
		o.remat += op.Cost
	}
	for _, u := range append(slices.DeleteFunc(o.outputs(op), func(u remat.Tensor) bool { return u == t }), t) {
		s := o.storageOf(u)
		switch {
		case o.defined[u] && o.s.Storages[s].Root == u:
			o.used -= int64(o.s.Storages[s].Size)
		case !o.resident[s]:
			o.resident[s] = true
			o.pool = append(o.pool, s)
		}
		o.defined[u] = true
	}
	for _, p := range op.Args {
		if o.locks[o.storageOf(p)]--; o.locks[o.storageOf(p)] == 0 {
			o.pool = append(o.pool, o.storageOf(p))
		}
	}
	if o.limit > 0 && o.remat > o.limit {
		panic(endRun(remat.Thrash))
	}
}

// sortKey returns the key by which missing inputs are sorted, least first.
func (o *oracle) sortKey(t remat.Tensor) int64 {
	ops := map[int32]bool{}
	var walk func(t remat.Tensor)
	walk = func(t remat.Tensor) {
		number := o.s.Tensors[t].Op
		if o.defined[t] || ops[number] {
			return
		}
		ops[number] = true
		for _, p := range o.s.Ops[number].Args {
			walk(p)
		}
	}
	walk(t)
	time, largest := int64(0), int64(0)
	for number := range ops {
		op := &o.s.Ops[number]
		set := op.OutputBytes + op.Workspace
		for _, p := range op.Args {
			set += o.s.Storages[o.storageOf(p)].Size
		}
		time, largest = time+op.Cost, max(largest, int64(set))
	}
	return []int64{remat.ByArgument: 0, remat.CheapestFirst: time, remat.LargestFirst: -largest}[o.order]
}

// choose returns the victim: the storage with the least score, the last of equals.
func (o *oracle) choose() int32 {
	best, victim := math.Inf(1), int32(-1)
	for _, s := range o.pool {
		ops, local := map[int32]bool{}, int64(0)
		for _, t := range o.views[s] {
			if op := o.s.Tensors[t].Op; !ops[op] {
				ops[op] = true
				local += o.s.Ops[op].Cost
			}
		}
		size, age := int64(o.s.Storages[s].Size), o.clock-o.access[s]
		over, under := local, new(big.Int).Mul(big.NewInt(size), big.NewInt(age))
		switch o.score {
		case "lru":
			over, under = o.access[s], big.NewInt(1)
		case "size":
			over, under = 1, big.NewInt(size)
		case "1/(m*s)":
			over = 1
		}
		v := math.Inf(1)
		if under.Sign() > 0 {
			v, _ = new(big.Rat).SetFrac(big.NewInt(over), under).Float64()
		}
		if v <= best {
			best, victim = v, s
		}
		if v == 0 {
			break
		}
	}
	return victim
}
