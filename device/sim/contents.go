package sim

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// stuff is a run of equal words in memory. The byte at offset o of the memory is byte o%4 of
// the word. What no run covers is as it was when the memory was made.
type stuff struct {
	size device.Size
	word uint32
}

// part is memory that lies together both by address and physically.
type part struct {
	slot   int32 // of the memory
	access device.Access
	offset device.Size // in the memory
	size   device.Size
}

// word returns the word of the part, at address a, whose bytes are those of the pattern.
func (p part) word(a device.Addr, pattern uint32) uint32 {
	return bits.RotateLeft32(pattern, -8*int((uint64(a)-uint64(p.offset))&3))
}

// Fill implements [device.Contents]. It costs a step for each run of equal words that it
// writes over and for each mapping.
func (d *Device) Fill(a device.Addr, n device.Size, pattern uint32) error {
	err := d.accessible(a, n, device.AccessReadWrite)
	if err == nil {
		for at, left := a, n; left > 0; {
			p, _ := d.partAt(at)
			p.size = min(p.size, left)
			d.memories.At(p.slot).write(p.offset, p.size, p.word(at, pattern))
			at, left = at.Add(p.size), left-p.size
		}
	}
	return d.book(device.CallFill, n, err)
}

// Compare implements [device.Contents]. It costs a step for each run of equal words until the
// difference and for each mapping.
func (d *Device) Compare(a device.Addr, n device.Size, pattern uint32) (differs device.Addr, same bool, err error) {
	err = d.accessible(a, n, device.AccessRead)
	same = err == nil
	for left := n; same && left > 0; {
		p, _ := d.partAt(a)
		p.size = min(p.size, left)
		alike := d.memories.At(p.slot).alike(p.offset, p.size, p.word(a, pattern))
		if a, left = a.Add(alike), left-alike; alike < p.size {
			differs, same = a, false
		}
	}
	return differs, same, d.book(device.CallCompare, n, err)
}

// accessible reports, as an error, why n bytes at a may not be used so.
func (d *Device) accessible(a device.Addr, n device.Size, access device.Access) (err error) {
	if d.cfg.Memory != Filled {
		return device.ErrUnsupported
	}
	for n > 0 {
		p, ok := d.partAt(a)
		if !ok {
			return device.ErrUnmapped
		}
		if p.access < access {
			err = device.ErrAccess
		}
		p.size = min(p.size, n)
		a, n = a.Add(p.size), n-p.size
	}
	return err
}

// partAt returns the memory from address a on, and false if there is none.
func (d *Device) partAt(a device.Addr) (part, bool) {
	at, ok := d.regions.Floor(a)
	if !ok {
		return part{}, false
	}
	if e := d.regions.Entry(at); !e.Value.isRange() {
		offset := a.Sub(e.Addr)
		if offset >= e.Value.size() {
			return part{}, false
		}
		owner, _ := d.owners.Search(e.Addr)
		return part{
			slot: d.owners.Entry(owner).Value, access: device.AccessReadWrite,
			offset: offset, size: e.Value.size() - offset,
		}, true
	}
	if at, ok = d.mappings.Floor(a); !ok {
		return part{}, false
	}
	e := d.mappings.Entry(at)
	offset := a.Sub(e.Addr)
	if offset >= e.Value.Size {
		return part{}, false
	}
	return part{
		slot: e.Value.Slot, access: e.Value.Access,
		offset: e.Value.Offset + offset, size: e.Value.Size - offset,
	}, true
}

// write makes n bytes at an offset a run of a word, one with the runs of the same word that it
// touches.
func (m *memory) write(offset, n device.Size, word uint32) {
	start, end := device.Addr(offset), device.Addr(offset+n)
	m.cut(end)
	p := m.cut(start)
	for p = m.runs.Above(p); m.runs.Holds(p) && m.runs.Entry(p).Addr < end; {
		p = m.runs.Delete(p)
	}
	if p = m.runs.Above(p); m.runs.Holds(p) {
		if e := m.runs.Entry(p); e.Addr == end && e.Value.word == word {
			end = end.Add(e.Value.size)
			m.runs.Delete(p)
		}
	}
	if below, ok := m.runs.Floor(start); ok {
		if e := m.runs.Entry(below); e.Addr.Add(e.Value.size) == start && e.Value.word == word {
			e.Value.size += end.Sub(start)
			m.runs.Set(below, e)
			return
		}
	}
	p, _ = m.runs.Search(start)
	m.runs.Insert(p, index.AddrEntry[stuff]{Addr: start, Value: stuff{end.Sub(start), word}})
}

// cut makes two runs of the one that has bytes on both sides of an offset, and returns the
// place where a run that starts there is or belongs.
func (m *memory) cut(at device.Addr) index.AddrPos {
	if below, ok := m.runs.Floor(at); ok {
		e := m.runs.Entry(below)
		if n := at.Sub(e.Addr); n > 0 && n < e.Value.size {
			upper := stuff{e.Value.size - n, e.Value.word}
			e.Value.size = n
			m.runs.Set(below, e)
			p, _ := m.runs.Search(at)
			return m.runs.Insert(p, index.AddrEntry[stuff]{Addr: at, Value: upper})
		}
	}
	p, _ := m.runs.Search(at)
	return p
}

// alike returns how many of n bytes at an offset are as in a run of the word.
func (m *memory) alike(offset, n device.Size, word uint32) device.Size {
	at, end := device.Addr(offset), device.Addr(offset+n)
	p, ok := m.runs.Floor(at)
	if ok && at.Sub(m.runs.Entry(p).Addr) >= m.runs.Entry(p).Value.size {
		p = m.runs.Next(p) // it ends below
	}
	for at < end {
		edge, value := end, stuff{}
		written := m.runs.Holds(p)
		if written {
			e := m.runs.Entry(p)
			if written = e.Addr <= at; written {
				edge, value = min(end, e.Addr.Add(e.Value.size)), e.Value
				p = m.runs.Next(p)
			} else {
				edge = min(end, e.Addr)
			}
		}
		if written && value.word == word {
			at = edge
		}
		for ; at < edge; at++ {
			b := byte(value.word >> (8 * (at & 3)))
			if !written {
				b = m.fresh(device.Size(at))
			}
			if b != byte(word>>(8*(at&3))) {
				return at.Sub(device.Addr(offset))
			}
		}
	}
	return n
}

// fresh returns the byte at an offset of memory that nobody has written: a number that hangs
// together with no other, so that no pattern is found there by chance. It is the generator
// splitmix64 of Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
func (m *memory) fresh(offset device.Size) byte {
	z := (m.serial<<40 + uint64(offset)/8 + 1) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return byte((z ^ z>>31) >> (8 * (offset & 7)))
}
