package remat

// classes joins evicted storages that neighbour each other into classes, and keeps the sum of the
// costs of each: a union-find over nodes. Classes never split. A storage that comes back takes its
// cost out of the sum and forgets its node, which stays in the class.
type classes struct {
	r      *runner
	node   []int32  // by storage; -1 for none
	parent []int32  // by node; a root is its own
	sum    []int64  // by node; of a class at its root
	seen   []uint32 // by node: the score in which it was counted last
	score  uint32
}

func newClasses(r *runner) neighbourhood {
	r.graph = newGraph(len(r.stores))
	c := &classes{r: r, node: make([]int32, len(r.stores))}
	for i := range c.node {
		c.node[i] = -1
	}
	return c
}

// linked gives new storages a node that holds nothing, as the simulator does: they are neighbours
// before they exist.
func (c *classes) linked(op *Op) {
	first, end := op.outputs()
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

func (c *classes) left(s int32) {
	own := c.make(c.r.stores[s].local)
	c.node[s] = own
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
		c.sum[c.root(c.node[s])] -= c.r.stores[s].local
		c.node[s] = -1
	}
}

// gone takes a cost out of its class, as if the storage had come back.
func (c *classes) gone(s int32) {
	c.sum[c.root(c.node[s])] -= c.r.stores[s].local
	c.node[s] = -1
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
