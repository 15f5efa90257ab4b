package streampool

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// looks is of how many chunks of a stream a device is asked whether another is queued behind
// them: those freed last often are not, those freed first mostly are, and which of them is
// small enough is a matter of chance.
const looks = 8

// reuse takes a free chunk for n bytes of a stream out of its map, None if none may serve.
func (p *Pool) reuse(n, align device.Size, g uint32) Handle {
	if h := p.own(n, align, g); h != None {
		return h
	}
	if p.Config.FollowEvents && p.timeline != nil {
		if h := p.behind(n, align, g); h != None {
			return h
		}
	}
	if p.Config.ReuseFinished {
		if _, changed, _ := p.finishDone(false); changed {
			if h := p.own(n, align, g); h != None {
				return h
			}
		}
	}
	if p.Config.InsertWaits {
		return p.after(n, align, g)
	}
	return None
}

// own takes the best chunk of a stream or of nobody.
func (p *Pool) own(n, align device.Size, g uint32) Handle {
	return p.take(p.better(p.best(g, n, align), p.best(nobody, n, align)))
}

func (p *Pool) take(h Handle) Handle {
	if h != None {
		p.unshelve(h)
	}
	return h
}

// best returns the smallest chunk of a group that serves and, among equals, the lowest; None if
// there is none.
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

// better returns the smaller of two chunks and, of equals, the lower; the other if one is None.
func (p *Pool) better(a, b Handle) Handle {
	x, y := &p.rows[a], &p.rows[b]
	if a == None || b != None && (y.size < x.size || y.size == x.size && y.addr < x.addr) {
		return b
	}
	return a
}

// behind takes the best chunk of another stream behind whose mark that of g is queued.
func (p *Pool) behind(n, align device.Size, g uint32) Handle {
	s, found := p.groups[g].stream, None
	for i := range p.busy.All {
		if i == g {
			continue
		}
		left := looks
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

// after takes the best chunk of another stream and makes that of g wait for its mark.
func (p *Pool) after(n, align device.Size, g uint32) Handle {
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

// finishDone makes free what is pending on marks that are done, and that of nobody what is free
// behind them; with all, every mark is. It returns the bytes that are no longer pending, whether
// anything changed, and the device's first error.
func (p *Pool) finishDone(all bool) (bytes device.Size, changed bool, first error) {
	over := func(id markID) bool {
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
		for p.groups[g].firstUse != noUse && over(p.uses.rows[p.groups[g].firstUse].mark) {
			bytes += p.used(g)
		}
	}
	changed = bytes > 0
	for g, ok := p.busy.Next(0); ok; g, ok = p.busy.Next(g + 1) {
		for h := p.groups[g].oldest; h != None && over(p.rows[h].mark); h = p.groups[g].oldest {
			p.unshelve(h)
			p.finish(h)
			changed = true
		}
	}
	return bytes, changed, first
}
