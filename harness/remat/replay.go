package remat

import (
	"cmp"
	"slices"
)

// ParentOrder is in which order the inputs that an operator lacks are made again. While one is
// made, those before it are locked.
type ParentOrder uint8

const (
	// ByArgument makes them in the order of arguments, as the simulator.
	ByArgument ParentOrder = iota
	// CheapestFirst begins with the one whose chain of operators costs least time, alone.
	CheapestFirst
	// LargestFirst begins with the one whose chain has the operator with the largest working set:
	// inputs, each time they are given, outputs and workspace. The others are not locked by then.
	LargestFirst
)

// chains finds what must run again for a tensor. It costs a look at each operator that must.
type chains struct {
	marks // of operators
	stack []Tensor
}

// each calls f for every operator that must run for a tensor that is not defined, the tensor's own
// first, each once. With more, it goes on with a walk and leaves out what that has met.
func (c *chains) each(r *runner, t Tensor, more bool, f func(op *Op, of Tensor)) {
	if c.seen == nil {
		c.seen = make([]uint32, len(r.s.Ops))
	}
	if !more {
		c.fresh()
	}
	c.stack = append(c.stack[:0], t)
	for len(c.stack) > 0 {
		t := c.stack[len(c.stack)-1]
		c.stack = c.stack[:len(c.stack)-1]
		number := r.s.Tensors[t].Op
		if !c.meet(number) {
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

// order sorts what a frame lacks. Each costs a walk along its chain.
func (r *runner) order(missing []Tensor) {
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
		r.ordering.each(r, t, false, func(op *Op, of Tensor) {
			if r.c.ParentOrder == CheapestFirst {
				key += op.Cost
				return
			}
			set := op.Need + op.Workspace
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

// replay evicts, while tensors are made again, what came back for that alone as soon as nothing
// that is to run needs it: dead storages, since the program itself will read the others. So a chain
// takes the room of its widest place and not of its length. Its counts are only a forecast: an
// eviction meanwhile may call for more runs.
type replay struct {
	r      *runner
	on     bool    // something is being made again
	chains chains  // the operators that are to run
	reads  []int32 // by storage: how often they will read it
	came   []bool  // by storage: it came back in this replay
	list   []int32 // of both
}

func newReplay(r *runner) *replay {
	n := len(r.stores)
	return &replay{r: r, reads: make([]int32, n), came: make([]bool, n)}
}

func (p *replay) begin(t Tensor) {
	p.on = true
	p.plan(t, false)
}

// plan counts what the operators read that have to run for a tensor, as far as that was not
// foreseen.
func (p *replay) plan(t Tensor, more bool) {
	p.chains.each(p.r, t, more, func(_ *Op, of Tensor) {
		for _, a := range p.r.live.parents(of) {
			s := p.r.s.Tensors[a].Storage
			p.reads[s]++
			p.list = append(p.list, s)
		}
	})
}

// ran lets go of what an operator that has run has read, and of what it made that nobody wants.
// What was wanted stays: it is not locked yet.
func (p *replay) ran(f frame) {
	if !p.on {
		return
	}
	r := p.r
	number, wanted := r.s.Tensors[f.of].Op, r.s.Tensors[f.of].Storage
	p.chains.seen[number] = 0 // if it must run once more, that is not foreseen
	if f.again {
		for _, s := range r.fresh {
			p.came[s] = true
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

// drop evicts a storage that came back for this replay alone.
func (p *replay) drop(s int32) {
	st := &p.r.stores[s]
	if p.came[s] && st.resident && st.refs == 0 && st.locks == 0 && !st.gone {
		p.r.evict(s, Dead)
	}
}

// end evicts what was foreseen to be read and was not.
func (p *replay) end() {
	p.on = false
	for _, s := range p.list {
		p.drop(s)
		p.reads[s], p.came[s] = 0, false
	}
	p.list = p.list[:0]
}
