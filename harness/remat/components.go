package remat

import (
	"math"
	"slices"
)

// components is the union-find of MegEngine and OneFlow over evicted storages. Unlike in [classes],
// every storage has a node from its creation. The neighbors of a storage are the inputs and the
// outputs of its producers and, without QuirkProducer, its consumers.
//
// Sums are floats as in the originals, exact for whole numbers below 2^53.
type components struct {
	noopHooks
	r               *runner
	quirks          Quirks
	joinDead        bool                       // dead storages join their neighbors, too
	opCost          func(*runner, *Op) float64 // cost of an operator
	ownCost         []float64                  // by storage: total cost of its producers
	evicted         []bool                     // by storage
	node            []int32                    // by storage: its node in forest
	forest[float64]                            // the sum of a root is the cost of its component
	list            []int32                    // scratch: neighbors
}

func newComponents(r *runner, quirks Quirks, price func(*runner, *Op) float64) components {
	n := len(r.stores)
	if quirks&QuirkProducer == 0 {
		r.graph = newGraph(n)
	}
	return components{r: r, quirks: quirks, opCost: price,
		ownCost: make([]float64, n), evicted: make([]bool, n), node: make([]int32, n)}
}

// onLink adds the cost of an operator to the own cost of each storage it produces, and to the
// component of that storage.
func (c *components) onLink(op *Op) {
	price := c.opCost(c.r, op)
	c.list = c.list[:0]
	for t := range op.outputs() {
		s := c.r.s.Tensors[t].Storage
		if slices.Contains(c.list, s) {
			continue // another view of a storage counted already
		}
		c.list = append(c.list, s)
		c.ownCost[s] += price
		if c.r.s.Storages[s].Root == t {
			c.node[s] = c.newNode(price)
		} else {
			c.sum[c.root(c.node[s])] += price
		}
	}
	if c.r.graph != nil {
		c.r.graph.link(c.r.s, op)
	}
}

// join merges the component of storage a into the component of storage b.
func (c *components) join(a, b int32) {
	if a, b = c.root(c.node[a]), c.root(c.node[b]); a != b {
		c.sum[b] += c.sum[a]
		c.parent[a] = b
	}
}

// evictedNeighbors returns the evicted neighbors of a storage, inputs first, and the number of
// inputs among them. A neighbor that occurs several times in the operators is repeated.
func (c *components) evictedNeighbors(s int32) (list []int32, inputs int) {
	c.list = c.list[:0]
	for op := range c.producers(s) {
		for _, a := range op.Args {
			c.addEvicted(s, c.r.s.Tensors[a].Storage)
		}
	}
	inputs = len(c.list)
	for op := range c.producers(s) {
		for o := range op.outputs() {
			c.addEvicted(s, c.r.s.Tensors[o].Storage)
		}
	}
	if c.r.graph != nil {
		for _, n := range c.r.graph.children[s] {
			c.addEvicted(s, n)
		}
	}
	return c.list, inputs
}

// producers yields the operators that produce the views of a storage, each once.
func (c *components) producers(s int32) func(func(*Op) bool) {
	return func(yield func(*Op) bool) {
		last := int32(-1)
		for t := c.r.stores[s].first; t != none; t = c.r.nextView[t] {
			if op := c.r.s.Tensors[t].Op; op != last && !yield(&c.r.s.Ops[op]) {
				return
			}
			last = c.r.s.Tensors[t].Op
		}
	}
}

func (c *components) addEvicted(s, n int32) {
	if n != s && c.evicted[n] {
		c.list = append(c.list, n)
	}
}

// onEvict joins a storage to its evicted neighbors. In MegEngine a dead storage does not join, but
// its neighbors still count the component of its node.
func (c *components) onEvict(s int32, why Cause) {
	c.evicted[s] = true
	if why != Pressure && !c.joinDead {
		return
	}
	list, inputs := c.evictedNeighbors(s)
	for i, n := range list {
		if i < inputs {
			c.join(n, s)
		} else {
			c.join(s, n)
		}
	}
}

func (c *components) onRestore(list []int32) {
	for _, s := range list {
		if c.evicted[s] {
			c.evicted[s] = false
			c.leave(s)
		}
	}
}

// leave moves a storage from its component to one of its own.
func (c *components) leave(s int32) {
	n := c.node[s]
	c.sum[c.root(n)] -= c.ownCost[s]
	if c.quirks&QuirkReset == 0 {
		c.node[s] = c.newNode(c.ownCost[s])
		return
	}
	c.parent[n], c.sum[n] = n, c.ownCost[s]
}

// onRun makes outputs that stayed resident during a rerun leave their components, if QuirkResident
// is set.
func (c *components) onRun(op *Op, again bool) {
	if !again || c.quirks&QuirkResident == 0 {
		return
	}
	for t := range op.outputs() {
		s := c.r.s.Tensors[t].Storage
		if c.r.s.Storages[s].Root == t && c.r.stores[s].resident && !slices.Contains(c.r.restored, s) {
			c.leave(s)
		}
	}
}

func (c *components) onForget(s int32) {
	if c.evicted[s] {
		c.evicted[s] = false
		c.leave(s)
	}
	if c.r.graph != nil {
		c.r.graph.remove(s)
	}
}

// neighborCost returns the cost of the components of the evicted neighbors of a storage.
func (c *components) neighborCost(s int32) float64 {
	c.reset()
	cost := 0.0
	list, _ := c.evictedNeighbors(s)
	for _, n := range list {
		root := c.root(c.node[n])
		if !c.visit(root) && c.quirks&QuirkTwice == 0 {
			continue
		}
		if c.quirks&QuirkClamp != 0 {
			cost += max(c.sum[root], c.ownCost[n])
		} else {
			cost += c.sum[root]
		}
	}
	return cost
}

// oneflow is OneFlow's score: (own cost + neighbor cost) / (size · staleness), where costs are
// times. It has MegEngine's neighbors, and dead storages join theirs, too.
type oneflow struct{ components }

func newOneFlow(r *runner) scorer {
	c := newComponents(r, QuirkProducer|QuirkTwice|QuirkClamp, func(_ *runner, op *Op) float64 { return float64(op.Cost) })
	c.joinDead = true
	return &oneflow{c}
}

func (o *oneflow) rank(s int32) (score, tie float64) {
	under := float64(o.r.s.Storages[s].Size) * float64(o.r.clock-o.r.stores[s].access)
	if under == 0 {
		return math.Inf(1), 0
	}
	return (o.ownCost[s] + o.neighborCost(s)) / under, 0
}
