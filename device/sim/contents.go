package sim

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// contents holds the words written to a memory.
type contents struct {
	serial uint64                  // sequence number of the memory
	runs   index.AddrList[wordRun] // by offset
}

// newContents makes the contents of new memory, of which nothing has been written.
func (d *Device) newContents(number uint64) {
	slot, _ := d.memories.Find(number)
	if int(slot) == len(d.contents) {
		d.contents = append(d.contents, contents{})
	}
	d.serial++
	d.contents[slot].serial = d.serial
}

// wordRun is a run of equal words in memory: byte o of the memory is byte o%4 of the word. Memory
// outside of all runs has never been written.
type wordRun struct {
	size device.Size
	word uint32
}

// part is memory that is contiguous both by address and physically.
type part struct {
	slot   int32 // slot of the memory
	access device.Access
	offset device.Size // in the memory
	size   device.Size
}

// word returns the word with which the part, at address a, shows the pattern.
func (p part) word(a device.Addr, pattern uint32) uint32 {
	return bits.RotateLeft32(pattern, -8*int((uint64(a)-uint64(p.offset))&3))
}

// Fill implements [device.Contents]. O(runs overwritten + mappings).
func (d *Device) Fill(a device.Addr, n device.Size, pattern uint32) error {
	err := d.accessible(a, n, device.AccessReadWrite)
	if err == nil {
		for at, left := a, n; left > 0; {
			p, _ := d.partAt(at)
			p.size = min(p.size, left)
			d.contents[p.slot].write(p.offset, p.size, p.word(at, pattern))
			at, left = at.Add(p.size), left-p.size
		}
	}
	return d.count(device.CallFill, n, err)
}

// Compare implements [device.Contents]. O(runs up to the first difference + mappings).
func (d *Device) Compare(a device.Addr, n device.Size, pattern uint32) (differs device.Addr, same bool, err error) {
	err = d.accessible(a, n, device.AccessRead)
	same = err == nil
	for left := n; same && left > 0; {
		p, _ := d.partAt(a)
		p.size = min(p.size, left)
		equal := d.contents[p.slot].matching(p.offset, p.size, p.word(a, pattern))
		if a, left = a.Add(equal), left-equal; equal < p.size {
			differs, same = a, false
		}
	}
	return differs, same, d.count(device.CallCompare, n, err)
}

// accessible returns an error if n bytes at a do not permit the access.
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

// partAt returns the memory that begins at address a, and false if a is not backed.
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

// write makes n bytes at an offset a run of a word, merged with adjacent runs of the same word.
func (c *contents) write(offset, n device.Size, word uint32) {
	start, end := device.Addr(offset), device.Addr(offset+n)
	c.cut(end)
	p := c.cut(start)
	for p = c.runs.Above(p); c.runs.Holds(p) && c.runs.Entry(p).Addr < end; {
		p = c.runs.Delete(p)
	}
	if p = c.runs.Above(p); c.runs.Holds(p) {
		if e := c.runs.Entry(p); e.Addr == end && e.Value.word == word {
			end = end.Add(e.Value.size)
			c.runs.Delete(p)
		}
	}
	if below, ok := c.runs.Floor(start); ok {
		if e := c.runs.Entry(below); e.Addr.Add(e.Value.size) == start && e.Value.word == word {
			e.Value.size += end.Sub(start)
			c.runs.Set(below, e)
			return
		}
	}
	p, _ = c.runs.Search(start)
	c.runs.Insert(p, index.AddrEntry[wordRun]{Addr: start, Value: wordRun{end.Sub(start), word}})
}

// cut splits a run that extends across an offset. It returns the position of the run that starts at
// the offset, or where it would be inserted.
func (c *contents) cut(at device.Addr) index.AddrPos {
	if below, ok := c.runs.Floor(at); ok {
		e := c.runs.Entry(below)
		if n := at.Sub(e.Addr); n > 0 && n < e.Value.size {
			upper := wordRun{e.Value.size - n, e.Value.word}
			e.Value.size = n
			c.runs.Set(below, e)
			p, _ := c.runs.Search(at)
			return c.runs.Insert(p, index.AddrEntry[wordRun]{Addr: at, Value: upper})
		}
	}
	p, _ := c.runs.Search(at)
	return p
}

// matching returns how many of n bytes at an offset match a run of the word.
func (c *contents) matching(offset, n device.Size, word uint32) device.Size {
	at, end := device.Addr(offset), device.Addr(offset+n)
	p, ok := c.runs.Floor(at)
	if ok && at.Sub(c.runs.Entry(p).Addr) >= c.runs.Entry(p).Value.size {
		p = c.runs.Next(p) // it ends before the offset
	}
	for at < end {
		edge, value := end, wordRun{}
		written := c.runs.Holds(p)
		if written {
			e := c.runs.Entry(p)
			if written = e.Addr <= at; written {
				edge, value = min(end, e.Addr.Add(e.Value.size)), e.Value
				p = c.runs.Next(p)
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
				b = c.noise(device.Size(at))
			}
			if b != byte(word>>(8*(at&3))) {
				return at.Sub(device.Addr(offset))
			}
		}
	}
	return n
}

// noise returns the byte at an offset of unwritten memory: pseudorandom, so that it matches no
// pattern by chance. It is the generator splitmix64 of Steele, Lea and Flood, "Fast splittable
// pseudorandom number generators", 2014.
func (c *contents) noise(offset device.Size) byte {
	z := (c.serial<<40 + uint64(offset)/8 + 1) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return byte((z ^ z>>31) >> (8 * (offset & 7)))
}
