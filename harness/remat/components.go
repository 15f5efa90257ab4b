package remat

import (
	"math"
	"slices"
)

// components is the union-find of MegEngine and OneFlow over evicted storages. Other than
// [classes], every storage has a node from the start, which holds its cost, and the neighbours of a
// storage are the inputs and the outputs of the operators that make it; consumers are some too if
// QuirkProducer is mended.
//
// Sums are floats, as there. They are exact as long as they are whole numbers below 2^53.
type components struct {
	passive
	r               *runner
	quirks          Quirks
	dead            bool                       // dead storages join their neighbours, too
	price           func(*runner, *Op) float64 // of an operator
	own             []float64                  // by storage: cost of the distinct operators that make its views
	evicted         []bool                     // by storage
	node            []int32                    // by storage
	forest[float64]                            // the components, with their costs
	list            []int32                    // of neighbours
}

func newComponents(r *runner, quirks Quirks, price func(*runner, *Op) float64) components {
	n := len(r.stores)
	if quirks&QuirkProducer == 0 {
		r.graph = newGraph(n)
	}
	return components{r: r, quirks: quirks, price: price,
		own: make([]float64, n), evicted: make([]bool, n), node: make([]int32, n)}
}

// linked adds the cost of an operator to what it makes.
func (c *components) linked(op *Op) {
	price := c.price(c.r, op)
	c.list = c.list[:0]
	for t := range op.outputs() {
		s := c.r.s.Tensors[t].Storage
		if slices.Contains(c.list, s) {
			continue // two views, one operator
		}
		c.list = append(c.list, s)
		c.own[s] += price
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

// join hangs the component of a below that of b.
func (c *components) join(a, b int32) {
	if a, b = c.root(c.node[a]), c.root(c.node[b]); a != b {
		c.sum[b] += c.sum[a]
		c.parent[a] = b
	}
}

// around returns the evicted neighbours of a storage, inputs first, as often as operators name
// them, and how many of them are inputs.
func (c *components) around(s int32) (list []int32, inputs int) {
	c.list = c.list[:0]
	for op := range c.makers(s) {
		for _, a := range op.Args {
			c.addEvicted(s, c.r.s.Tensors[a].Storage)
		}
	}
	inputs = len(c.list)
	for op := range c.makers(s) {
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

// makers goes through the distinct operators that make the views of a storage.
func (c *components) makers(s int32) func(func(*Op) bool) {
	return func(yield func(*Op) bool) {
		last := int32(-1)
		for t := c.r.stores[s].first; t != none; t = c.r.later[t] {
			if op := c.r.s.Tensors[t].Op; op != last && !yield(&c.r.s.Ops[op]) {
				return
			}
			last = c.r.s.Tensors[t].Op
		}
	}
}

// addEvicted adds a neighbour of s to the list if it is evicted.
func (c *components) addEvicted(s, n int32) {
	if n != s && c.evicted[n] {
		c.list = append(c.list, n)
	}
}

// left lets a storage join its neighbours. One that died does not, in MegEngine, but is a neighbour
// for others.
func (c *components) left(s int32, why Cause) {
	c.evicted[s] = true
	if why != Pressure && !c.dead {
		return
	}
	list, inputs := c.around(s)
	for i, n := range list {
		if i < inputs {
			c.join(n, s)
		} else {
			c.join(s, n)
		}
	}
}

func (c *components) back(list []int32) {
	for _, s := range list {
		if c.evicted[s] {
			c.evicted[s] = false
			c.leave(s)
		}
	}
}

// leave takes a storage out of its component.
func (c *components) leave(s int32) {
	n := c.node[s]
	c.sum[c.root(n)] -= c.own[s]
	if c.quirks&QuirkReset == 0 {
		c.node[s] = c.newNode(c.own[s])
		return
	}
	c.parent[n], c.sum[n] = n, c.own[s]
}

// ran takes outputs out of their components that have been there all the time, with QuirkResident.
func (c *components) ran(op *Op, again bool) {
	if !again || c.quirks&QuirkResident == 0 {
		return
	}
	for t := range op.outputs() {
		s := c.r.s.Tensors[t].Storage
		if c.r.s.Storages[s].Root == t && c.r.stores[s].resident && !slices.Contains(c.r.fresh, s) {
			c.leave(s)
		}
	}
}

func (c *components) gone(s int32) {
	if c.evicted[s] {
		c.evicted[s] = false
		c.leave(s)
	}
	if c.r.graph != nil {
		c.r.graph.cut(s)
	}
}

// neighbours returns the cost of the evicted components around a storage.
func (c *components) neighbours(s int32) float64 {
	c.fresh()
	cost := 0.0
	list, _ := c.around(s)
	for _, n := range list {
		root := c.root(c.node[n])
		if !c.meet(root) && c.quirks&QuirkTwice == 0 {
			continue
		}
		if c.quirks&QuirkClamp != 0 {
			cost += max(c.sum[root], c.own[n])
		} else {
			cost += c.sum[root]
		}
	}
	return cost
}

// oneflow is OneFlow's score: the neighbours that MegEngine sees, counted as MegEngine counts them,
// and the own cost, in time, by size and staleness. Dead storages join their neighbours, too.
type oneflow struct{ components }

func newOneFlow(r *runner) neighbourhood {
	c := newComponents(r, QuirkProducer|QuirkTwice|QuirkClamp, func(_ *runner, op *Op) float64 { return float64(op.Cost) })
	c.dead = true
	return &oneflow{c}
}

func (o *oneflow) rank(s int32) (score, tie float64) {
	under := float64(o.r.s.Storages[s].Size) * float64(o.r.clock-o.r.stores[s].access)
	if under == 0 {
		return math.Inf(1), 0
	}
	return (o.own[s] + o.neighbours(s)) / under, 0
}
