package remat

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// frame is an operator that waits for its missing inputs.
type frame struct {
	of    Tensor // the wanted output
	next  int32  // index in runner.missing of the next input to define
	base  int32  // index in runner.missing of the first input of this frame
	again bool   // a rerun
}

// materialize computes an undefined tensor and, depth first, its missing inputs. The stack is
// runner.frames, because chains can be arbitrarily deep.
func (r *runner) materialize(t Tensor, again bool) Verdict {
	r.push(t, again)
	plan := r.eagerRemat != nil && len(r.missing) > 0
	if plan {
		r.eagerRemat.begin(t)
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
		if !r.defined[p] { // else its own frame, or a rerun for another input, has defined it
			r.push(p, true)
			if plan {
				r.eagerRemat.plan(p, true)
			}
			continue
		}
		f.next++
		r.lock(r.s.Tensors[p].Storage)
	}
	if plan {
		r.eagerRemat.end()
	}
	return OK
}

// push adds a frame for t. All inputs count as used now, before any is recomputed. The resident
// inputs are locked at once, the missing ones when they have been recomputed.
func (r *runner) push(t Tensor, again bool) {
	parents := r.live.parents(t)
	for _, p := range parents {
		if st := r.storeOf(p); st.refs > 0 || !r.live.keepsDeadAccess() {
			st.access = r.clock
		}
	}
	if r.scorer != nil {
		r.scorer.onUse(&r.s.Ops[r.s.Tensors[t].Op])
	}
	base := int32(len(r.missing))
	for _, p := range parents {
		if r.defined[p] {
			r.lock(r.s.Tensors[p].Storage)
		} else {
			r.missing = append(r.missing, p)
		}
	}
	r.orderMissing(r.missing[base:])
	r.frames = append(r.frames, frame{t, base, base, again})
	if r.frames[0].again {
		r.res.DeepestChain = max(r.res.DeepestChain, len(r.frames))
	} else {
		r.res.DeepestChain = max(r.res.DeepestChain, len(r.frames)-1)
	}
}

// finish runs the operator of a frame, whose inputs are all locked.
func (r *runner) finish(f frame) Verdict {
	op := &r.s.Ops[r.s.Tensors[f.of].Op]
	r.evicting, r.vacated, r.blocks = false, r.vacated[:0], r.blocks[:0]
	need := op.OutputBytes + op.Workspace
	if r.swap != nil {
		need += r.swap.keep(r.live.parents(f.of))
	}
	if v := r.trigger.before(r, need); v != OK {
		return v
	}
	if r.swap != nil && !r.swap.fetch(r.live.parents(f.of)) || !r.execute(op, f) {
		return r.outOfMemory()
	}
	r.live.onRun(f.of)
	if r.eagerRemat != nil {
		r.eagerRemat.onRun(f)
	}
	r.trigger.after(r, f.of)
	if r.c.Limit > 0 && r.clock-1-r.res.ModelTime > r.c.Limit {
		return Thrash
	}
	select {
	case <-r.c.Stop:
		return Stopped
	default:
		return OK
	}
}

// execute runs an operator. Outputs that are already defined, or are to be discarded, get temporary
// blocks, which are freed right after the run. It returns false if memory was refused.
func (r *runner) execute(op *Op, f frame) bool {
	for t := range op.outputs() {
		if !r.block(r.sizeOf(t), ownerOf(r.s.Tensors[t].Storage)) {
			return false
		}
	}
	if !r.block(op.Workspace, 0) {
		return false
	}
	r.countWasted()
	temporary := r.blocks[:0]
	for i, b := range r.blocks {
		// Allocating may have evicted an output, so which outputs are defined is known only now.
		switch t := op.First + Tensor(i); {
		case b.Size == 0:
		case t == op.end() || r.defined[t] || r.storeOf(t).discarded:
			temporary = append(temporary, b)
		default:
			r.storeOf(t).block = b.Block
		}
	}
	held := r.used + op.OutputBytes + op.Workspace
	if r.swap != nil {
		r.swap.awaitInputs(r.live.parents(f.of))
		r.swap.prefetch(op.Cost)
		held = r.used + op.OutputBytes + op.Workspace + r.swap.leaving
	}
	r.clock += op.Cost
	r.used += op.OutputBytes
	r.res.Peak = max(r.res.Peak, held)
	r.res.Runs++
	if f.again {
		r.res.RematTime += op.Cost
		r.res.Remats++
	} else {
		r.res.ModelTime += op.Cost
	}
	for _, b := range temporary {
		r.mem.Free(b.Block)
	}
	r.defineOutputs(op, f)
	if r.c.Observer != nil {
		r.c.Observer.OnRun(r.s.Tensors[f.of].Op, f.of, f.again)
	}
	return true
}

// sizeOf returns the bytes a tensor allocates, 0 for a view.
func (r *runner) sizeOf(t Tensor) device.Size {
	s := &r.s.Storages[r.s.Tensors[t].Storage]
	if s.Root != t {
		return 0
	}
	return s.Size
}

// block allocates and appends to runner.blocks. If size is 0 it appends an empty block.
func (r *runner) block(size device.Size, owner Owner) bool {
	b, ok := alloc.Block{}, true
	if size > 0 {
		b, ok = r.allocate(size, owner)
	}
	r.blocks = append(r.blocks, OwnedBlock{owner, size, b})
	return ok
}

// defineOutputs defines the outputs of an operator that has run. Its storages that were missing
// become candidates for eviction in the order of the outputs, the wanted one last.
func (r *runner) defineOutputs(op *Op, f frame) {
	r.restored = r.restored[:0]
	for t := range op.outputs() {
		s := r.s.Tensors[t].Storage
		switch {
		case t == f.of:
		case r.stores[s].discarded:
			r.used -= r.sizeOf(t)
			continue
		case !r.defined[t]:
			if f.again {
				r.res.Collateral++
			}
			r.restore(s)
		default:
			r.used -= r.sizeOf(t)
		}
		r.defined[t] = true
	}
	r.restore(r.s.Tensors[f.of].Storage)
	for _, s := range r.restored {
		r.pool.add(s)
	}
	if r.scorer != nil {
		r.scorer.onRestore(r.restored)
		r.scorer.onRun(op, f.again)
	}
}

func (r *runner) restore(s int32) {
	if !r.stores[s].resident {
		r.stores[s].resident = true
		r.restored = append(r.restored, s)
	}
}
