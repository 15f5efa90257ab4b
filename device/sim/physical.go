package sim

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// memory is physical memory: of a handle, or of a region where more than its size is known.
type memory struct {
	size   device.Size
	maps   int32                 // mappings of it
	named  bool                  // it is of a handle that is not released
	pieces int32                 // the first of its pieces, if it is placed
	serial uint64                // which memory it is of all there were, if contents are kept
	runs   index.AddrList[stuff] // its contents, by offset
}

// Space tells how a space is cut up. Sizes are bytes.
type Space struct {
	Used        device.Size // taken
	Free        device.Size // not taken
	LargestFree device.Size // largest piece of what is free
	Pieces      int         // pieces that what is free lies in
}

// add counts a free piece.
func (s *Space) add(n device.Size) {
	if n > 0 {
		s.Free += n
		s.LargestFree = max(s.LargestFree, n)
		s.Pieces++
	}
}

// Physical returns how physical memory is cut up: of the whole capacity, or of what was ever
// used where there is no bound. It is zero if Config.Memory is [Counted]. O(free pieces).
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

// hold books memory in: held bytes of which so many are charged.
func (d *Device) hold(held, charged device.Size) {
	u := &d.usage
	u.Charged += charged
	u.Held += held
	u.PeakCharged = max(u.PeakCharged, u.Charged)
	u.PeakHeld = max(u.PeakHeld, u.Held)
}

// letGo books memory out.
func (d *Device) letGo(held, charged device.Size) {
	d.usage.Charged -= charged
	d.usage.Held -= held
}

// newMemory makes physical memory that takes charged bytes of the device. It returns false if
// there are as many as numbers can tell apart.
func (d *Device) newMemory(size, charged device.Size) (number uint64, m *memory, ok bool) {
	if number, m, ok = d.memories.Add(); !ok {
		return 0, nil, false
	}
	d.serial++
	m.size, m.maps, m.serial = size, 0, d.serial
	if d.frames != nil {
		m.pieces = d.frames.take(charged)
	}
	return number, m, true
}

func (d *Device) dropMemory(slot int32) {
	m := d.memories.At(slot)
	if d.frames != nil {
		d.frames.give(m.pieces)
	}
	m.runs.Clear()
	d.memories.Remove(slot)
}

// ownMemory makes the memory of a region. It returns false if there is as much as numbers can
// tell apart.
func (d *Device) ownMemory(r device.Region) bool {
	number, _, ok := d.newMemory(r.Size, device.AlignUp(r.Size, d.cfg.Charge))
	if ok {
		slot, _ := d.memories.Find(number)
		p, _ := d.owners.Search(r.Addr)
		d.owners.Insert(p, index.AddrEntry[int32]{Addr: r.Addr, Value: slot})
	}
	return ok
}

// disownMemory gives the memory of the region at a back.
func (d *Device) disownMemory(a device.Addr) {
	p, _ := d.owners.Search(a)
	d.dropMemory(d.owners.Entry(p).Value)
	d.owners.Delete(p)
}

// frames is the physical memory of a device, in pages. What is asked for gets the lowest free
// pages, so it may lie in several pieces.
//
// Invariant: free pieces do not touch each other, nor top.
type frames struct {
	page    device.Size
	used    device.Size
	free    index.AddrList[device.Size] // sizes of the free pieces below top
	top     device.Addr                 // above it everything is free
	highest device.Addr                 // top was never higher
	pieces  []piece                     // the first is none
	spare   int32                       // a list of pieces that are not used
}

// piece is a part of some memory. Pieces of one memory are a list, by offset.
type piece struct {
	at   device.Addr
	size device.Size
	next int32
}

// newFrames returns memory whose page is the smallest unit that anything is charged by.
func newFrames(c Config) *frames {
	return &frames{page: min(c.Charge, c.Granularity), pieces: make([]piece, 1)}
}

// take takes the lowest n bytes that are free and returns the first piece of them. It costs
// O(pieces).
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

// give gives back a list of pieces.
func (f *frames) give(first int32) {
	for i := first; i != 0; {
		p := &f.pieces[i]
		f.giveBack(p.at, p.size)
		p.next, f.spare, i = f.spare, i, p.next
	}
}

// giveBack makes a piece free, one with the free pieces that it touches.
func (f *frames) giveBack(at device.Addr, n device.Size) {
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
