package remat

import "slices"

// classes is a union-find over evicted storages: adjacent evicted storages share a class, which
// holds the sum of their costs. Classes never split: a restored storage subtracts its cost and
// drops its node, which stays in the class.
//
// As in the simulator, the outputs of an operator become neighbours before it has run, and a class
// may subtract costs that were never added. If mended, they become neighbours once they exist.
//
// Invariant, if mended: the sums of all classes add up to the local costs of all evicted storages.
type classes struct {
	noopHooks
	r             *runner
	mended        bool
	share         []int64 // by storage: its share of the sum of its class
	node          []int32 // by storage; none32: no class
	forest[int64]         // sums are costs in ns
}

// forest is a union-find with a sum at each root.
type forest[T int64 | float64] struct {
	marks          // roots already counted by a score
	parent []int32 // by node; a root is its own
	sum    []T     // by node; valid at a root
}

func (f *forest[T]) newNode(sum T) int32 {
	n := int32(len(f.parent))
	f.parent, f.sum, f.seen = append(f.parent, n), append(f.sum, sum), append(f.seen, 0)
	return n
}

// root returns the root of a node and compresses the path to it. With QuirkReset the scores depend
// on this compression.
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

// newClasses reproduces the simulator's classes, or keeps exact sums if mended.
func newClasses(mended bool) func(*runner) scorer {
	return func(r *runner) scorer {
		n := len(r.stores)
		r.graph = newGraph(n)
		return &classes{r: r, mended: mended, share: make([]int64, n), node: slices.Repeat([]int32{none32}, n)}
	}
}

// onLink gives new storages a node with sum 0, so they are neighbours before they exist, as in the
// simulator. If mended, it adds the cost of new views to evicted storages.
func (c *classes) onLink(op *Op) {
	if c.mended {
		for t := range op.outputs() {
			if s := c.r.s.Tensors[t].Storage; c.node[s] != none32 {
				c.add(s)
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

// add updates the share of a storage in its class to its current local cost.
func (c *classes) add(s int32) {
	local := c.r.stores[s].local
	c.sum[c.root(c.node[s])] += local - c.share[s]
	c.share[s] = local
}

// remove takes a storage out of its class. The simulator subtracts its current local cost; if
// mended, its share is subtracted.
func (c *classes) remove(s int32) {
	switch {
	case c.node[s] == none32: // first time resident, or freed for good and back with another output
		return
	case !c.mended:
		c.share[s] = c.r.stores[s].local
	}
	c.sum[c.root(c.node[s])] -= c.share[s]
	c.share[s], c.node[s] = 0, none32
}

func (c *classes) onRun(op *Op, again bool) {
	if c.mended && !again {
		c.r.graph.link(c.r.s, op)
	}
}

func (c *classes) onEvict(s int32, _ Cause) {
	own := c.newNode(0)
	c.node[s] = own
	c.add(s)
	for _, list := range [2][]int32{c.r.graph.parents[s], c.r.graph.children[s]} {
		for _, n := range list {
			if c.r.stores[n].resident || c.node[n] == none32 { // freed for good: without a class
				continue
			}
			if root := c.root(c.node[n]); root != own {
				c.parent[root] = own
				c.sum[own] += c.sum[root]
			}
		}
	}
}

func (c *classes) onRestore(list []int32) {
	for _, s := range list {
		c.remove(s)
	}
}

// onForget removes the cost of a storage from its class, as onRestore does.
func (c *classes) onForget(s int32) {
	c.remove(s)
	c.r.graph.remove(s)
}

func (c *classes) cost(s int32) (cost, access int64) {
	c.reset()
	st := &c.r.stores[s]
	cost = st.local
	for _, list := range [2][]int32{c.r.graph.parents[s], c.r.graph.children[s]} {
		for _, n := range list {
			if c.r.stores[n].resident || c.node[n] == none32 { // freed for good: without a class
				continue
			}
			if root := c.root(c.node[n]); c.visit(root) {
				cost += c.sum[root]
			}
		}
	}
	return cost, st.access
}
