package streampool

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// Handle names a chunk.
type Handle = uint32

// None is no chunk.
const None Handle = 0

// State is what a chunk is.
type State uint8

// The states.
const (
	Free    State = iota // may be granted, to its own stream at least
	Live                 // granted
	Pending              // freed, but other streams still use it
	retired              // a row in use for no chunk
)

// row is a chunk. What a free one and a live one need is apart, so that neither can be taken for
// the other.
type row struct {
	addr         device.Addr
	size         device.Size
	prev, next   Handle // neighbours in the region
	group        uint32 // free or pending: whom it belongs to; live: the stream of the request
	mark         markID // free or pending: the mark of the free
	older, newer Handle // free: in the queue of its stream
	at           index.SizeAt
	chain        Handle      // live: the next one of its bucket; retired: the next spare row
	uses         use         // live: the streams that use it besides; pending: how many of those marks are not done
	requested    device.Size // live or pending
	tag          uint64      // likewise
	state        State
}

// table is all chunks. Row 0 is none: the neighbour of whoever has none.
type table struct {
	rows   []row
	spare  Handle
	spares int
}

func newTable() table { return table{rows: []row{{state: retired}}} }

func (t *table) add(a device.Addr, n device.Size) Handle {
	h := t.spare
	if h == None {
		h = Handle(len(t.rows))
		t.rows = append(t.rows, row{})
	} else {
		t.spare = t.rows[h].chain
		t.spares--
	}
	t.rows[h] = row{addr: a, size: n}
	return h
}

func (t *table) retire(h Handle) {
	t.rows[h] = row{state: retired, chain: t.spare}
	t.spare = h
	t.spares++
}

// split cuts a free chunk, in no map, behind n bytes and returns the rest, which belongs to the
// same and shares its mark.
func (p *Pool) split(h Handle, n device.Size) Handle {
	rest := p.add(p.rows[h].addr.Add(n), p.rows[h].size-n)
	w, r := &p.rows[h], &p.rows[rest]
	w.size = n
	r.group, r.mark, r.prev, r.next = w.group, w.mark, h, w.next
	p.marks.hold(r.mark)
	if w.next != None {
		p.rows[w.next].prev = rest
	}
	w.next = rest
	return rest
}

func (t *table) join(left, right Handle) {
	l, r := &t.rows[left], &t.rows[right]
	l.size += r.size
	l.next = r.next
	if r.next != None {
		t.rows[r.next].prev = left
	}
	t.retire(right)
}

func (t *table) enqueue(g *group, h Handle) {
	w := &t.rows[h]
	w.older, w.newer = g.newest, None
	if g.newest != None {
		t.rows[g.newest].newer = h
	} else {
		g.oldest = h
	}
	g.newest = h
}

func (t *table) dequeue(g *group, h Handle) {
	w := &t.rows[h]
	if w.older != None {
		t.rows[w.older].newer = w.newer
	} else {
		g.oldest = w.newer
	}
	if w.newer != None {
		t.rows[w.newer].older = w.older
	} else {
		g.newest = w.older
	}
}
