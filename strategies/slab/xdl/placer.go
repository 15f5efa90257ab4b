package xdl

import (
	"math/bits"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// FreeNeighbours implements [power.Neighbours]: the free units around the block in its chunk of 64.
// O(1).
func (a *Allocator) FreeNeighbours(p device.Addr) (below, above device.Size) {
	if b, ok := a.live.Get(p); ok {
		c, unit := &a.all[b.Place/chunkUnits], int(b.Place%chunkUnits)
		end := unit + c.units(unit)
		below = device.Size(bits.LeadingZeros64(^(c.free << (chunkUnits - unit)))) * a.cfg.UnitBytes
		above = device.Size(bits.TrailingZeros64(^(c.free >> end))) * a.cfg.UnitBytes
	}
	return below, above
}

// CanPlace implements [power.Placer]. Which segment serves the next request is known. O(addresses).
func (a *Allocator) CanPlace(r alloc.Request, freed []device.Addr) bool {
	if !a.front.Accepts(&r) {
		return false
	}
	n, g := a.unitsFor(r.Size), int(uint64(a.counter)%uint64(len(a.lines)))
	if a.search(g, n) != none || int(a.lines[g]) < len(a.bases) {
		return true
	}
	words := map[int32]uint64{} // free units of the chunks in which some are freed
	for _, p := range freed {
		b, ok := a.live.Get(p)
		i, unit := int32(b.Place/chunkUnits), int(b.Place%chunkUnits)
		if !ok || a.all[i].segment != int32(g) {
			continue
		}
		words[i] |= a.all[i].free | mask(unit, a.all[i].units(unit))
		if int(class(words[i])) >= n {
			return true
		}
	}
	return false
}
