package cells

import (
	"cmp"
	"fmt"

	"github.com/vramyard/vramyard/device"
)

// The magazine layer of Bonwick and Adams. A magazine is a stack of free slots that their slabs
// count as used: chunks in state alloc.Cached. Each class has a depot of full magazines, and in
// each segment a loaded and a previous magazine, so calls that alternate at the boundary of a
// magazine do not exchange magazines each time.

// defaultInterval is the number of calls after which a depot returns the magazines that it did not
// need.
const defaultInterval = 4096

// magazines is the magazine layer of [Engine].
type magazines struct {
	rounds  int32 // slots in a magazine; 0 for no magazines
	limit   int32 // full magazines in a depot
	every   int32 // calls in an interval
	left    int32 // calls left of the current interval
	classes int   // depots, unless each segment has its own
	own     bool  // each segment has depots of its own

	racks  []rack      // of every stock
	depots []depot     // of every class, or every stock
	cells  []cell      // of every magazine in turn
	next   []int32     // of every magazine, the next in its depot or among the spare ones
	spare  int32       // list of unused magazines; none
	bytes  device.Size // in all magazines
}

// rack holds the magazines in use by one class in one segment.
type rack struct {
	loaded, before int32 // magazines; none
	has            int32 // slots in the loaded one
	full           bool  // the previous magazine is full; otherwise it is empty
}

// depot holds the full magazines of one class.
type depot struct {
	head  int32 // most recently added; none
	count int32
	least int32 // least of count in this interval
}

func (m *magazines) init(c Config, stocks, classes int) {
	m.rounds, m.limit, m.every, m.classes = int32(c.Rounds), int32(c.Depot),
		int32(cmp.Or(c.Interval, defaultInterval)), classes
	m.spare, m.left = None, m.every
	if m.rounds == 0 {
		return
	}
	// Without stealing, slots freed in one segment must not reach another through a depot.
	m.own = c.Segments > 1 && !c.Steal
	m.racks = make([]rack, stocks)
	for i := range m.racks {
		m.racks[i] = rack{loaded: None, before: None}
	}
	n := classes
	if m.own {
		n = stocks
	}
	m.depots = make([]depot, n)
	for i := range m.depots {
		m.depots[i].head = None
	}
}

// depot returns the depot that serves a rack.
func (m *magazines) depot(rack int) *depot {
	if !m.own {
		rack %= m.classes
	}
	return &m.depots[rack]
}

// take returns an empty magazine.
func (m *magazines) take() int32 {
	if n := m.spare; n != None {
		m.spare = m.next[n]
		return n
	}
	n := int32(len(m.next))
	m.next = append(m.next, None)
	for range m.rounds {
		m.cells = append(m.cells, cell{})
	}
	return n
}

// give returns an empty magazine to the list of unused magazines, which all classes share.
func (m *magazines) give(n int32) {
	m.next[n] = m.spare
	m.spare = n
}

// pop takes a slot from the magazines of a segment, if there is one.
func (a *Engine) pop(class, segment int) (cell, bool) {
	m := &a.cached
	a.tick()
	at := segment*len(a.kinds) + class
	r := &m.racks[at]
	if r.has == 0 {
		switch d := m.depot(at); {
		case r.full:
			r.loaded, r.before, r.full = r.before, r.loaded, false
		case d.count > 0:
			if r.before != None {
				m.give(r.before)
			}
			r.before, r.loaded = r.loaded, d.head
			d.head = m.next[d.head]
			d.count--
			d.least = min(d.least, d.count)
		default:
			return cell{}, false
		}
		r.has = m.rounds
	}
	r.has--
	m.bytes -= a.kinds[class].slot
	return m.cells[r.loaded*m.rounds+r.has], true
}

// push puts a slot into the magazines of the segment of its slab, if there is room.
func (a *Engine) push(c cell, s *slab, slack *uint16) bool {
	m := &a.cached
	a.tick()
	at := a.stockOf(c.slab, s)
	r := &m.racks[at]
	if r.loaded == None {
		r.loaded = m.take()
	} else if r.has == m.rounds {
		if !m.advance(r, m.depot(at)) {
			return false
		}
	}
	m.cells[r.loaded*m.rounds+r.has] = c
	r.has++
	m.bytes += a.kinds[s.class].slot
	*slack = slackCached
	return true
}

// advance replaces a full loaded magazine by an empty one, and reports whether rack and depot had
// room.
func (m *magazines) advance(r *rack, d *depot) bool {
	free := r.before
	if r.full {
		if d.count >= m.limit {
			return false
		}
		m.next[r.before] = d.head
		d.head = r.before
		d.count++
		free = None
	}
	if free == None {
		free = m.take()
	}
	r.before, r.loaded, r.has, r.full = r.loaded, free, 0, true
	return true
}

func (a *Engine) tick() {
	if a.cached.left--; a.cached.left == 0 {
		a.endInterval()
	}
}

// endInterval ends an interval: each depot empties as many magazines as it had at least during the
// interval. This is the working set rule of Bonwick and Adams, with calls as the clock.
func (a *Engine) endInterval() {
	m := &a.cached
	m.left = m.every
	for i := range m.depots {
		d := &m.depots[i]
		for ; d.least > 0; d.least-- {
			a.unload(d)
		}
		d.least = d.count
	}
}

// unload returns the slots of a full magazine of a depot to their slabs.
func (a *Engine) unload(d *depot) {
	m := &a.cached
	n := d.head
	d.head = m.next[n]
	d.count--
	a.unloadMagazine(n, m.rounds)
	m.give(n)
}

func (a *Engine) unloadMagazine(n, has int32) {
	m := &a.cached
	for _, c := range m.cells[n*m.rounds:][:has] {
		if a.isFree(c) {
			panic(fmt.Sprintf("slab: invariant C7 (a slot in use is live or in a magazine): slot %d of slab %d is free",
				c.slot, c.slab))
		}
		s := &a.slabs[c.slab]
		k := &a.kinds[s.class]
		m.bytes -= k.slot
		a.put(c, s, k)
	}
}

// Drain returns every slot in a magazine to its slab, and reports whether there was one. O(1)
// without such slots, otherwise O(segments * classes + slots).
func (a *Engine) Drain() bool {
	m := &a.cached
	if m.bytes == 0 {
		return false
	}
	for i := range m.depots {
		d := &m.depots[i]
		for d.count > 0 {
			a.unload(d)
		}
		d.least = 0
	}
	for i := range m.racks {
		r := &m.racks[i]
		if r.full {
			a.unloadMagazine(r.before, m.rounds)
			r.full = false
		}
		if r.has > 0 {
			a.unloadMagazine(r.loaded, r.has)
			r.has = 0
		}
	}
	return true
}
