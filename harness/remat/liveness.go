package remat

// liveness is what becomes of storages that nobody refers to.
type liveness interface {
	// born is called when an operator is seen for the first time.
	born(op *Op)
	// parents returns what a tensor is made of.
	parents(t Tensor) []Tensor
	// ran is called when an operator has run for an output, and lets go of its inputs.
	ran(t Tensor)
	// left is called when a storage has been evicted.
	left(s int32)
	// died is called when the last reference to a storage was released.
	died(s int32)
	// deadAge reports whether a storage without references ages although it is used.
	deadAge() bool
}

func livenesses() []struct {
	name  string
	start func(*runner) liveness
} {
	return []struct {
		name  string
		start func(*runner) liveness
	}{
		{"none", func(r *runner) liveness { return keep{r} }},
		{"eager", func(r *runner) liveness { return eager{keep{r}} }},
		{"banish", newBanish},
		{"mge-refcount", newRefcount},
	}
}

// Livenesses returns the names of what may become of tensors that nobody refers to: none leaves
// them to the heuristic, eager evicts them at once, banish frees them for good as soon as no
// evicted tensor is made of them, and pins what was, and mge-refcount, of MegEngine, evicts them at
// once and frees them for good when all that was made of them has been.
func Livenesses() []string {
	names := []string{}
	for _, l := range livenesses() {
		names = append(names, l.name)
	}
	return names
}

// keep leaves dead storages as they are.
type keep struct{ r *runner }

func (keep) born(*Op)      {}
func (keep) left(int32)    {}
func (keep) died(int32)    {}
func (keep) deadAge() bool { return false }

func (k keep) parents(t Tensor) []Tensor { return k.r.s.Ops[k.r.s.Tensors[t].Op].Args }

func (k keep) ran(t Tensor) {
	for _, p := range k.parents(t) {
		k.r.unlock(k.r.s.Tensors[p].Storage)
	}
}

// eager evicts dead storages at once. They can still be computed again.
type eager struct{ keep }

func (e eager) died(s int32) {
	if st := &e.r.stores[s]; st.resident && !st.pinned {
		e.r.evict(s, Dead)
	}
}

// banish frees dead storages for good, once no evicted tensor is made of them.
type banish struct {
	r       *runner
	args    [][]Tensor            // by tensor: what it is made of, less what was banished
	users   [][]Tensor            // by tensor: what is made of it, once for each argument
	waiting []map[Tensor]struct{} // by storage: undefined tensors of others that are made of it
}

func newBanish(r *runner) liveness {
	n := len(r.s.Tensors)
	return &banish{r, make([][]Tensor, n), make([][]Tensor, n), make([]map[Tensor]struct{}, len(r.s.Storages))}
}

func (b *banish) deadAge() bool { return true }

func (b *banish) parents(t Tensor) []Tensor { return b.args[t] }

func (b *banish) born(op *Op) {
	for t := range op.outputs() {
		b.args[t] = append([]Tensor(nil), op.Args...)
		b.await(t)
	}
	for _, a := range op.Args {
		for t := range op.outputs() {
			b.users[a] = append(b.users[a], t)
		}
	}
}

func (b *banish) await(t Tensor) {
	for _, p := range b.args[t] {
		if s := b.r.s.Tensors[p].Storage; s != b.r.s.Tensors[t].Storage {
			if b.waiting[s] == nil {
				b.waiting[s] = map[Tensor]struct{}{}
			}
			b.waiting[s][t] = struct{}{}
		}
	}
}

func (b *banish) left(s int32) {
	for t := b.r.stores[s].first; t != none; t = b.r.later[t] {
		b.await(t)
	}
}

func (b *banish) died(s int32) { b.try(s) }

// ran lets go of the inputs one by one. An input that is banished leaves the list that is being
// walked, and the one behind it takes its place unseen: it stays locked, as it does in the
// simulator.
func (b *banish) ran(t Tensor) {
	op := &b.r.s.Ops[b.r.s.Tensors[t].Op]
	for i := 0; ; i++ {
		if i >= len(b.args[t]) {
			break // the list may be shorter than it was
		}
		s := b.r.s.Tensors[b.args[t][i]].Storage
		b.r.unlock(s)
		for u := range op.outputs() {
			delete(b.waiting[s], u)
		}
		b.try(s)
	}
}

// try frees a storage for good if nobody refers to it and nothing waits for it.
func (b *banish) try(s int32) {
	st := &b.r.stores[s]
	if st.refs > 0 || len(b.waiting[s]) > 0 {
		return
	}
	if st.resident {
		st.locks = 0
		b.r.evict(s, Banished)
	}
	for t := st.first; t != none; t = b.r.later[t] {
		for _, p := range b.args[t] {
			if of := b.r.s.Tensors[p].Storage; of != s {
				delete(b.waiting[of], t)
				b.users[p] = without(b.users[p], t)
			}
		}
		for _, c := range b.users[t] {
			if of := b.r.s.Tensors[c].Storage; of != s {
				b.args[c] = without(b.args[c], t)
				b.r.pin(of)
			}
		}
	}
	b.r.forget(s)
}
