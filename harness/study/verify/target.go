package verify

import (
	"encoding/json"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Seedable is a strategy that can begin with memory it did not ask for.
type Seedable interface {
	alloc.Strategy

	// ReleaseSegment gives the segment that starts at the address back to the device.
	//
	// Errors: one if none starts there or a block in it is live; that of the device.
	ReleaseSegment(at device.Addr) error
}

// Target is the strategy that is to predict, and what of its settings shows in a recorded heap.
type Target struct {
	Strategy string          // name
	Config   json.RawMessage // configuration

	// Open builds the strategy with chunks as Walk would show them: live and free ones, by address.
	// Their regions are held from the source already.
	Open func(src device.Source, opening []alloc.Chunk) (Seedable, error)

	// Round returns the bytes of a block that so many were asked for; nil rounds up to 512.
	Round func(device.Size) device.Size

	// Segment returns the bytes of the segment that is taken for a block of so many; nil is not known.
	Segment func(device.Size) device.Size

	// Unsplit is the size from which on a block takes its segment whole; 0 is none.
	Unsplit device.Size
}

func (t *Target) round(n device.Size) device.Size {
	if t.Round != nil {
		return t.Round(n)
	}
	return max(minBlock, (n+minBlock-1)/minBlock*minBlock)
}

// keeps reports whether a block of n bytes keeps a rest behind it, in a segment.
func (t *Target) keeps(s segment, n, rest device.Size) bool {
	switch {
	case s.small || s.grows:
		return rest < minBlock
	case t.Unsplit != 0 && n >= t.Unsplit:
		return true
	}
	return rest <= mostRest
}

// extent returns the bytes of a block in a segment that has room for so many up to the next one.
func (t *Target) extent(s segment, b block, room device.Size) device.Size {
	if b.size != 0 {
		return min(b.size, room)
	}
	n := min(t.round(b.requested), room)
	if t.keeps(s, n, room-n) {
		return room
	}
	return n
}
