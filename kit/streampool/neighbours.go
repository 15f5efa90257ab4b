package streampool

import "github.com/vramyard/vramyard/device"

// FreeNeighbours returns the free bytes just below and just above a live block that would coalesce
// with it if it were freed on its own stream now: unowned chunks and those of that stream. Both are
// 0 if other streams use the block. It costs O(chunks that would coalesce).
func (p *Pool) FreeNeighbours(h Handle) (below, above device.Size) {
	if p.Awaits(h) {
		return 0, 0
	}
	g := p.rows[h].group
	if !p.Ordered() {
		g = unowned
	}
	joins := func(n Handle) bool {
		w := &p.rows[n]
		return n != None && w.state == Free && (w.group == g || w.group == unowned)
	}
	for n := p.rows[h].prev; joins(n); n = p.rows[n].prev {
		below += p.rows[n].size
	}
	for n := p.rows[h].next; joins(n); n = p.rows[n].next {
		above += p.rows[n].size
	}
	return below, above
}

// Ordered reports whether the source has streams. Without streams a freed chunk is unowned at once.
func (p *Pool) Ordered() bool { return p.streams != nil }

// Awaits reports whether a live block would be pending if it were freed on its own stream. It costs
// O(streams recorded for it).
func (p *Pool) Awaits(h Handle) bool {
	if !p.Ordered() {
		return false
	}
	for i := p.rows[h].uses; i != noUse; i = p.uses.rows[i].next {
		if p.uses.rows[i].group != p.rows[h].group {
			return true
		}
	}
	return false
}
