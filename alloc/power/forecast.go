package power

import (
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Neighbours predicts the free bytes that a live block would coalesce with.
type Neighbours interface {
	// FreeNeighbours returns the free bytes just below and just above a live block that would
	// coalesce with it if it were freed now. Both are 0 if no live block starts at the address, if
	// the free would be delayed, as by a stream, and if the freed chunk would be cached first.
	//
	// If the free would release the region at once, they are the free bytes released with the block.
	FreeNeighbours(a device.Addr) (below, above device.Size)
}

// Placer can predict the effect of frees on a request.
type Placer interface {
	// CanPlace reports whether Alloc(r) would certainly succeed after the live blocks that start at
	// the addresses were freed in this order, with no other call. It changes nothing. It skips an
	// address without a live block.
	//
	// It counts only memory that is held or that these frees would release to the device. So it may
	// be false although the device has more memory; with [promise.Set].ExactPlacer it is false for no
	// other reason.
	CanPlace(r alloc.Request, freed []device.Addr) bool
}

// Mover can move live blocks, for a caller that copies their contents.
type Mover interface {
	// Compact slides live blocks towards the low end of their region, as far as their alignment
	// allows, and returns the bytes moved. Blocks of a region keep their order. A block for whose
	// chunk may returns false stays at its address, and the blocks above it stay above it.
	//
	// The strategy calls moved for each block while both address ranges belong to the caller. Copying
	// with the semantics of memmove in the order of the calls is correct, because no block is moved
	// over bytes that are still to be read. The two ranges may overlap. A block keeps the alignment
	// of its request.
	//
	// Neither function may call the strategy. Afterwards the blocks are live at their new addresses,
	// with their sizes and labels. Stats do not change.
	//
	// Errors: ErrClosed, without moves.
	Compact(may func(alloc.Chunk) bool, moved func(from, to alloc.Block)) (device.Size, error)
}

// FreeNeighbours returns the free bytes of s just below and just above a live block that would
// coalesce with it if it were freed now. Without [Neighbours] both are 0.
func FreeNeighbours(s alloc.Inspector, a device.Addr) (below, above device.Size) {
	withPower(s, func(n Neighbours) { below, above = n.FreeNeighbours(a) })
	return below, above
}

// CanPlace reports whether a request would find room in s after the live blocks at the addresses
// were freed in order. It uses [Placer]. Without the power it estimates from a walk: free chunks
// and those blocks, where adjacent in a region, must be large enough for the request and its
// alignment. This is exact for a strategy that merges all adjacent chunks and rounds sizes up by
// less than the remainder, and a guess for others. It costs O(chunks log addresses).
func CanPlace(s alloc.Inspector, r alloc.Request, freed []device.Addr) (can bool) {
	if withPower(s, func(p Placer) { can = p.CanPlace(r, freed) }) {
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
// It fails with [alloc.ErrUnsupported] if s is not a [Mover].
func Compact(s alloc.Inspector, may func(alloc.Chunk) bool, moved func(from, to alloc.Block)) (device.Size, error) {
	return requireResult(s, PowerMover, func(m Mover) (device.Size, error) { return m.Compact(may, moved) })
}
