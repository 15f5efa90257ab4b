package bfc

import "github.com/vramyard/vramyard/device"

// own sets the owner of a chunk that is in no bin.
//
// Precondition: the owner keeps the order of invariant B10.
func (a *Allocator) own(h handle, owner uint8) {
	c := &a.chunks.rows[h]
	c.tag = c.tag.withOwner(owner)
}

// carveUpper cuts the highest aligned place out of a chunk, exactly. The part below keeps the owner
// of the chunk, the gap or the upper end; the part above, lost to alignment, becomes a hole of the
// upper end.
func (a *Allocator) carveUpper(h handle, w demand) handle {
	c := &a.chunks.rows[h]
	if below := device.AlignDown(c.addr.Add(c.size-w.size), w.align).Sub(c.addr); below > 0 {
		rest := a.split(h, below)
		a.shelveRemainder(h, a.chunks.rows[h].prev)
		h = rest
	}
	a.own(h, OwnerUpper)
	if a.chunks.rows[h].size > w.size {
		rest := a.split(h, w.size)
		a.shelveRemainder(rest, a.chunks.rows[rest].next)
	}
	return h
}

// returnToGap gives a free chunk that is in no bin to the gap if it bounds its end of the
// arena: the lower end's last, or the upper end's first. Both ends can use it again then;
// a hole between blocks of one end stays with that end, so that the blocks of the other
// never move because of it.
func (a *Allocator) returnToGap(h handle) {
	c := &a.chunks.rows[h]
	neighbour := c.next
	if c.tag.owner() == OwnerUpper {
		neighbour = c.prev
	}
	if neighbour == none || a.chunks.rows[neighbour].tag.owner() != c.tag.owner() {
		c.tag = c.tag.withOwner(OwnerGap)
	}
}
