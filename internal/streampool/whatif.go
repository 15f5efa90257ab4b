package streampool

import "github.com/vramyard/vramyard/device"

// FreeNeighbours returns the free bytes just below and just above a live block that would be one
// chunk with it if it were freed on its own stream now: those that belong to that stream or to nobody. They are 0 if other
// streams use it. It costs a step for each chunk.
func (p *Pool) FreeNeighbours(h Handle) (below, above device.Size) {
	g := p.rows[h].group
	if p.streams == nil {
		g = nobody
	} else {
		for i := p.rows[h].uses; i != noUse; i = p.uses.rows[i].next {
			if p.uses.rows[i].group != g {
				return 0, 0
			}
		}
	}
	joins := func(n Handle) bool {
		w := &p.rows[n]
		return n != None && w.state == Free && (w.group == g || w.group == nobody)
	}
	for n := p.rows[h].prev; joins(n); n = p.rows[n].prev {
		below += p.rows[n].size
	}
	for n := p.rows[h].next; joins(n); n = p.rows[n].next {
		above += p.rows[n].size
	}
	return below, above
}
