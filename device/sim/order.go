package sim

// mark is a position in the queue of a stream: everything up to a ticket.
type mark struct {
	stream int32  // index of the stream; -1 for an event that was never recorded
	ticket uint64 // last ticket included; tickets of a stream count from 1
	time   uint64 // nanoseconds: completion of everything included
}

// order identifies a set of marks, at most one for each stream: the last mark of every other stream
// that a position in a stream comes after, directly or indirectly. 0 is the empty set; positive
// numbers are inner nodes, negative ones leaves.
type order int32

const (
	fanLog  = 3
	fan     = 1 << fanLog
	fanMask = fan - 1
)

// orders holds sets of marks as radix trees over the indexes of streams. Sets share subtrees; a
// shared node is copied before it changes. So a chain of n streams, each of which waits for the
// previous one, takes O(n log n) memory instead of the O(n * n) of lists.
type orders struct {
	inner  []innerNode // inner[0] is unused
	leaves []leafNode  // leaves[0] is unused
	free   [2][]order  // unused inner nodes and leaves
}

// innerNode is a node with children.
type innerNode struct {
	children [fan]order
	refs     int32
	level    uint8 // leaves have level 0
	finished bool  // all marks below have finished
}

// leafNode holds the marks of fan streams with consecutive indexes.
type leafNode struct {
	marks    [fan]stamp
	refs     int32
	finished bool // all marks have finished
}

// stamp is a mark in a leaf; its position gives the stream. Ticket 0 means no mark.
type stamp struct{ ticket, time uint64 }

// newOrders returns a forest with only the empty set.
func newOrders() orders { return orders{inner: make([]innerNode, 1), leaves: make([]leafNode, 1)} }

// refs returns the reference count of a set that is not empty.
func (o *orders) refs(id order) *int32 {
	if id < 0 {
		return &o.leaves[-id].refs
	}
	return &o.inner[id].refs
}

// hold adds a reference to a set.
func (o *orders) hold(id order) order {
	if id != 0 {
		*o.refs(id)++
	}
	return id
}

// drop removes a reference to a set.
func (o *orders) drop(id order) {
	if id == 0 {
		return
	}
	n := o.refs(id)
	if *n--; *n > 0 {
		return
	}
	if id < 0 {
		o.free[1] = append(o.free[1], id)
		return
	}
	for _, child := range o.inner[id].children {
		o.drop(child)
	}
	o.free[0] = append(o.free[0], id)
}

func (o *orders) level(id order) uint8 {
	if id <= 0 {
		return 0
	}
	return o.inner[id].level
}

// allFinished reports whether all marks of a set are known to have finished.
func (o *orders) allFinished(id order) bool {
	if id < 0 {
		return o.leaves[-id].finished
	}
	return id == 0 || o.inner[id].finished
}

// newInner returns an inner node of a level with one child, whose reference it takes over.
func (o *orders) newInner(level uint8, at uint32, child order) (id order) {
	if last := len(o.free[0]) - 1; last >= 0 {
		id, o.free[0] = o.free[0][last], o.free[0][:last]
	} else {
		id = order(len(o.inner))
		o.inner = append(o.inner, innerNode{})
	}
	o.inner[id] = innerNode{refs: 1, level: level}
	o.inner[id].children[at&fanMask] = child
	return id
}

// newLeaf returns a leaf without marks and with one reference.
func (o *orders) newLeaf() (id order) {
	if last := len(o.free[1]) - 1; last >= 0 {
		id, o.free[1] = o.free[1][last], o.free[1][:last]
	} else {
		id = -order(len(o.leaves))
		o.leaves = append(o.leaves, leafNode{})
	}
	o.leaves[-id] = leafNode{refs: 1}
	return id
}

