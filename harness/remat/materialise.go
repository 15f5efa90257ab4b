package remat

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// frame is an operator that waits for its inputs.
type frame struct {
	of    Tensor // the output that is wanted
	next  int32  // the next of missing to be looked at
	base  int32  // where in runner.missing those of this frame begin
	again bool   // the operator has run before
}

// materialise makes a tensor that is not defined, and before it, depth first, what it is made of.
// It keeps its own stack: a chain may be longer than any stack of a program.
func (r *runner) materialise(t Tensor, again bool) Verdict {
	r.push(t, again)
	foresee := r.replay != nil && len(r.missing) > 0
	if foresee {
		r.replay.begin(t)
	}
	for len(r.frames) > 0 {
		f := &r.frames[len(r.frames)-1]
		if int(f.next) == len(r.missing) {
			if v := r.finish(*f); v != OK {
				r.frames, r.missing = r.frames[:0], r.missing[:0]
				return v
			}
			r.missing = r.missing[:f.base]
			r.frames = r.frames[:len(r.frames)-1]
			continue
		}
		p := r.missing[f.next]
		if !r.defined[p] { // else a sibling's run has brought it, or the frame that was pushed for it
			r.push(p, true)
			if foresee {
				r.replay.plan(p, true)
			}
			continue
		}
		f.next++
		r.lock(r.s.Tensors[p].Storage)
	}
	if foresee {
		r.replay.end()
	}
	return OK
}

// push adds a frame. All inputs count as used now, before any of them is made again; those that are
// there are locked first.
func (r *runner) push(t Tensor, again bool) {
	parents := r.live.parents(t)
	for _, p := range parents {
		if st := r.storeOf(p); st.refs > 0 || !r.live.deadAge() {
			st.access = r.clock
		}
	}
	if r.near != nil {
		r.near.used(&r.s.Ops[r.s.Tensors[t].Op])
	}
	base := int32(len(r.missing))
	for _, p := range parents {
		if r.defined[p] {
			r.lock(r.s.Tensors[p].Storage)
		} else {
			r.missing = append(r.missing, p)
		}
	}
	r.order(r.missing[base:])
	r.frames = append(r.frames, frame{t, base, base, again})
	if r.frames[0].again {
		r.res.Deepest = max(r.res.Deepest, len(r.frames))
	} else {
		r.res.Deepest = max(r.res.Deepest, len(r.frames)-1)
	}
}

// finish runs the operator of a frame whose inputs are all locked.
func (r *runner) finish(f frame) Verdict {
	op := &r.s.Ops[r.s.Tensors[f.of].Op]
	r.short, r.vacated = false, r.vacated[:0]
	if v := r.trigger.before(r, op.Need+op.Workspace); v != OK {
		return v
	}
	if !r.execute(op, f) {
		return r.outOfMemory()
	}
	r.live.ran(f.of)
	if r.replay != nil {
		r.replay.ran(f)
	}
	r.trigger.after(r, f.of)
	if r.c.Limit > 0 && r.res.Remat > r.c.Limit {
		return Thrash
	}
	select {
	case <-r.c.Stop:
		return Stopped
	default:
		return OK
	}
}

// execute runs an operator. Outputs that are defined already get blocks of their own, which go
// right afterwards.
func (r *runner) execute(op *Op, f frame) bool {
	r.blocks = r.blocks[:0]
	for t := range op.outputs() {
		if !r.block(r.sizeOf(t), ownerOf(r.s.Tensors[t].Storage)) {
			return false
		}
	}
	if !r.block(op.Workspace, 0) {
		return false
	}
	r.countWasted()
	passing := r.blocks[:0]
	for i, b := range r.blocks {
		// Only now is it certain what is there: finding these blocks may have evicted an output.
		switch t := op.First + Tensor(i); {
		case b.Size == 0:
		case t == op.end() || r.defined[t] || r.storeOf(t).gone:
			passing = append(passing, b)
		default:
			r.storeOf(t).block = b.Block
		}
	}
	r.clock += op.Cost
	r.used += op.Need
	r.res.Peak = max(r.res.Peak, r.used+op.Workspace)
	r.res.Runs++
	if f.again {
		r.res.Remat += op.Cost
		r.res.Remats++
	} else {
		r.res.Model += op.Cost
	}
	for _, b := range passing {
		r.mem.Free(b.Block)
	}
	r.settle(op, f)
	if r.c.Watch != nil {
		r.c.Watch.Ran(r.s.Tensors[f.of].Op, f.of, f.again)
	}
	return true
}

// sizeOf returns the bytes that a tensor brings: none if it is a view.
func (r *runner) sizeOf(t Tensor) device.Size {
	s := &r.s.Storages[r.s.Tensors[t].Storage]
	if s.Root != t {
		return 0
	}
	return s.Size
}

// block adds a block to runner.blocks, an empty one for no bytes.
func (r *runner) block(size device.Size, owner Owner) bool {
	b, ok := alloc.Block{}, true
	if size > 0 {
		b, ok = r.place(size, owner)
	}
	r.blocks = append(r.blocks, Moving{owner, size, b})
	return ok
}

// settle defines the outputs of an operator that has run. What has come back may be evicted in the
// order of the outputs, the one that was wanted last.
func (r *runner) settle(op *Op, f frame) {
	r.fresh = r.fresh[:0]
	for t := range op.outputs() {
		s := r.s.Tensors[t].Storage
		switch {
		case t == f.of:
		case r.stores[s].gone:
			r.used -= r.sizeOf(t)
			continue
		case !r.defined[t]:
			if f.again {
				r.res.Collateral++
			}
			r.regain(s)
		default:
			r.used -= r.sizeOf(t)
		}
		r.defined[t] = true
	}
	r.regain(r.s.Tensors[f.of].Storage)
	for _, s := range r.fresh {
		r.pool.add(s)
	}
	if r.near != nil {
		r.near.back(r.fresh)
		r.near.ran(op, f.again)
	}
}

func (r *runner) regain(s int32) {
	if !r.stores[s].resident {
		r.stores[s].resident = true
		r.fresh = append(r.fresh, s)
	}
}
