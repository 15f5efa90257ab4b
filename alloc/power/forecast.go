package power

import (
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Neighbours predicts the free bytes that a live block would coalesce with.
type Neighbours interface {
	// FreeNeighbours returns the bytes of free memory just below and just above a live block that
	// would be one chunk with it if it were freed now. Both are 0 where no live block starts at
	// the address, where the free would have to wait, as for a stream, and where what is freed is
	// set aside first.
	//
	// It says nothing of a region that goes back to the device at once: then they are what would
	// have gone back in one piece.
	FreeNeighbours(a device.Addr) (below, above device.Size)
}

// Placer can predict the effect of frees on a request.
type Placer interface {
	// CanPlace reports whether Alloc(r) would surely find room after the live blocks that start at
	// the addresses were freed in their order, and nothing else was called. It changes nothing. An
	// address without a live block is passed over.
	//
	// It is true only if memory that is held, or that these frees would give back to the device, is
	// enough. So it may be false although the device would have had more to give; and with
	// [promise.Set].ExactPlacer it is false for no other reason.
	CanPlace(r alloc.Request, freed []device.Addr) bool
}

// Mover can move live blocks, for a caller who copies what is in them.
type Mover interface {
	// Compact slides live blocks towards the low end of their region, as far as their alignment
	// allows, and returns the bytes moved. Blocks of a region keep their order; one for which
	// may says no, asked with its live chunk, stays where it is, and those above it stay above it.
	//
	// The strategy calls moved for each block, when both places are the caller's: to copy with
	// the semantics of memmove in the order of the calls is right, because no block is moved over
	// bytes that are still to be read. The two places may overlap. A block keeps the alignment that
	// its request asked for.
	//
	// Neither function may call the strategy. Afterwards the blocks are live at their new
	// addresses, with their sizes and labels; Stats stay as they are.
	//
	// Errors: ErrClosed; nothing was moved then.
	Compact(may func(alloc.Chunk) bool, moved func(from, to alloc.Block)) (device.Size, error)
}

// FreeNeighbours returns the bytes of free memory of s just below and just above a live block that
// would be one chunk with it if it were freed now. Without [Neighbours] nothing is known of what
// merges, and both are 0.
func FreeNeighbours(s alloc.Inspector, a device.Addr) (below, above device.Size) {
	reach(s, func(n Neighbours) { below, above = n.FreeNeighbours(a) })
	return below, above
}

// CanPlace reports whether a request would find room in s after the live blocks at the addresses
// were freed in order. It uses [Placer]. Without the power it estimates from a walk: free chunks
// and those blocks, where adjacent in a region, must be large enough for the request and its
// alignment. This is exact for a strategy that merges all adjacent chunks and rounds sizes up by
// less than the remainder, and a guess for others. It costs O(chunks log addresses).
func CanPlace(s alloc.Inspector, r alloc.Request, freed []device.Addr) (can bool) {
	if reach(s, func(p Placer) { can = p.CanPlace(r, freed) }) {
		return can
	}
	return canPlaceByWalk(s, r, freed)
}

// canPlaceByWalk is CanPlace without the power.
func canPlaceByWalk(s alloc.Inspector, r alloc.Request, freed []device.Addr) bool {
	if r.Size == 0 || r.Size > MaxRequest(s) || r.Align&(r.Align-1) != 0 {
		return false
	}
	freed = slices.Clone(freed)
	slices.Sort(freed)
	var run alloc.Chunk
	for c := range s.Walk {
		switch _, goes := slices.BinarySearch(freed, c.Addr); {
		case c.State == alloc.Free && (c.FreedAt == 0 || r.Before != 0 && c.FreedAt <= r.Before):
		case c.State == alloc.Live && goes:
		default:
			run = alloc.Chunk{}
			continue
		}
		if run.Size != 0 && run.End() == c.Addr && run.Region == c.Region && run.Pool == c.Pool && run.Owner == c.Owner {
			run.Size += c.Size
		} else {
			run = c
		}
		if fits := device.AlignUp(run.Addr, max(r.Align, 1)).Sub(run.Addr); run.Size >= fits && run.Size-fits >= r.Size {
			return true
		}
	}
	return false
}

// Compact slides live blocks of s towards the low end of their regions and returns the bytes moved.
// It fails with [alloc.ErrUnsupported] if s is no [Mover].
func Compact(s alloc.Inspector, may func(alloc.Chunk) bool, moved func(from, to alloc.Block)) (device.Size, error) {
	return ask(s, PowerMover, func(m Mover) (device.Size, error) { return m.Compact(may, moved) })
}