// unshare takes over the reference to a node, and returns a node with equal content that is not
// shared.
func (o *orders) unshare(id order) order {
	if *o.refs(id) == 1 {
		if id < 0 {
			o.leaves[-id].finished = false
		} else {
			o.inner[id].finished = false
		}
		return id
	}
	var own order
	if id < 0 {
		own = o.newLeaf()
		o.leaves[-own].marks = o.leaves[-id].marks
	} else {
		own = o.newInner(o.inner[id].level, 0, 0)
		o.inner[own].children = o.inner[id].children
		for _, child := range o.inner[own].children {
			o.hold(child)
		}
	}
	o.drop(id)
	return own
}

// grow takes over the reference to a nonempty set and returns it with a root of at least a level.
func (o *orders) grow(id order, level uint8) order {
	for o.level(id) < level {
		id = o.newInner(o.level(id)+1, 0, id)
	}
	return id
}

// levelOf returns the level of the smallest tree that contains a stream.
func levelOf(stream int32) (level uint8) {
	for stream >>= fanLog; stream > 0; stream >>= fanLog {
		level++
	}
	return level
}

// childOf returns the child index of a stream in a node of a level.
func childOf(stream int32, level uint8) uint32 { return uint32(stream) >> (fanLog * level) & fanMask }

// follows reports whether the mark is in the set or before one of its marks. O(log streams).
func (o *orders) follows(id order, m mark) bool {
	if o.level(id) < levelOf(m.stream) {
		return false
	}
	for id > 0 {
		id = o.inner[id].children[childOf(m.stream, o.inner[id].level)]
	}
	return id != 0 && o.leaves[-id].marks[m.stream&fanMask].ticket >= m.ticket
}

// join takes over the reference to a set and adds m and the set before it. O(log streams), and O(1)
// for each node in which the sets differ.
func (o *orders) join(id order, m mark, before order) order {
	id = o.merge(id, before)
	level := levelOf(m.stream)
	if id == 0 {
		return o.branch(m, level)
	}
	return o.put(o.grow(id, level), m)
}

// branch returns a tree of a level with one mark.
func (o *orders) branch(m mark, level uint8) order {
	id := o.newLeaf()
	o.leaves[-id].marks[m.stream&fanMask] = stamp{m.ticket, m.time}
	for l := uint8(1); l <= level; l++ {
		id = o.newInner(l, childOf(m.stream, l), id)
	}
	return id
}

// put takes over the reference to a tree that contains the stream of m, and adds m.
func (o *orders) put(id order, m mark) order {
	id = o.unshare(id)
	if id < 0 {
		at := &o.leaves[-id].marks[m.stream&fanMask]
		*at = later(*at, stamp{m.ticket, m.time})
		return id
	}
	level := o.inner[id].level
	at := childOf(m.stream, level)
	child := o.inner[id].children[at]
	if child == 0 {
		child = o.branch(m, level-1)
	} else {
		child = o.put(child, m)
	}
	o.inner[id].children[at] = child
	return id
}

// merge takes over the reference to a and returns the union of both sets, with the later mark of
// each stream. It skips shared subtrees and subtrees whose marks have all finished.
func (o *orders) merge(a, b order) order {
	switch {
	case a == b || o.allFinished(b):
		return a
	case o.allFinished(a):
		o.drop(a)
		return o.hold(b)
	}
	a = o.unshare(o.grow(a, o.level(b)))
	if o.level(a) > o.level(b) {
		b = o.grow(o.hold(b), o.level(a))
		defer o.drop(b)
	}
	if a < 0 {
		x, y := &o.leaves[-a].marks, &o.leaves[-b].marks
		for i := range x {
			x[i] = later(x[i], y[i])
		}
		return a
	}
	for i := range fan {
		child := o.merge(o.inner[a].children[i], o.inner[b].children[i]) // may reallocate the nodes
		o.inner[a].children[i] = child
	}
	return a
}

// later returns the later of two marks of one stream.
func later(a, b stamp) stamp {
	if a.ticket < b.ticket {
		return b
	}
	return a
}
