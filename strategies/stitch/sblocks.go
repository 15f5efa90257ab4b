package stitch

import (
	"fmt"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// piece is a part of an sBlock: a run of pages of one segment.
type piece struct {
	block uint32 // sBlock
	home  uint32 // segment
	first uint32 // first page in the segment
	count uint32 // number of pages
	next  uint32 // next piece of the sBlock; of an unused row, the next unused row
	above uint32 // previous piece in the list of the segment
	below uint32 // next piece in the list of the segment
}

// attach adds the pages of a pBlock to an sBlock as a piece after piece last, and returns the
// piece.
func (a *Allocator) attach(i, last, h uint32) uint32 {
	p := a.sparePiece
	if p == none {
		p = uint32(len(a.pieces))
		a.pieces = append(a.pieces, piece{})
	} else {
		a.sparePiece = a.pieces[p].next
		a.sparePieces--
	}
	c := &a.chunks[h]
	home := &a.regions[c.region]
	a.pieces[p] = piece{
		block: i, home: c.region, first: uint32(c.addr.Sub(home.addr) >> a.pageShift), count: uint32(c.size >> a.pageShift),
		below: home.pieces,
	}
	if home.pieces != none {
		a.pieces[home.pieces].above = p
	}
	home.pieces = p
	if last == none {
		a.regions[i].pieces = p
	} else {
		a.pieces[last].next = p
	}
	return p
}

// undo unmaps and releases the range of an sBlock that is idle, or that was being made or undone
// when the device refused. If the device refuses to unmap it, the sBlock stays as it is.
func (a *Allocator) undo(i uint32) error {
	r := &a.regions[i]
	if r.mapped > 0 {
		if err := a.vm.Unmap(r.addr, r.mapped); err != nil {
			return err
		}
		r.mapped = 0
	}
	if r.chunk != none {
		a.leave(i)
		a.dropChunk(r.chunk)
		r.chunk = none
		a.sBlocks--
	}
	a.detach(i)
	if err := a.vm.ReleaseRange(r.addr); err != nil {
		return err
	}
	a.dropRegion(i)
	return nil
}

// uncover undoes the sBlocks over the pages from and up to, but not including, to of a segment.
// None of them is live.
func (a *Allocator) uncover(r *region, from, to uint32) error {
	for p := r.pieces; p != none; {
		q := a.pieces[p]
		p = q.below
		if q.first >= to || q.first+q.count <= from {
			continue
		}
		for p != none && a.pieces[p].block == q.block { // undo removes it together with q
			p = a.pieces[p].below
		}
		if err := a.undo(q.block); err != nil {
			return err
		}
	}
	return nil
}

// detach removes all pieces of an sBlock whose memory is unmapped.
func (a *Allocator) detach(i uint32) {
	p := a.regions[i].pieces
	for p != none {
		q := a.pieces[p]
		if q.above != none {
			a.pieces[q.above].below = q.below
		} else {
			a.regions[q.home].pieces = q.below
		}
		if q.below != none {
			a.pieces[q.below].above = q.above
		}
		a.pieces[p] = piece{next: a.sparePiece}
		a.sparePiece = p
		a.sparePieces++
		p = q.next
	}
	a.regions[i].pieces = none
}

// stitch makes an sBlock of n bytes from free pBlocks and returns its chunk. On failure the pBlocks
// are free as before.
//
// Precondition: n bytes of pBlocks are free, and the number of sBlocks is below its limit.
func (a *Allocator) stitch(n device.Size) (uint32, error) {
	got, err := a.vm.ReserveRange(n, a.cfg.ChunkBytes, 0)
	if err != nil {
		return none, err
	}
	i := a.addRegion(got, stitched)
	// The pieces are listed before they are mapped, because memory under a mapped page must not be
	// released.
	a.gather(n)
	last := none
	for _, h := range a.gathered {
		last = a.attach(i, last, h)
	}
	err = a.mapPieces(i, n)
	if err != nil {
		for _, h := range a.gathered {
			a.settle(h)
		}
		_ = a.undo(i) // if the device refuses, it is retried whenever memory is released
		return none, err
	}
	h := a.addChunk(got.Addr, n, i)
	a.regions[i].chunk = h
	a.sBlocks++
	return h, nil
}

// gather takes free pBlocks with a total of n bytes for an sBlock. It takes the largest ones until
// one pBlock can supply the rest, and then the smallest such one. This gives the fewest pieces.
func (a *Allocator) gather(n device.Size) {
	a.gathered = a.gathered[:0]
	m := &a.free[pages]
	for n > 0 {
		at := m.Ceil(n)
		if at == index.NoEntry {
			at = m.Ceil(m.Largest())
		}
		e := m.Entry(at)
		h := a.cut(e.Handle, e.Addr, min(n, e.Size))
		a.chunks[h].state = held
		a.gathered = append(a.gathered, h)
		n -= a.chunks[h].size
	}
}

// mapPieces maps the memory of the pieces of an sBlock into its range of n bytes, one after the
// other.
func (a *Allocator) mapPieces(i uint32, n device.Size) error {
	r, page := &a.regions[i], a.cfg.ChunkBytes
	for p := r.pieces; p != none; p = a.pieces[p].next {
		q := &a.pieces[p]
		handles := a.regions[q.home].handles[q.first:]
		for j := range q.count {
			if err := a.vm.Map(r.addr.Add(r.mapped), page, handles[j], 0); err != nil {
				return err
			}
			r.mapped += page
		}
	}
	return a.vm.SetAccess(r.addr, n, device.AccessReadWrite)
}

// match takes an idle sBlock of n bytes whose memory is free, with that memory, and returns its
// chunk, or none. A candidate with memory in use waits for one of the pBlocks that block it, and is
// not visited again before that pBlock is freed.
func (a *Allocator) match(n device.Size) uint32 {
	for {
		at := a.idle.Ceil(n)
		if at == index.NoEntry || a.idle.Entry(at).Size != n {
			return none
		}
		i := a.idle.Entry(at).Handle
		if t := a.blockerOf(i); t != none {
			a.idle.Take(at)
			// It returns when that pBlock is freed. Another pBlock may block it then.
			r := &a.regions[i]
			r.waitsFor, r.waiting = t, a.chunks[t].note
			a.chunks[t].note = i
			continue
		}
		a.leave(i)
		for p := a.regions[i].pieces; p != none; p = a.pieces[p].next {
			q := a.pieces[p]
			home := &a.regions[q.home]
			at, size := home.addr.Add(device.Size(q.first)<<a.pageShift), device.Size(q.count)<<a.pageShift
			a.chunks[a.cut(home.owner[q.first], at, size)].state = held
		}
		return a.regions[i].chunk
	}
}

// blockerOf returns a pBlock in use that has pages of an sBlock, or none.
func (a *Allocator) blockerOf(i uint32) uint32 {
	for p := a.regions[i].pieces; p != none; p = a.pieces[p].next {
		q := &a.pieces[p]
		home := &a.regions[q.home]
		for page := q.first; page < q.first+q.count; {
			c := &a.chunks[home.owner[page]]
			if c.state != free {
				return home.owner[page]
			}
			page = uint32(c.end().Sub(home.addr) >> a.pageShift)
		}
	}
	return none
}

// makeIdle makes a live sBlock idle and frees its memory.
func (a *Allocator) makeIdle(i uint32) {
	for p := a.regions[i].pieces; p != none; p = a.pieces[p].next {
		q := &a.pieces[p]
		a.settle(a.regions[q.home].owner[q.first])
	}
	r := &a.regions[i]
	c := &a.chunks[r.chunk]
	c.state = idle
	c.note = a.idle.Insert(c.size, c.addr, i)
	r.older, r.newer = a.newest, none
	if a.newest != none {
		a.regions[a.newest].newer = i
	} else {
		a.oldest = i
	}
	a.newest = i
}

// leave removes an idle sBlock from the list of idle sBlocks, and from the map or the list in which
// it waits.
func (a *Allocator) leave(i uint32) {
	r := &a.regions[i]
	if r.older != none {
		a.regions[r.older].newer = r.newer
	} else {
		a.oldest = r.newer
	}
	if r.newer != none {
		a.regions[r.newer].older = r.older
	} else {
		a.newest = r.older
	}
	r.older, r.newer = none, none
	if r.waitsFor == none {
		a.idle.Take(a.chunks[r.chunk].note)
		a.chunks[r.chunk].note = none
		return
	}
	// A linear search: few sBlocks wait for the same pBlock, and only an sBlock that is undone
	// leaves this list.
	link := &a.chunks[r.waitsFor].note
	for *link != i {
		if *link == none {
			panic(fmt.Sprintf("stitch: invariant G6 (waiting sBlocks are listed): region %d waits but is in no list", i))
		}
		link = &a.regions[*link].waiting
	}
	*link = r.waiting
	r.waitsFor, r.waiting = none, none
}

// wake returns the sBlocks that wait for a pBlock to the map of idle sBlocks. Another pBlock may
// still block them; match checks that.
func (a *Allocator) wake(h uint32) {
	i := a.chunks[h].note
	a.chunks[h].note = none
	for i != none {
		r := &a.regions[i]
		next := r.waiting
		r.waitsFor, r.waiting = none, none
		c := &a.chunks[r.chunk]
		c.note = a.idle.Insert(c.size, c.addr, i)
		i = next
	}
}

// makeRoom undoes the sBlocks that have been idle longest until there is room for one more, and
// reports whether there is. The paper calls it StitchFree.
func (a *Allocator) makeRoom() bool {
	for a.sBlocks >= a.cfg.MostSBlocks {
		if a.oldest == none || a.undo(a.oldest) != nil && a.sBlocks >= a.cfg.MostSBlocks {
			return false
		}
	}
	return true
}
