package remat

import (
	"cmp"
	"slices"
)

// ParentOrder is the order in which the missing inputs of an operator are recomputed. Each stays
// locked until the operator has run.
type ParentOrder uint8

const (
	// ByArgument follows the order of arguments, as the simulator does.
	ByArgument ParentOrder = iota
	// CheapestFirst starts with the input whose missing operators take the least time in total.
	CheapestFirst
	// LargestFirst starts with the input whose missing operators include the largest working set:
	// inputs (a repeated argument counts each time), outputs and workspace. It is computed while the
	// other inputs do not occupy memory yet.
	LargestFirst
)

// chains finds the operators that must run to define a tensor, in O(result).
type chains struct {
	marks // over operators
	stack []Tensor
}

// eachOp calls f once for every missing operator of t, the producer of t first. If more is true, it
// skips the operators that were visited since the last call without more.
func (c *chains) eachOp(r *runner, t Tensor, more bool, f func(op *Op, of Tensor)) {
	if c.seen == nil {
		c.seen = make([]uint32, len(r.s.Ops))
	}
	if !more {
		c.reset()
	}
	c.stack = append(c.stack[:0], t)
	for len(c.stack) > 0 {
		t := c.stack[len(c.stack)-1]
		c.stack = c.stack[:len(c.stack)-1]
		number := r.s.Tensors[t].Op
		if !c.visit(number) {
			continue
		}
		f(&r.s.Ops[number], t)
		for _, p := range r.live.parents(t) {
			if !r.defined[p] {
				c.stack = append(c.stack, p)
			}
		}
	}
}

// orderMissing sorts the missing inputs of an operator by Config.ParentOrder. It visits the missing
// operators of each input.
func (r *runner) orderMissing(missing []Tensor) {
	if r.c.ParentOrder == ByArgument || len(missing) < 2 {
		return
	}
	type chain struct {
		of  Tensor
		key int64 // least first
	}
	list := make([]chain, 0, len(missing))
	for _, t := range missing {
		key := int64(0)
		r.orderChains.eachOp(r, t, false, func(op *Op, of Tensor) {
			if r.c.ParentOrder == CheapestFirst {
				key += op.Cost
				return
			}
			set := op.OutputBytes + op.Workspace
			for _, p := range r.live.parents(of) {
				set = min(set+r.s.Storages[r.s.Tensors[p].Storage].Size, maxTotal)
			}
			key = min(key, -int64(set))
		})
		list = append(list, chain{t, key})
	}
	slices.SortStableFunc(list, func(a, b chain) int { return cmp.Compare(a.key, b.key) })
	for i, c := range list {
		missing[i] = c.of
	}
}

// eagerRemat evicts dead storages that were restored for a recomputation as soon as no planned
// operator reads them. A chain then needs the memory of its widest point instead of its length. The
// counts are a forecast: evictions during the recomputation may cause more runs.
type eagerRemat struct {
	r        *runner
	on       bool    // a recomputation is in progress
	chains   chains  // the planned operators: the missing ones of the wanted tensor
	reads    []int32 // by storage: reads by planned operators that have not run
	restored []bool  // by storage: restored in this recomputation
	list     []int32 // storages with an entry in reads or restored
}

func newEagerRemat(r *runner) *eagerRemat {
	n := len(r.stores)
	return &eagerRemat{r: r, reads: make([]int32, n), restored: make([]bool, n)}
}

func (p *eagerRemat) begin(t Tensor) {
	p.on = true
	p.plan(t, false)
}

// plan adds the reads of all missing operators of a tensor. If more is true, operators that are
// planned already do not count again.
func (p *eagerRemat) plan(t Tensor, more bool) {
	p.chains.eachOp(p.r, t, more, func(_ *Op, of Tensor) {
		for _, a := range p.r.live.parents(of) {
			s := p.r.s.Tensors[a].Storage
			p.reads[s]++
			p.list = append(p.list, s)
		}
	})
}

// onRun evicts the inputs and outputs of an operator that no planned operator reads any more. The
// wanted output is kept although it is not locked yet.
func (p *eagerRemat) onRun(f frame) {
	if !p.on {
		return
	}
	r := p.r
	number, wanted := r.s.Tensors[f.of].Op, r.s.Tensors[f.of].Storage
	p.chains.seen[number] = 0 // if it must run again, plan counts its reads again
	if f.again {
		for _, s := range r.restored {
			p.restored[s] = true
			p.list = append(p.list, s)
			if s != wanted && p.reads[s] == 0 {
				p.drop(s)
			}
		}
	}
	for _, a := range r.s.Ops[number].Args {
		s := r.s.Tensors[a].Storage
		p.reads[s] = max(0, p.reads[s]-1)
		if s != wanted && p.reads[s] == 0 {
			p.drop(s)
		}
	}
}

// drop evicts a storage if it is dead and was restored for this recomputation.
func (p *eagerRemat) drop(s int32) {
	st := &p.r.stores[s]
	if p.restored[s] && st.resident && st.refs == 0 && st.locks == 0 && !st.discarded {
		p.r.evict(s, Dead)
	}
}

// end also drops storages whose planned reads did not happen.
func (p *eagerRemat) end() {
	p.on = false
	for _, s := range p.list {
		p.drop(s)
		p.reads[s], p.restored[s] = 0, false
	}
	p.list = p.list[:0]
}
