package torch

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// numbers maps each address in the history to a small number, so that its state can be kept in a
// slice.
type numbers struct {
	entry []uint32      // by entry: number of its address; 0 for entries without a block
	addrs []device.Addr // by number; 0 is unused
	index index.AddrMap
}

// number assigns numbers to the addresses of the history and of the final blocks, and counts the
// program's requests.
func (c *Timeline) number() *numbers {
	h := &c.Device.History
	n := &numbers{entry: make([]uint32, h.Len()), addrs: make([]device.Addr, 1), index: index.NewAddrMap()}
	streams := make([]bool, len(h.Streams))
	for i := range h.Len() {
		e := h.At(i)
		switch e.Action {
		case ActionAlloc, ActionFreeRequested, ActionFreeCompleted:
			n.entry[i] = n.of(e.Addr)
			c.requested = c.requested || e.Action == ActionFreeRequested
		case ActionSegmentAlloc, ActionSegmentFree, ActionSegmentMap, ActionSegmentUnmap:
			c.Traffic = append(c.Traffic, Traffic{Entry: i})
			continue
		case ActionOOM:
		default:
			continue
		}
		c.Report.Requests++
		if !streams[e.Stream] {
			streams[e.Stream] = true
			c.Report.Streams = append(c.Report.Streams, h.Streams[e.Stream])
		}
	}
	for b := range inUse(c.Device.Segments) {
		n.of(b.Addr)
	}
	return n
}

// of returns the number of an address, assigning a new one if necessary.
func (n *numbers) of(addr uint64) uint32 {
	a, at := device.Addr(addr), func(h uint32) device.Addr { return n.addrs[h] }
	if h := n.index.Get(a, at); h != index.NoHandle {
		return h
	}
	h := uint32(len(n.addrs))
	n.addrs = append(n.addrs, a)
	n.index.Put(a, h, at)
	return h
}

func inUse(segments []Segment) func(yield func(*Block, *Segment) bool) {
	return func(yield func(*Block, *Segment) bool) {
		for i := range segments {
			s := &segments[i]
			for j := range s.Blocks {
				if b := &s.Blocks[j]; b.State != Inactive && !yield(b, s) {
					return
				}
			}
		}
	}
}
