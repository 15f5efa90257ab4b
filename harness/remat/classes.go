package remat

import "slices"

// classes joins evicted storages that neighbour each other into classes, and keeps the sum of the
// costs of each: a union-find over nodes. Classes never split. A storage that comes back takes its
// cost out of the sum and forgets its node, which stays in the class.
//
// As in the simulator, the outputs of an operator are neighbours before it has run, and sums drift:
// what was never put in is taken out. If mended, they become neighbours when they exist.
//
// Invariant, if mended: the sums of all classes add up to the local costs of all evicted storages.
type classes struct {
	passive
	r             *runner
	mended        bool
	held          []int64 // by storage: what its class holds of it
	node          []int32 // by storage; none32 for none
	forest[int64]         // the classes, with their costs
}

// forest is a union-find: trees of nodes, with a sum at each root.
type forest[T int64 | float64] struct {
	marks          // of the roots that a score has counted
	parent []int32 // by node; a root is its own
	sum    []T     // by node; valid at a root
}

// newNode returns a tree of one node.
func (f *forest[T]) newNode(sum T) int32 {
	n := int32(len(f.parent))
	f.parent, f.sum, f.seen = append(f.parent, n), append(f.sum, sum), append(f.seen, 0)
	return n
}

// root returns the root of a node, and links every node on the path to it. With QuirkReset the
// scores depend on these links.
func (f *forest[T]) root(n int32) int32 {
	root := n
	for f.parent[root] != root {
		root = f.parent[root]
	}
	for f.parent[n] != root {
		n, f.parent[n] = f.parent[n], root
	}
	return root
}

// newClasses returns classes as the simulator keeps them, or with exact sums if mended.
func newClasses(mended bool) func(*runner) neighbourhood {
	return func(r *runner) neighbourhood {
		n := len(r.stores)
		r.graph = newGraph(n)
		return &classes{r: r, mended: mended, held: make([]int64, n), node: slices.Repeat([]int32{none32}, n)}
	}
}

// linked gives new storages a node that holds nothing, as the simulator does: they are neighbours
// before they exist. If mended, it adds what new views add to the cost of evicted storages.
func (c *classes) linked(op *Op) {
	if c.mended {
		for t := range op.outputs() {
			if s := c.r.s.Tensors[t].Storage; c.node[s] != none32 {
				c.hold(s)
			}
		}
		return
	}
	for t := range op.outputs() {
		if s := c.r.s.Tensors[t].Storage; c.r.s.Storages[s].Root == t {
			c.node[s] = c.newNode(0)
		}
	}
	c.r.graph.link(c.r.s, op)
}

// hold lets the class of a storage hold its local cost.
func (c *classes) hold(s int32) {
	local := c.r.stores[s].local
	c.sum[c.root(c.node[s])] += local - c.held[s]
	c.held[s] = local
}

// let takes a storage out of its class. As in the simulator, that takes its local cost of now, or
// if mended what the class holds of it.
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
	own := c.newNode(0)
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
	c.fresh()
	st := &c.r.stores[s]
	cost = st.local
	for _, list := range [2][]int32{c.r.graph.parents[s], c.r.graph.children[s]} {
		for _, n := range list {
			if c.r.stores[n].resident {
				continue
			}
			if root := c.root(c.node[n]); c.meet(root) {
				cost += c.sum[root]
			}
		}
	}
	return cost, st.access
}
