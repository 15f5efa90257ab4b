package stitch

import (
	"fmt"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// piece is a part of an sBlock: successive pages of one segment.
type piece struct {
	block uint32 // sBlock
	home  uint32 // segment
	first uint32 // page of it
	count uint32 // pages
	next  uint32 // next piece of the sBlock; of a row that is not in use, the next such
	above uint32 // others over the same segment, in a list
	below uint32
}

// attach adds the pages of a pBlock as a piece to an sBlock, behind piece last.
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

// undo gives the range of an sBlock back that is idle, or was being made or undone when the device
// refused. As long as memory is mapped in it, it stays what it is.
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

// uncover undoes the sBlocks that lie over some pages of a segment, none of which is live.
func (a *Allocator) uncover(r *region, from, to uint32) error {
	for p := r.pieces; p != none; {
		q := a.pieces[p]
		p = q.below
		if q.first >= to || q.first+q.count <= from {
			continue
		}
		for p != none && a.pieces[p].block == q.block { // it goes with q
			p = a.pieces[p].below
		}
		if err := a.undo(q.block); err != nil {
			return err
		}
	}
	return nil
}

// detach takes all pieces from an sBlock that has no memory mapped any more.
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

// stitch makes an sBlock of n bytes of free pBlocks and returns its chunk. The largest are taken
// until one has what is still missing, of those the smallest: so there are as few pieces as can be.
// On failure the pBlocks are free as before.
//
// Precondition: n bytes of pBlocks are free, and the number of sBlocks is below its limit.
func (a *Allocator) stitch(n device.Size) (uint32, error) {
	got, err := a.vm.ReserveRange(n, a.cfg.ChunkBytes, 0)
	if err != nil {
		return none, err
	}
	i := a.addRegion(got, stitched)
	// The pieces are listed before they are mapped: from the first page on no memory under them may
	// go.
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
		_ = a.undo(i) // if the device refuses, it is tried again whenever memory is given back
		return none, err
	}
	h := a.addChunk(got.Addr, n, i)
	a.regions[i].chunk = h
	a.sBlocks++
	return h, nil
}

// gather takes n bytes of free pBlocks for an sBlock.
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

// mapPieces maps the memory of the pieces of an sBlock into its range of n bytes, one behind the
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

// match returns the chunk of an idle sBlock of n bytes whose memory is wholly free, and takes that
// memory. Candidates with used memory wait until it is free and are not visited before.
func (a *Allocator) match(n device.Size) uint32 {
	for {
		at := a.idle.Ceil(n)
		if at == index.NoEntry || a.idle.Entry(at).Size != n {
			return none
		}
		i := a.idle.Entry(at).Handle
		if t := a.inTheWay(i); t != none {
			a.idle.Take(at)
			// It comes back when that pBlock is freed, and may then find another one in its way.
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

// inTheWay returns a used pBlock with memory of an sBlock, or none.
func (a *Allocator) inTheWay(i uint32) uint32 {
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

// rest makes an sBlock that was live idle, and its memory free.
func (a *Allocator) rest(i uint32) {
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

// leave takes an idle sBlock out of where idle ones are.
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
	// Few wait for the same pBlock, and leaving is rare: only an sBlock that is given up leaves so.
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

// wake lets the sBlocks that wait for a pBlock be found again. Whether they wait for another one is
// not looked at before they are.
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

// makeRoom gives up the sBlocks that are idle for longest until there may be one more, and reports
// whether there may. The paper calls it StitchFree.
func (a *Allocator) makeRoom() bool {
	for a.sBlocks >= a.cfg.MostSBlocks {
		if a.oldest == none || a.undo(a.oldest) != nil && a.sBlocks >= a.cfg.MostSBlocks {
			return false
		}
	}
	return true
}
