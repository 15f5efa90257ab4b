package trace

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// Spans holds the recorded addresses of live blocks and finds blocks that overlap. The zero value
// is ready for use. Every call takes O(log live blocks).
type Spans struct{ live index.AddrList[uint64] } // sizes

// Begin adds a block and reports whether it overlaps a live one. Among blocks that overlap each
// other it may miss some.
func (s *Spans) Begin(addr, size uint64) (overlaps bool) {
	p, found := s.live.Search(device.Addr(addr))
	if found {
		return true
	}
	if e, ok := s.live.Below(p); ok && addr-uint64(e.Addr) < e.Value {
		overlaps = true
	}
	if next := s.live.Above(p); s.live.Holds(next) && uint64(s.live.Entry(next).Addr)-addr < size {
		overlaps = true
	}
	s.live.Insert(p, index.AddrEntry[uint64]{Addr: device.Addr(addr), Value: size})
	return overlaps
}

// End removes the block at an address, if there is one.
func (s *Spans) End(addr uint64) {
	if p, found := s.live.Search(device.Addr(addr)); found {
		s.live.Delete(p)
	}
}
