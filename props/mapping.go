package props

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

// The predicates of this file check address ranges and their mappings. The
// ranges of a device and its mappings come sorted by address; a range is a region of the walk.

func inRange(ranges []device.Region, a device.Addr) bool {
	i, found := slices.BinarySearchFunc(ranges, a, func(r device.Region, a device.Addr) int {
		return cmp.Compare(r.Addr, a)
	})
	return found || i > 0 && ranges[i-1].Contains(a)
}

// mappedBy returns the mappings from the first that has a byte at a or above.
func mappedBy(maps []sim.Mapping, a device.Addr) []sim.Mapping {
	i, _ := slices.BinarySearchFunc(maps, a, func(m sim.Mapping, a device.Addr) int {
		if m.Addr.Add(m.Size) <= a {
			return -1
		}
		return 1
	})
	return maps[i:]
}

// Mapped checks invariant I47: in a range, an unmapped chunk has no memory, and every byte of any
// other chunk has readable and writable memory; slack is excused from the access. A region has no
// unmapped chunk.
func Mapped(walk []alloc.Chunk, ranges []device.Region, maps []sim.Mapping) error {
	for _, c := range walk {
		ranged := inRange(ranges, c.Region)
		if !ranged && (c.State == alloc.Unmapped || c.State == alloc.Aliased) {
			return violated(IMapping, "%v chunk %v lies in a region, which has memory of its own", c.State, c.Addr)
		}
		if !ranged {
			continue
		}
		at := c.Addr // all below has memory
		for _, m := range mappedBy(maps, c.Addr) {
			if m.Addr >= c.End() || c.State != alloc.Unmapped && m.Addr > at {
				break
			}
			switch {
			case c.State == alloc.Unmapped:
				return violated(IMapping, "unmapped chunk %v of %d bytes: memory is mapped at %v", c.Addr, uint64(c.Size), m.Addr)
			case m.Access != device.AccessReadWrite && c.State != alloc.Slack:
				return violated(IMapping, "%v chunk %v of %d bytes: the access at %v is %v", c.State, c.Addr, uint64(c.Size),
					m.Addr, m.Access)
			}
			at = m.Addr.Add(m.Size)
		}
		if c.State != alloc.Unmapped && at < c.End() {
			return violated(IMapping, "%v chunk %v of %d bytes: no memory is mapped at %v", c.State, c.Addr, uint64(c.Size), at)
		}
	}
	return nil
}

// backing is a piece of physical memory and the chunk that it is mapped under.
type backing struct {
	handle   device.Handle
	from, to device.Size // of the handle
	chunk    alloc.Chunk
}

// Aliases checks invariant I48 of a walk that keeps I47: no byte of memory is mapped under two
// chunks that count it, and each byte under an aliased chunk is mapped under a chunk that counts
// it. Its cost is O(n log n) with n chunks and mappings of ranges.
func Aliases(walk []alloc.Chunk, ranges []device.Region, maps []sim.Mapping) error {
	var counted, aliased []backing
	for _, c := range walk {
		if c.State == alloc.Unmapped || !inRange(ranges, c.Region) {
			continue
		}
		for _, m := range mappedBy(maps, c.Addr) {
			if m.Addr >= c.End() {
				break
			}
			from, to := max(m.Addr, c.Addr), min(m.Addr.Add(m.Size), c.End())
			b := backing{handle: m.Handle, from: m.Offset + from.Sub(m.Addr), to: m.Offset + to.Sub(m.Addr), chunk: c}
			if c.State == alloc.Aliased {
				aliased = append(aliased, b)
			} else {
				counted = append(counted, b)
			}
		}
	}
	byMemory := func(a, b backing) int { return cmp.Or(cmp.Compare(a.handle, b.handle), cmp.Compare(a.from, b.from)) }
	slices.SortFunc(counted, byMemory)
	for i := 1; i < len(counted); i++ {
		if a, b := counted[i-1], counted[i]; a.handle == b.handle && a.to > b.from {
			return violated(IAlias, "%v chunk %v and %v chunk %v share memory: handle %#x from %d to %d",
				a.chunk.State, a.chunk.Addr, b.chunk.State, b.chunk.Addr, uint64(a.handle), uint64(b.from), uint64(min(a.to, b.to)))
		}
	}
	for _, a := range aliased {
		i, found := slices.BinarySearchFunc(counted, a, byMemory)
		if !found && i > 0 {
			i--
		}
		at := a.from
		for ; i < len(counted) && at < a.to && counted[i].handle <= a.handle && counted[i].from <= at; i++ {
			if counted[i].handle == a.handle {
				at = max(at, counted[i].to)
			}
		}
		if at < a.to {
			return violated(IAlias, "the memory of aliased chunk %v, handle %#x from %d to %d, is counted nowhere",
				a.chunk.Addr, uint64(a.handle), uint64(at), uint64(a.to))
		}
	}
	return nil
}
