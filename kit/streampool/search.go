package streampool

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// mostQueries bounds the chunks of a stream for which a search queries the device's timeline.
// Chunks freed long ago are mostly safe and recent ones often are not, but a search goes by size.
const mostQueries = 8

// reuse takes a free chunk of at least n bytes for a stream out of its map. It returns None if no
// chunk is usable.
func (p *Pool) reuse(n, align device.Size, g uint32) Handle {
	if h := p.reuseOwn(n, align, g); h != None {
		return h
	}
	if p.Config.FollowEvents && p.timeline != nil {
		if h := p.reuseOrdered(n, align, g); h != None {
			return h
		}
	}
	if p.Config.ReuseFinished {
		if _, changed, _ := p.retireDone(false); changed {
			if h := p.reuseOwn(n, align, g); h != None {
				return h
			}
		}
	}
	if p.Config.InsertWaits {
		return p.reuseAfterWait(n, align, g)
	}
	return None
}

// reuseOwn takes the best fitting chunk that is unowned or of the stream.
func (p *Pool) reuseOwn(n, align device.Size, g uint32) Handle {
	return p.take(p.better(p.best(g, n, align), p.best(unowned, n, align)))
}

func (p *Pool) take(h Handle) Handle {
	if h != None {
		p.removeFree(h)
	}
	return h
}

// best returns the smallest fitting chunk of a group, the lowest of equals, or None.
func (p *Pool) best(g uint32, n, align device.Size) Handle {
	m := &p.groups[g].free
	if align <= Quantum {
		return p.handle(m, m.Ceil(n))
	}
	return p.handle(m, m.First(n, func(h uint32) bool { return p.serves(h, n, align) }))
}

func (p *Pool) handle(m *index.SizeMap, at index.SizeAt) Handle {
	if at == index.NoEntry {
		return None
	}
	return m.Entry(at).Handle
}

func (p *Pool) serves(h Handle, n, align device.Size) bool {
	w := &p.rows[h]
	return w.size >= n && padOf(w.addr, align) <= w.size-n
}

// better returns the smaller of two chunks, the lower of equals. Either may be None.
func (p *Pool) better(a, b Handle) Handle {
	x, y := &p.rows[a], &p.rows[b]
	if a == None || b != None && (y.size < x.size || y.size == x.size && y.addr < x.addr) {
		return b
	}
	return a
}

// reuseOrdered takes the best chunk of another stream whose mark precedes new work of g.
func (p *Pool) reuseOrdered(n, align device.Size, g uint32) Handle {
	s, found := p.groups[g].stream, None
	for i := range p.busy.All {
		if i == g {
			continue
		}
		left := mostQueries
		m := &p.groups[i].free
		at := m.First(n, func(h uint32) bool {
			left--
			return left < 0 || p.serves(h, n, align) && p.ordered(p.rows[h].mark, s)
		})
		if left >= 0 {
			found = p.better(found, p.handle(m, at))
		}
	}
	return p.take(found)
}

// reuseAfterWait takes the best chunk of another stream and makes the stream of g wait for its
// mark.
func (p *Pool) reuseAfterWait(n, align device.Size, g uint32) Handle {
	found := None
	for i := range p.busy.All {
		if i != g {
			found = p.better(found, p.best(i, n, align))
		}
	}
	if found == None || !p.wait(p.rows[found].mark, p.groups[g].stream) {
		return None
	}
	return p.take(found)
}

// retireDone frees the pending chunks whose marks are done, and makes the free chunks with done
// marks unowned. With all, every mark counts as done. It returns the bytes that are no longer
// pending, whether anything changed, and the device's first error.
func (p *Pool) retireDone(all bool) (bytes device.Size, changed bool, first error) {
	finished := func(id markID) bool {
		if all {
			return true
		}
		done, err := p.passed(id)
		if first == nil {
			first = err
		}
		return done
	}
	for g, ok := p.busy.Next(0); ok; g, ok = p.busy.Next(g + 1) {
		for p.groups[g].firstUse != noUse && finished(p.uses.rows[p.groups[g].firstUse].mark) {
			bytes += p.retireUse(g)
		}
	}
	changed = bytes > 0
	for g, ok := p.busy.Next(0); ok; g, ok = p.busy.Next(g + 1) {
		for h := p.groups[g].oldest; h != None && finished(p.rows[h].mark); h = p.groups[g].oldest {
			p.removeFree(h)
			p.freeUnowned(h)
			changed = true
		}
	}
	return bytes, changed, first
}
