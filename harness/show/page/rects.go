package page

import (
	"cmp"
	"math"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay/follow"
)

// Never is the event number of something that does not happen within the trace.
const Never = math.MaxUint32

// Rect is the life of a block. It exists after events Born to Reclaimed-1.
type Rect struct {
	Addr      device.Addr // first byte
	Size      device.Size // bytes granted
	Requested device.Size // bytes asked for
	ID        uint64      // allocation ID in the trace
	Born      uint32      // event of the request
	Freed     uint32      // event at which the program freed it, or Never
	Reclaimed uint32      // event at which the strategy reclaimed it, or Never
	Tag       uint32      // index in Trace.Tags
	Class     int32       // bin, order or size class; alloc.NoClass if unknown
	Stream    uint16      // index in Trace.Streams, or OtherStream
}

// weight returns the byte-events of the block.
func (r *Rect) weight(events int) float64 {
	return float64(r.Size) * float64(min(int(r.Reclaimed), events)-int(r.Born))
}

// byBirth orders by birth, then by address.
func byBirth(a, b Rect) int {
	return cmp.Or(cmp.Compare(a.Born, b.Born), cmp.Compare(a.Addr, b.Addr))
}

func (r *collector) rectOf(b *follow.Block, dies uint32) Rect {
	freed := uint32(Never)
	if b.Freed != follow.Never {
		freed = uint32(b.Freed)
	}
	n := &r.notes[b.Note]
	return Rect{
		Addr: b.Addr, Size: b.Size, Requested: b.Requested, ID: b.ID,
		Born: uint32(b.Born), Freed: freed, Reclaimed: dies, Tag: n.tag, Class: n.class, Stream: r.trace.streamOf(b.Stream),
	}
}

// note is the collector's data of a block.
type note struct {
	tag     uint32 // index in Trace.Tags
	class   int32
	classed bool // class is set from a walk
}

// ReservedRange is a range of reserved memory. It exists after events Born to Released-1.
type ReservedRange struct {
	Addr     device.Addr // first byte
	Size     device.Size // bytes
	Region   device.Addr // start of its region: regions may touch, and the pages of one may have gaps
	Born     uint32      // event at which it was reserved; 0 includes the construction of the strategy
	Released uint32      // event at which it was released, or Never
	Pool     uint16      // private pool; 0: the default pool
	Stream   uint16      // index in Trace.Streams if all its chunks are of one stream, or OtherStream
}

func (s *ReservedRange) weight(events int) float64 {
	return float64(s.Size) * float64(min(int(s.Released), events)-int(s.Born))
}

// byStart orders by birth, then by address.
func byStart(a, b ReservedRange) int {
	return cmp.Or(cmp.Compare(a.Born, b.Born), cmp.Compare(a.Addr, b.Addr))
}
