package sim

// mark is a place in a stream: what was queued there up to the ticket.
type mark struct {
	stream int32  // index of the stream; -1 is no place, as of an event that was never recorded
	ticket uint64 // of the last thing before the mark; the first one of a stream has ticket 1
	time   uint64 // nanoseconds: when that will have finished
}

// order names a set of marks, at most one for each stream: the last mark of each other stream that
// a place in a stream comes after, directly or through others. 0 is the empty set; a positive
// number is an inner node, a negative one a leaf.
type order int32

const (
	fanLog = 3
	fan    = 1 << fanLog
	inFan  = fan - 1
)

// orders holds sets of marks as radix trees over the indexes of streams. Sets share subtrees, and a
// node that several sets hold is copied before it changes. So a chain of n streams, each of which
// waits for the one before, takes O(n log n) memory, where a list for each takes O(n * n).
type orders struct {
	inner  []innerNode // inner[0] is no node
	leaves []leafNode  // leaves[0] is no node
	free   [2][]order  // inner nodes and leaves that are not in use
}

// innerNode is a node above others.
type innerNode struct {
	kids    [fan]order
	holders int32
	level   uint8 // leaves have level 0
	over    bool  // every mark below it has finished
}

// leafNode is the marks of fan streams with neighbouring indexes.
type leafNode struct {
	marks   [fan]stamp
	holders int32
	over    bool // every mark has finished
}

// stamp is a mark in a leaf, which knows the stream. Ticket 0 is no mark.
type stamp struct{ ticket, time uint64 }

// newOrders returns the empty set alone.
func newOrders() orders { return orders{inner: make([]innerNode, 1), leaves: make([]leafNode, 1)} }

// holders returns the count of holders of a set that is not empty.
func (o *orders) holders(id order) *int32 {
	if id < 0 {
		return &o.leaves[-id].holders
	}
	return &o.inner[id].holders
}

// hold returns a set for one holder more.
func (o *orders) hold(id order) order {
	if id != 0 {
		*o.holders(id)++
	}
	return id
}

// drop is hold taken back.
func (o *orders) drop(id order) {
	if id == 0 {
		return
	}
	n := o.holders(id)
	if *n--; *n > 0 {
		return
	}
	if id < 0 {
		o.free[1] = append(o.free[1], id)
		return
	}
	for _, kid := range o.inner[id].kids {
		o.drop(kid)
	}
	o.free[0] = append(o.free[0], id)
}

func (o *orders) level(id order) uint8 {
	if id <= 0 {
		return 0
	}
	return o.inner[id].level
}

// isOver reports whether all marks of a set are known to have finished.
func (o *orders) isOver(id order) bool {
	if id < 0 {
		return o.leaves[-id].over
	}
	return id == 0 || o.inner[id].over
}

// newInner returns an inner node of a level with one node below it, which it takes the hold on.
func (o *orders) newInner(level uint8, at uint32, kid order) (id order) {
	if last := len(o.free[0]) - 1; last >= 0 {
		id, o.free[0] = o.free[0][last], o.free[0][:last]
	} else {
		id = order(len(o.inner))
		o.inner = append(o.inner, innerNode{})
	}
	o.inner[id] = innerNode{holders: 1, level: level}
	o.inner[id].kids[at&inFan] = kid
	return id
}

// newLeaf returns a leaf without marks, for one holder.
func (o *orders) newLeaf() (id order) {
	if last := len(o.free[1]) - 1; last >= 0 {
		id, o.free[1] = o.free[1][last], o.free[1][:last]
	} else {
		id = -order(len(o.leaves))
		o.leaves = append(o.leaves, leafNode{})
	}
	o.leaves[-id] = leafNode{holders: 1}
	return id
}

// own takes the hold on a node, and returns one with the same content that nobody else holds.
func (o *orders) own(id order) order {
	if *o.holders(id) == 1 {
		if id < 0 {
			o.leaves[-id].over = false
		} else {
			o.inner[id].over = false
		}
		return id
	}
	var own order
	if id < 0 {
		own = o.newLeaf()
		o.leaves[-own].marks = o.leaves[-id].marks
	} else {
		own = o.newInner(o.inner[id].level, 0, 0)
		o.inner[own].kids = o.inner[id].kids
		for _, kid := range o.inner[own].kids {
			o.hold(kid)
		}
	}
	o.drop(id)
	return own
}

// raise takes the hold on a set that is not empty, and returns it with a root of at least a level.
func (o *orders) raise(id order, level uint8) order {
	for o.level(id) < level {
		id = o.newInner(o.level(id)+1, 0, id)
	}
	return id
}

// levelOf returns the level of the smallest tree that has room for a stream.
func levelOf(stream int32) (level uint8) {
	for stream >>= fanLog; stream > 0; stream >>= fanLog {
		level++
	}
	return level
}

// childOf returns where a stream is below a node of a level.
func childOf(stream int32, level uint8) uint32 { return uint32(stream) >> (fanLog * level) & inFan }

// follows reports whether what has the set comes after the mark. O(log streams).
func (o *orders) follows(id order, m mark) bool {
	if o.level(id) < levelOf(m.stream) {
		return false
	}
	for id > 0 {
		id = o.inner[id].kids[childOf(m.stream, o.inner[id].level)]
	}
	return id != 0 && o.leaves[-id].marks[m.stream&inFan].ticket >= m.ticket
}

// join takes the hold on a set and returns one that comes after m as well, and after what comes
// before m. It costs O(log streams), and O(1) for each node in which the sets differ.
func (o *orders) join(id order, m mark, before order) order {
	id = o.merge(id, before)
	level := levelOf(m.stream)
	if id == 0 {
		return o.branch(m, level)
	}
	return o.put(o.raise(id, level), m)
}

// branch returns a tree of a level with one mark.
func (o *orders) branch(m mark, level uint8) order {
	id := o.newLeaf()
	o.leaves[-id].marks[m.stream&inFan] = stamp{m.ticket, m.time}
	for l := uint8(1); l <= level; l++ {
		id = o.newInner(l, childOf(m.stream, l), id)
	}
	return id
}

// put takes the hold on a tree with room for the stream of a mark, and returns it with the mark.
func (o *orders) put(id order, m mark) order {
	id = o.own(id)
	if id < 0 {
		at := &o.leaves[-id].marks[m.stream&inFan]
		*at = later(*at, stamp{m.ticket, m.time})
		return id
	}
	level := o.inner[id].level
	at := childOf(m.stream, level)
	kid := o.inner[id].kids[at]
	if kid == 0 {
		kid = o.branch(m, level-1)
	} else {
		kid = o.put(kid, m)
	}
	o.inner[id].kids[at] = kid
	return id
}

// merge takes the hold on a and returns a set with the later marks of both. Subtrees that they
// share, and those whose marks have all finished, are not looked at.
func (o *orders) merge(a, b order) order {
	switch {
	case a == b || o.isOver(b):
		return a
	case o.isOver(a):
		o.drop(a)
		return o.hold(b)
	}
	a = o.own(o.raise(a, o.level(b)))
	if o.level(a) > o.level(b) {
		b = o.raise(o.hold(b), o.level(a))
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
		kid := o.merge(o.inner[a].kids[i], o.inner[b].kids[i]) // which may move the nodes
		o.inner[a].kids[i] = kid
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
