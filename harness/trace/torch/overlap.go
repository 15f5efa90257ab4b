package torch

import "github.com/vramyard/vramyard/harness/trace"

// Overlaps returns the number of allocations that overlap a live or pending one at another address,
// and the entry and the address of the first.
func (c *Timeline) Overlaps() (count, entry int, addr uint64) {
	var spans trace.Spans
	at := make([]uint64, len(c.Opening)+len(c.Steps)) // addresses by id
	for id, o := range c.Opening {
		at[id] = o.Addr
		spans.Begin(o.Addr, o.Size)
	}
	ends := c.Endings
	for i, step := range c.Steps {
		switch id := c.IDs[i]; step {
		case Alloc:
			for ; len(ends) > 0 && ends[0].Entry <= i; ends = ends[1:] {
				spans.End(at[ends[0].ID])
			}
			e := c.Device.History.At(i)
			at[id] = e.Addr
			if spans.Begin(e.Addr, e.Size) {
				if count++; count == 1 {
					entry, addr = i, e.Addr
				}
			}
		case Free, Completed:
			spans.End(at[id])
		}
	}
	return count, entry, addr
}
