package sim

// mark is a place in a stream: what was queued there up to the ticket.
type mark struct {
	stream int32  // index of the stream; -1 is no place, as of an event that was never recorded
	ticket uint64 // of the last thing before the mark; the first one of a stream has ticket 1
	time   uint64 // nanoseconds: when that will have finished
}

// orders keeps for places in streams which marks of other streams they come after, directly or
// through others: a sorted list each, of the last such mark per stream. A list never changes
// while two hold it, so recording an event takes no copy of its stream's list.
type orders struct {
	lists []order
	free  []int32 // lists that nobody holds
	merge []mark  // scratch
}

// order is one list. List 0 is empty and nobody counts who holds it.
type order struct {
	holders int32
	marks   []mark // by stream
}

// newOrders returns no list but the empty one.
func newOrders() orders { return orders{lists: make([]order, 1)} }

// hold returns list l for one holder more.
func (o *orders) hold(l int32) int32 {
	if l != 0 {
		o.lists[l].holders++
	}
	return l
}

// drop is hold taken back.
func (o *orders) drop(l int32) {
	if l == 0 {
		return
	}
	r := &o.lists[l]
	if r.holders--; r.holders == 0 {
		r.marks = r.marks[:0]
		o.free = append(o.free, l)
	}
}

// list returns the marks of list l.
func (o *orders) list(l int32) []mark { return o.lists[l].marks }

// follows reports whether what has list l comes after the mark. O(log marks).
func (o *orders) follows(l int32, m mark) bool {
	marks := o.list(l)
	i, j := 0, len(marks)
	for i < j {
		if mid := (i + j) / 2; marks[mid].stream < m.stream {
			i = mid + 1
		} else {
			j = mid
		}
	}
	return i < len(marks) && marks[i].stream == m.stream && marks[i].ticket >= m.ticket
}

// join takes the hold on list l, of stream s, and returns a list that comes after m and what
// comes before m, list before, besides. Marks that over says are done are left out. O(marks).
func (o *orders) join(l int32, s int32, m mark, before int32, over func(mark) bool) int32 {
	into := o.merge[:0]
	keep := func(m mark) {
		if m.stream == s || over(m) {
			return
		}
		if n := len(into); n > 0 && into[n-1].stream == m.stream {
			into[n-1] = later(into[n-1], m)
			return
		}
		into = append(into, m)
	}
	x, y := o.list(l), o.list(before)
	for own := false; len(x) > 0 || len(y) > 0 || !own; {
		switch { // the smallest stream of three lists, of which that of m alone is the third
		case !own && (len(x) == 0 || m.stream <= x[0].stream) && (len(y) == 0 || m.stream <= y[0].stream):
			keep(m)
			own = true
		case len(y) == 0 || len(x) > 0 && x[0].stream <= y[0].stream:
			keep(x[0])
			x = x[1:]
		default:
			keep(y[0])
			y = y[1:]
		}
	}
	o.merge = into
	if len(into) == 0 {
		o.drop(l)
		return 0
	}
	if l == 0 || o.lists[l].holders > 1 {
		o.drop(l)
		l = o.empty()
	}
	o.lists[l].marks = append(o.lists[l].marks[:0], into...)
	return l
}

// empty returns a list for one holder.
func (o *orders) empty() (l int32) {
	if last := len(o.free) - 1; last >= 0 {
		l, o.free = o.free[last], o.free[:last]
	} else {
		l = int32(len(o.lists))
		o.lists = append(o.lists, order{})
	}
	o.lists[l].holders = 1
	return l
}

// later returns the later of two marks of one stream.
func later(a, b mark) mark {
	if a.ticket < b.ticket {
		return b
	}
	return a
}
