package sim

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// memory is physical memory of a handle, or of a region at the levels above [Counted]. It has no
// pointers, so the garbage collector skips the table of all memories.
type memory struct {
	size   device.Size
	maps   int32 // number of its mappings
	pieces int32 // its first piece, if memory is placed
	named  bool  // belongs to a handle that is not released
}

// Space describes the fragmentation of a space. Sizes are bytes.
type Space struct {
	Used        device.Size // in use
	Free        device.Size // free
	LargestFree device.Size // largest free piece
	Pieces      int         // number of free pieces
}

// add counts a free piece.
func (s *Space) add(n device.Size) {
	if n > 0 {
		s.Free += n
		s.LargestFree = max(s.LargestFree, n)
		s.Pieces++
	}
}

// Physical returns the fragmentation of physical memory: of the whole capacity or, without a limit,
// of the memory ever used. It is zero at level [Counted]. O(free pieces).
func (d *Device) Physical() Space {
	f := d.frames
	if f == nil {
		return Space{}
	}
	s := Space{Used: f.used}
	for e := range f.free.All {
		s.add(e.Value)
	}
	end := f.highest
	if d.cfg.Capacity != 0 {
		end = device.Addr(device.AlignDown(d.cfg.Capacity, f.page))
	}
	s.add(end.Sub(f.top))
	return s
}

// hasRoom reports whether the capacity admits another charge.
func (d *Device) hasRoom(charge device.Size) bool {
	if d.cfg.Capacity == 0 || charge <= d.usage.Free() {
		return true
	}
	if need := d.usage.Charged + charge; d.short == 0 || need < d.short {
		d.short = need
	}
	return false
}

// SameFor returns the capacities with which the device would have returned the same answers so far:
// from bytes up to, but not including, below bytes; 0 is unlimited. asked reports that a caller of
// MemoryInfo knows the capacity itself.
func (d *Device) SameFor() (from, below device.Size, asked bool) {
	return d.usage.PeakCharged, d.short, d.asked
}

// charge adds memory to the account: held bytes, of which charged count against the capacity.
func (d *Device) charge(held, charged device.Size) {
	u := &d.usage
	u.Charged += charged
	u.Held += held
	u.PeakCharged = max(u.PeakCharged, u.Charged)
	u.PeakHeld = max(u.PeakHeld, u.Held)
}

// uncharge removes memory from the account.
func (d *Device) uncharge(held, charged device.Size) {
	d.usage.Charged -= charged
	d.usage.Held -= held
}

// newMemory makes physical memory that takes charged bytes of the device. It returns false if there
// are no more numbers.
func (d *Device) newMemory(size, charged device.Size) (number uint64, m *memory, ok bool) {
	if number, m, ok = d.memories.Add(); !ok {
		return 0, nil, false
	}
	m.size, m.maps = size, 0
	if d.frames != nil {
		m.pieces = d.frames.take(charged)
	}
	if d.cfg.Memory == Filled {
		d.newContents(number)
	}
	return number, m, true
}

func (d *Device) dropMemory(slot int32) {
	m := d.memories.At(slot)
	if d.frames != nil {
		d.frames.freeList(m.pieces)
	}
	if d.cfg.Memory == Filled {
		d.contents[slot].runs.Clear()
	}
	d.memories.Remove(slot)
}

// ownMemory makes the memory of a region. It returns false if there are no more numbers.
func (d *Device) ownMemory(r device.Region) bool {
	number, _, ok := d.newMemory(r.Size, device.AlignUp(r.Size, d.cfg.Charge))
	if ok {
		slot, _ := d.memories.Find(number)
		p, _ := d.owners.Search(r.Addr)
		d.owners.Insert(p, index.AddrEntry[int32]{Addr: r.Addr, Value: slot})
	}
	return ok
}

// disownMemory frees the memory of the region at a.
func (d *Device) disownMemory(a device.Addr) {
	p, _ := d.owners.Search(a)
	d.dropMemory(d.owners.Entry(p).Value)
	d.owners.Delete(p)
}

// frames is the physical memory of a device, in pages. An allocation takes the lowest free pages,
// so it may be in several pieces.
//
// Invariant: free pieces are not adjacent to each other or to top.
type frames struct {
	page    device.Size
	used    device.Size
	free    index.AddrList[device.Size] // sizes of the free pieces below top
	top     device.Addr                 // everything above is free
	highest device.Addr                 // maximum of top so far
	pieces  []piece                     // the first is unused
	spare   int32                       // list of unused pieces
}

// piece is a part of some memory. The pieces of a memory are a linked list, by offset.
type piece struct {
	at   device.Addr
	size device.Size
	next int32
}

// newFrames returns free memory. A page is the smallest unit of charges.
func newFrames(c Config) *frames {
	return &frames{page: min(c.Charge, c.Granularity), pieces: make([]piece, 1)}
}

// take takes the lowest n free bytes and returns their first piece. O(pieces).
//
// Precondition: n is a multiple of the page and not zero.
func (f *frames) take(n device.Size) (first int32) {
	f.used += n
	for last := int32(0); n > 0; {
		var at device.Addr
		part := n
		if f.free.Len() > 0 {
			p := f.free.Nth(0)
			e := f.free.Entry(p)
			at, part = e.Addr, min(n, e.Value)
			if part == e.Value {
				f.free.Delete(p)
			} else {
				f.free.Set(p, index.AddrEntry[device.Size]{Addr: at.Add(part), Value: e.Value - part})
			}
		} else {
			at = f.top
			f.top = at.Add(part)
			f.highest = max(f.highest, f.top)
		}
		n -= part
		i := f.newPiece(piece{at: at, size: part})
		if last == 0 {
			first = i
		} else {
			f.pieces[last].next = i
		}
		last = i
	}
	return first
}

// newPiece stores a piece.
func (f *frames) newPiece(p piece) (i int32) {
	if i = f.spare; i != 0 {
		f.spare = f.pieces[i].next
		f.pieces[i] = p
		return i
	}
	f.pieces = append(f.pieces, p)
	return int32(len(f.pieces) - 1)
}

// freeList frees a list of pieces.
func (f *frames) freeList(first int32) {
	for i := first; i != 0; {
		p := &f.pieces[i]
		f.freePiece(p.at, p.size)
		p.next, f.spare, i = f.spare, i, p.next
	}
}

// freePiece frees a piece and coalesces it with adjacent free pieces.
func (f *frames) freePiece(at device.Addr, n device.Size) {
	f.used -= n
	p, _ := f.free.Search(at)
	if above := f.free.Above(p); f.free.Holds(above) {
		if e := f.free.Entry(above); at.Add(n) == e.Addr {
			n += e.Value
			f.free.Delete(above)
		}
	}
	if below, ok := f.free.Floor(at); ok {
		if e := f.free.Entry(below); e.Addr.Add(e.Value) == at {
			at, n = e.Addr, n+e.Value
			f.free.Delete(below)
		}
	}
	if at.Add(n) == f.top {
		f.top = at
		return
	}
	p, _ = f.free.Search(at)
	f.free.Insert(p, index.AddrEntry[device.Size]{Addr: at, Value: n})
}
