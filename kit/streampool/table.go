package streampool

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// Handle is the index of a chunk.
type Handle = uint32

// None is no chunk.
const None Handle = 0

// State is the state of a chunk.
type State uint8

// The states.
const (
	Free    State = iota // may be granted, at least to the stream that owns it
	Live                 // granted
	Pending              // freed, but other streams still use it
	retired              // spare row
)

// row is the record of a chunk. Free and live chunks use different fields, so that a mistaken state
// cannot corrupt links.
type row struct {
	addr         device.Addr
	size         device.Size
	prev, next   Handle // neighbours in the region
	group        uint32 // free: owner; pending: stream of the free; live: stream of the request
	mark         markID // free or pending: mark of the free
	older, newer Handle // free: links in the queue of its stream
	at           index.SizeAt
	chain        Handle      // live: next chunk of its bucket; retired: next spare row
	uses         use         // live: list of other streams that use it; pending: number of marks not yet done
	requested    device.Size // live or pending
	tag          uint64      // live or pending
	state        State
}

// table holds the chunks. Row 0 is the sentinel None.
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

// split splits a free chunk, which is in no map, after n bytes and returns the remainder, which has
// the same owner and mark.
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
