package remat

// refcount counts for each storage what is made of it and has not been freed for good: every output
// in another storage, once for each time that its operator reads this one. A dead storage of which
// nothing is made is freed for good, which may free what it was made of in turn; any other dead one
// is evicted and can be computed again. So what is remembered does not grow with the length of a
// program.
//
// Storages that views make out of each other keep each other. MegEngine has no views here.
type refcount struct {
	keep
	count []int32 // by storage
	dead  []bool  // by storage: nobody refers to it
	work  []int32 // dead storages with a count of 0
}

func newRefcount(r *runner) liveness {
	n := len(r.s.Storages)
	return &refcount{keep: keep{r}, count: make([]int32, n), dead: make([]bool, n)}
}

func (c *refcount) born(op *Op) {
	for t := range op.outputs() {
		c.each(t, func(s int32) { c.count[s]++ })
	}
}

// each calls f for every other storage that a tensor is made of, once for each argument, unless it
// can never be made again.
func (c *refcount) each(t Tensor, f func(s int32)) {
	if c.r.small(t) {
		return
	}
	for _, p := range c.parents(t) {
		if s := c.r.s.Tensors[p].Storage; s != c.r.s.Tensors[t].Storage {
			f(s)
		}
	}
}

func (c *refcount) died(s int32) {
	c.dead[s] = true
	if st := &c.r.stores[s]; c.count[s] > 0 {
		if st.resident && !st.pinned { // what is pinned cannot be made again
			c.r.evict(s, Dead)
		}
		return
	}
	c.work = append(c.work[:0], s)
	for len(c.work) > 0 {
		s := c.work[len(c.work)-1]
		c.work = c.work[:len(c.work)-1]
		c.free(s)
	}
}

func (c *refcount) free(s int32) {
	if c.count[s] != 0 {
		panic("remat: a storage is freed for good of which others are made")
	}
	st := &c.r.stores[s]
	if st.resident {
		st.locks = 0
		c.r.evict(s, Banished)
	}
	st.gone = true
	c.r.forget(s)
	for t := st.first; t != none; t = c.r.later[t] {
		c.each(t, func(p int32) {
			if c.count[p]--; c.count[p] == 0 && c.dead[p] {
				c.work = append(c.work, p)
			}
		})
	}
}
