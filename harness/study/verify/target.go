package verify

import (
	"encoding/json"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Seedable is a strategy that can start with existing memory.
type Seedable interface {
	alloc.Strategy

	// ReleaseSegment returns the segment that starts at an address to the device.
	//
	// Errors: no segment starts there, a block in it is live, or the device fails.
	ReleaseSegment(at device.Addr) error
}

// Target is the strategy to verify, and the settings that affect a recorded heap.
type Target struct {
	Strategy string          // name
	Config   json.RawMessage // configuration

	// Open builds the strategy from chunks as Walk would show them: live and free, by address. The
	// source has reserved their regions already.
	Open func(src device.Source, opening []alloc.Chunk) (Seedable, error)

	// Round returns the block size for a request; nil rounds up to 512.
	Round func(device.Size) device.Size

	// Segment returns the size of a new segment for a block; nil: unknown.
	Segment func(device.Size) device.Size

	// Unsplit is the size from which on a block takes a whole segment; 0: never.
	Unsplit device.Size
}

func (t *Target) round(n device.Size) device.Size {
	if t.Round != nil {
		return t.Round(n)
	}
	return max(minBlock, (n+minBlock-1)/minBlock*minBlock)
}

// keeps reports whether a block of n bytes keeps a remainder in its segment.
func (t *Target) keeps(s segment, n, rest device.Size) bool {
	switch {
	case s.small || s.grows:
		return rest < minBlock
	case t.Unsplit != 0 && n >= t.Unsplit:
		return true
	}
	return rest <= mostRest
}

// extent returns the size of a block in a segment with room bytes up to the next block.
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
