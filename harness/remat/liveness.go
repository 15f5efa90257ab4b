package remat

// liveness is a policy for dead storages, those whose last reference was released.
type liveness interface {
	// onCreate is called when an operator is about to run for the first time.
	onCreate(op *Op)
	// parents returns the tensors that t is computed from.
	parents(t Tensor) []Tensor
	// onRun is called when an operator has run because output t was wanted. It unlocks the inputs.
	onRun(t Tensor)
	// onEvict is called when a storage has been evicted.
	onEvict(s int32)
	// onRelease is called when the last reference to a storage was released. It may rerun
	// operators.
	onRelease(s int32) Verdict
	// keepsDeadAccess reports whether a read leaves the access time of a dead storage unchanged.
	keepsDeadAccess() bool
}

func livenesses() []struct {
	name  string
	start func(*runner) liveness
} {
	return []struct {
		name  string
		start func(*runner) liveness
	}{
		{"none", func(r *runner) liveness { return keepDead{r} }},
		{"eager", func(r *runner) liveness { return eager{keepDead{r}} }},
		{"banish", newBanish},
		{"mge-refcount", newRefcount},
		{"detach", newDetach},
	}
}

// Livenesses returns the names of the policies for dead tensors:
//
//   - none leaves them to the heuristic.
//   - eager evicts them at once.
//   - banish frees them permanently once no evicted tensor depends on them, and pins their
//     dependants.
//   - mge-refcount (MegEngine) evicts them at once, and frees them permanently once everything
//     computed from them has been freed permanently.
//   - detach (MegEngine without automatic drop) frees them permanently at once. Evicted tensors
//     computed from them are recomputed first, and all of them are pinned.
func Livenesses() []string {
	names := []string{}
	for _, l := range livenesses() {
		names = append(names, l.name)
	}
	return names
}

// keepDead leaves dead storages to the heuristic.
type keepDead struct{ r *runner }

func (keepDead) onCreate(*Op)            {}
func (keepDead) onEvict(int32)           {}
func (keepDead) onRelease(int32) Verdict { return OK }
func (keepDead) keepsDeadAccess() bool   { return false }

func (k keepDead) parents(t Tensor) []Tensor { return k.r.s.Ops[k.r.s.Tensors[t].Op].Args }

func (k keepDead) onRun(t Tensor) {
	for _, p := range k.parents(t) {
		k.r.unlock(k.r.s.Tensors[p].Storage)
	}
}

// eager evicts dead storages at once. They can be recomputed for a reader that was evicted.
type eager struct{ keepDead }

func (e eager) onRelease(s int32) Verdict {
	if st := &e.r.stores[s]; st.resident && !st.pinned {
		e.r.evict(s, Dead)
	}
	return OK
}

// banish frees dead storages permanently once no evicted tensor depends on them.
type banish struct {
	r          *runner
	args       [][]Tensor            // by tensor: its inputs, without banished ones
	users      [][]Tensor            // by tensor: its consumers, once per argument
	dependants []map[Tensor]struct{} // by storage: undefined tensors of other storages that depend on it
}

func newBanish(r *runner) liveness {
	n := len(r.s.Tensors)
	return &banish{r, make([][]Tensor, n), make([][]Tensor, n), make([]map[Tensor]struct{}, len(r.s.Storages))}
}

func (b *banish) keepsDeadAccess() bool { return true }

func (b *banish) parents(t Tensor) []Tensor { return b.args[t] }

func (b *banish) onCreate(op *Op) {
	for t := range op.outputs() {
		b.args[t] = append([]Tensor(nil), op.Args...)
		b.addDependant(t)
	}
	for _, a := range op.Args {
		for t := range op.outputs() {
			b.users[a] = append(b.users[a], t)
		}
	}
}

func (b *banish) addDependant(t Tensor) {
	for _, p := range b.args[t] {
		if s := b.r.s.Tensors[p].Storage; s != b.r.s.Tensors[t].Storage {
			if b.dependants[s] == nil {
				b.dependants[s] = map[Tensor]struct{}{}
			}
			b.dependants[s][t] = struct{}{}
		}
	}
}

func (b *banish) onEvict(s int32) {
	for t := b.r.stores[s].first; t != none; t = b.r.nextView[t] {
		b.addDependant(t)
	}
}

func (b *banish) onRelease(s int32) Verdict {
	b.banishIfUnneeded(s)
	return OK
}

// onRun unlocks the inputs one by one. Banishing an input removes it from the list under iteration,
// so the next input is skipped and stays locked, as in the simulator.
func (b *banish) onRun(t Tensor) {
	op := &b.r.s.Ops[b.r.s.Tensors[t].Op]
	for i := 0; ; i++ {
		if i >= len(b.args[t]) {
			break // banishing shortens the list
		}
		s := b.r.s.Tensors[b.args[t][i]].Storage
		b.r.unlock(s)
		for u := range op.outputs() {
			delete(b.dependants[s], u)
		}
		b.banishIfUnneeded(s)
	}
}

// banishIfUnneeded frees a storage permanently if it has no references and no missing tensor
// depends on it.
func (b *banish) banishIfUnneeded(s int32) {
	st := &b.r.stores[s]
	if st.refs > 0 || len(b.dependants[s]) > 0 {
		return
	}
	if st.resident {
		st.locks = 0
		b.r.evict(s, Banished)
	}
	for t := st.first; t != none; t = b.r.nextView[t] {
		for _, p := range b.args[t] {
			if of := b.r.s.Tensors[p].Storage; of != s {
				delete(b.dependants[of], t)
				b.users[p] = removeFirst(b.users[p], t)
			}
		}
		for _, c := range b.users[t] {
			if of := b.r.s.Tensors[c].Storage; of != s {
				b.args[c] = removeFirst(b.args[c], t)
				b.r.pin(of)
			}
		}
	}
	b.r.forget(s)
}
