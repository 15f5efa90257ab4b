package remat

// detach frees dead storages permanently at once, as MegEngine does if the program and not a
// heuristic drops tensors. The outputs of their readers can then never be recomputed, so
// missing ones are restored first, and all of them are pinned until they die themselves.
type detach struct {
	keepDead
	users [][]int32 // by storage: operators that read it, once per argument
}

func newDetach(r *runner) liveness {
	return &detach{keepDead{r}, make([][]int32, len(r.s.Storages))}
}

func (d *detach) onCreate(op *Op) {
	for _, a := range op.Args {
		s := d.r.s.Tensors[a].Storage
		d.users[s] = append(d.users[s], d.r.s.Tensors[op.First].Op)
	}
}

func (d *detach) onRelease(s int32) Verdict {
	for _, user := range d.users[s] {
		for t := range d.r.s.Ops[user].outputs() {
			of := d.r.s.Tensors[t].Storage
			if of == s || d.r.stores[of].discarded {
				continue
			}
			if !d.r.defined[t] {
				if v := d.r.materialize(t, true); v != OK {
					return v
				}
			}
			d.r.pin(of)
		}
	}
	if st := &d.r.stores[s]; st.resident {
		st.locks, st.pinned = 0, false
		d.r.evict(s, Banished)
	}
	d.users[s], d.r.stores[s].discarded = nil, true
	d.r.forget(s)
	return OK
}
