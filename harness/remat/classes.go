package remat

import "slices"

// classes is a union-find over evicted storages. Storages that are neighbors in the graph when the
// later one is evicted share a class, which holds the sum of their costs. Classes never split: the
// cost of a restored storage is subtracted, and its node remains in the class without a storage.
//
// As in the simulator, the outputs of an operator join the graph before it has run, each with a
// class of sum 0, and their cost is subtracted from the class although it was never added. If
// mended is true, they join once they exist.
//
// Invariant, if mended: the sums of all classes add up to the local costs of all evicted storages.
type classes struct {
	noopHooks
	r             *runner
	mended        bool
	share         []int64 // by storage: the part of the sum of its class that it added
	node          []int32 // by storage: its node in forest; none32: no class
	forest[int64]         // the sum of a root is the cost of its class in ns
}

// forest is a union-find with a sum at each root.
type forest[T int64 | float64] struct {
	marks          // the roots that the current score has counted
	parent []int32 // by node; a root is its own parent
	sum    []T     // by node; valid for a root
}

func (f *forest[T]) newNode(sum T) int32 {
	n := int32(len(f.parent))
	f.parent, f.sum, f.seen = append(f.parent, n), append(f.sum, sum), append(f.seen, 0)
	return n
}

// root returns the root of a node and compresses the path to it. With QuirkReset the compression
// affects scores, because it decides which nodes are below a node that becomes a root.
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

// newClasses returns a constructor of [classes].
func newClasses(mended bool) func(*runner) scorer {
	return func(r *runner) scorer {
		n := len(r.stores)
		r.graph = newGraph(n)
		return &classes{r: r, mended: mended, share: make([]int64, n), node: slices.Repeat([]int32{none32}, n)}
	}
}

// onLink gives each new storage a class with sum 0 and adds it to the graph, as the simulator does.
// If mended, it adds the cost of new views to the classes of evicted storages instead.
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

// add raises the share of a storage in its class to its current local cost.
func (c *classes) add(s int32) {
	local := c.r.stores[s].local
	c.sum[c.root(c.node[s])] += local - c.share[s]
	c.share[s] = local
}

// remove takes a storage out of its class and subtracts its share. The simulator subtracts its
// current local cost, even if it added less.
func (c *classes) remove(s int32) {
	switch {
	case c.node[s] == none32: // new, or freed permanently and restored with another output
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
			if c.r.stores[n].resident || c.node[n] == none32 { // freed permanently: without a class
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

// onForget removes a storage from its class and from the graph.
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
			if c.r.stores[n].resident || c.node[n] == none32 { // freed permanently: without a class
				continue
			}
			if root := c.root(c.node[n]); c.visit(root) {
				cost += c.sum[root]
			}
		}
	}
	return cost, st.access
}
