package remat

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Memory holds the blocks of resident storages. When it refuses a request, the run evicts a storage
// and tries again.
type Memory interface {
	// Room reports whether an operator that needs this many bytes may start. A memory that cannot
	// predict this returns true.
	Room(need device.Size) bool
	// Alloc returns a block of size bytes, size > 0, or false if there is no room. The block is
	// labelled with its owner.
	Alloc(size device.Size, owner Owner) (alloc.Block, bool)
	// Free frees a block returned by Alloc.
	Free(alloc.Block)
}

// Neighbors is a [Memory] that reports the free space adjacent to a block.
type Neighbors interface {
	// FreeNeighbours returns the free bytes directly below and above a block that would merge with
	// it if it were freed.
	FreeNeighbours(alloc.Block) (below, above device.Size)
}

// Addressed is a [Memory] whose blocks have addresses, such as [Space].
type Addressed interface {
	Memory
	Neighbors

	// SetHints sets a function that chooses the end of memory for the block of an owner.
	SetHints(of func(Owner) alloc.Hint)
	// Classify classifies a refused request of this size as one of the OOM verdicts.
	Classify(size device.Size) Verdict
	// LastRefusal returns, after a refusal, the total free bytes and the largest free range.
	LastRefusal() (free, largest device.Size)
	// LargestFree returns the size of the largest hole in memory reserved from the device.
	LargestFree() device.Size
	// Release returns cached memory to the device, and the number of bytes returned.
	Release() device.Size
	// Window returns the owners of blocks whose eviction makes room for size bytes, at the least
	// total worth; none if there is no such set. Worth returns the worth of a block, or false to
	// keep it. If whole is true, eviction empties whole regions and Release must follow.
	Window(size device.Size, worth func(Owner, device.Addr) (float64, bool)) (goes []Owner, whole bool)
	// Move moves blocks together and updates their addresses. If a block has no place afterwards,
	// it returns its requested size, and some blocks of the list are no longer live.
	Move(list []OwnedBlock, by MoveMode) (lost device.Size)
}

// OwnedBlock is a block with its owner.
type OwnedBlock struct {
	Owner Owner       // the owner it was allocated for
	Size  device.Size // requested bytes
	Block alloc.Block // current location
}

// MoveMode is a way to move blocks.
type MoveMode uint8

const (
	// Reallocate frees all blocks, releases cached memory and reallocates in list order. Contents
	// are staged elsewhere.
	Reallocate MoveMode = iota
	// SlideDown slides blocks towards the low end of their region.
	SlideDown
)

// AdjacentReporter is a [Memory] that also reports free bytes that could never merge with a block,
// such as free bytes of an adjacent region.
type AdjacentReporter interface {
	// AdjacentFree returns the free bytes directly below and above a block, mergeable or not.
	AdjacentFree(alloc.Block) (below, above device.Size)
}

// Owner is the storage a block was allocated for, or 0 for a workspace. A storage may own a second
// block: a resident output gets a temporary one while its operator reruns.
type Owner uint64

func ownerOf(s int32) Owner { return Owner(s) + 1 }

// Unlimited is a budget for a [Counter] that never refuses.
const Unlimited = ^device.Size(0)

// Counter is a [Memory] that only counts bytes, as the simulator of DTR's authors does. It has no
// fragmentation.
type Counter struct {
	Budget device.Size // most bytes in use at once
	used   device.Size
}

func (c *Counter) Room(need device.Size) bool { return c.used+need <= c.Budget }

func (c *Counter) Alloc(size device.Size, _ Owner) (alloc.Block, bool) {
	if c.used+size > c.Budget {
		return alloc.Block{}, false
	}
	c.used += size
	return alloc.Block{Size: size}, true
}

func (c *Counter) Free(b alloc.Block) { c.used -= b.Size }
