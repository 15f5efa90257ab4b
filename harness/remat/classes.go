package remat

// classes joins evicted storages that neighbour each other into classes, and keeps the sum of the
// costs of each: a union-find over nodes. Classes never split. A storage that comes back takes its
// cost out of the sum and forgets its node, which stays in the class.
//
// As in the simulator, the outputs of an operator are neighbours before it has run, and sums drift: what was
// never put in is taken out. If mended, they become neighbours when they exist.
//
// Invariant, if mended: the sums of all classes add up to the local costs of all evicted storages.
type classes struct {
	passive
	r      *runner
	mended bool
	held   []int64  // by storage: what its class holds of it
	node   []int32  // by storage; none32 for none
	parent []int32  // by node; a root is its own
	sum    []int64  // by node; of a class at its root
	seen   []uint32 // by node: the score in which it was counted last
	score  uint32
}

// newClasses makes classes as the simulator does.
func newClasses(r *runner) neighbourhood { return makeClasses(r, false) }

// newExactClasses makes classes whose sums are exact.
func newExactClasses(r *runner) neighbourhood { return makeClasses(r, true) }

func makeClasses(r *runner, mended bool) neighbourhood {
	n := len(r.stores)
	r.graph = newGraph(n)
	c := &classes{r: r, mended: mended, held: make([]int64, n), node: make([]int32, n)}
	for i := range c.node {
		c.node[i] = none32
	}
	return c
}

// linked gives new storages a node that holds nothing, as the simulator does: they are neighbours
// before they exist. If mended, it adds what new views add to the cost of evicted storages.
func (c *classes) linked(op *Op) {
	first, end := op.outputs()
	if c.mended {
		for t := first; t < end; t++ {
			if s := c.r.s.Tensors[t].Storage; c.node[s] != none32 {
				c.hold(s)
			}
		}
		return
	}
	for t := first; t < end; t++ {
		if s := c.r.s.Tensors[t].Storage; c.r.s.Storages[s].Root == t {
			c.node[s] = c.make(0)
		}
	}
	c.r.graph.link(c.r.s, op)
}

// make returns a class of its own.
func (c *classes) make(sum int64) int32 {
	n := int32(len(c.parent))
	c.parent, c.sum, c.seen = append(c.parent, n), append(c.sum, sum), append(c.seen, 0)
	return n
}

// root returns the root of a class, and lets every node on the way point to its grandparent.
func (c *classes) root(n int32) int32 {
	for c.parent[n] != n {
		c.parent[n] = c.parent[c.parent[n]]
		n = c.parent[n]
	}
	return n
}

// hold lets the class of a storage hold its local cost.
func (c *classes) hold(s int32) {
	local := c.r.stores[s].local
	c.sum[c.root(c.node[s])] += local - c.held[s]
	c.held[s] = local
}

// let takes a storage out of its class. As in the simulator, that takes its local cost of now, or if
// mended what the class holds of it.
func (c *classes) let(s int32) {
	switch {
	case !c.mended:
		c.held[s] = c.r.stores[s].local
	case c.node[s] == none32: // it comes for the first time
		return
	}
	c.sum[c.root(c.node[s])] -= c.held[s]
	c.held[s], c.node[s] = 0, none32
}

func (c *classes) ran(op *Op, again bool) {
	if c.mended && !again {
		c.r.graph.link(c.r.s, op)
	}
}

func (c *classes) left(s int32, _ Cause) {
	own := c.make(0)
	c.node[s] = own
	c.hold(s)
	for _, list := range [2][]int32{c.r.graph.parents[s], c.r.graph.children[s]} {
		for _, n := range list {
			if c.r.stores[n].resident {
				continue
			}
			if root := c.root(c.node[n]); root != own {
				c.parent[root] = own
				c.sum[own] += c.sum[root]
			}
		}
	}
}

func (c *classes) back(list []int32) {
	for _, s := range list {
		c.let(s)
	}
}

// gone takes a cost out of its class, as if the storage had come back.
func (c *classes) gone(s int32) {
	c.let(s)
	c.r.graph.cut(s)
}

func (c *classes) cost(s int32) (cost, access int64) {
	c.score++
	if c.score == 0 {
		clear(c.seen)
		c.score = 1
	}
	st := &c.r.stores[s]
	cost = st.local
	for _, list := range [2][]int32{c.r.graph.parents[s], c.r.graph.children[s]} {
		for _, n := range list {
			if c.r.stores[n].resident {
				continue
			}
			if root := c.root(c.node[n]); c.seen[root] != c.score {
				c.seen[root] = c.score
				cost += c.sum[root]
			}
		}
	}
	return cost, st.access
}
