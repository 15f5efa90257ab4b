package remat

// refcount counts the dependants of each storage that are not freed permanently: the outputs in
// other storages that were computed from it, once per argument. A dead storage without dependants
// is freed permanently, which may cascade to its inputs. Other dead storages are evicted and can be
// recomputed. So the state of a long program does not grow with its length.
//
// Storages that depend on each other through views are never freed. MegEngine, which has no views,
// does not have this case.
type refcount struct {
	keepDead
	count    []int32 // by storage
	dead     []bool  // by storage: no references left
	freeable []int32 // dead storages with count 0
}

func newRefcount(r *runner) liveness {
	n := len(r.s.Storages)
	return &refcount{keepDead: keepDead{r}, count: make([]int32, n), dead: make([]bool, n)}
}

func (c *refcount) onCreate(op *Op) {
	for t := range op.outputs() {
		c.eachInput(t, func(s int32) { c.count[s]++ })
	}
}

// eachInput calls f for every other storage that a tensor is computed from, once per argument. If
// the tensor is too small to be evicted, it never needs them again and f is not called.
func (c *refcount) eachInput(t Tensor, f func(s int32)) {
	if c.r.small(t) {
		return
	}
	for _, p := range c.parents(t) {
		if s := c.r.s.Tensors[p].Storage; s != c.r.s.Tensors[t].Storage {
			f(s)
		}
	}
}

func (c *refcount) onRelease(s int32) Verdict {
	c.dead[s] = true
	if st := &c.r.stores[s]; c.count[s] > 0 {
		if st.resident && !st.pinned { // a pinned storage cannot be recomputed
			c.r.evict(s, Dead)
		}
		return OK
	}
	c.freeable = append(c.freeable[:0], s)
	for len(c.freeable) > 0 {
		s := c.freeable[len(c.freeable)-1]
		c.freeable = c.freeable[:len(c.freeable)-1]
		c.free(s)
	}
	return OK
}

func (c *refcount) free(s int32) {
	if c.count[s] != 0 {
		panic("remat: a storage with dependants is freed permanently")
	}
	st := &c.r.stores[s]
	if st.resident {
		st.locks = 0
		c.r.evict(s, Banished)
	}
	st.discarded = true
	c.r.forget(s)
	for t := st.first; t != none; t = c.r.nextView[t] {
		c.eachInput(t, func(p int32) {
			if c.count[p]--; c.count[p] == 0 && c.dead[p] {
				c.freeable = append(c.freeable, p)
			}
		})
	}
}
