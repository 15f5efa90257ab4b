package remat

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Memory holds the blocks of resident storages. When it refuses a request, the run climbs its
// [Ladder]: by default it evicts a storage and tries again.
type Memory interface {
	// Room reports whether an operator that allocates need bytes may start. A memory that cannot
	// predict this returns true.
	Room(need device.Size) bool
	// Alloc returns a block of size bytes for an owner, or false to refuse. Size is above 0.
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

	// SetHints sets the function that chooses the end of memory for each request, by its owner.
	SetHints(of func(Owner) alloc.Hint)
	// Classify returns the OOM verdict for a refused request of this size.
	Classify(size device.Size) Verdict
	// LastRefusal returns the free bytes in total and the largest hole when the last request was
	// refused. Free device memory counts.
	LastRefusal() (free, largest device.Size)
	// LargestFree returns the size of the largest hole in memory reserved from the device.
	LargestFree() device.Size
	// Release returns cached memory to the device. It reports the number of bytes.
	Release() device.Size
	// Window returns the owners of the blocks to evict for a request of size bytes: the blocks of
	// the cheapest window, a run of adjacent chunks, or of whole regions if that costs less. It
	// returns no victims if there is neither. If emptiesRegions is true, the caller must
	// call Release after the evictions. Cost returns the cost of evicting a block, or false to keep
	// it.
	Window(size device.Size, cost func(Owner, device.Addr) (float64, bool)) (victims []Owner, emptiesRegions bool)
	// Move moves blocks together and updates their addresses in the list. If a block has no place
	// afterwards, Move returns its requested size; some blocks of the list are then no longer live.
	Move(list []OwnedBlock, by MoveMode) (lost device.Size)
}

// OwnedBlock is a block and the request that it serves.
type OwnedBlock struct {
	Owner Owner       // of the request
	Size  device.Size // requested bytes
	Block alloc.Block // current location
}

// MoveMode is a way to move blocks.
type MoveMode uint8

const (
	// Reallocate frees all blocks, releases cached memory and reallocates in list order. The
	// contents are staged outside of the memory.
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

// Owner identifies the storage that a block was allocated for: its index plus 1. It is 0 for a
// workspace. A storage may own two blocks: when an operator reruns, an output that is resident
// already gets a temporary block.
type Owner uint64

func ownerOf(s int32) Owner { return Owner(s) + 1 }

// Unlimited is the budget of a [Counter] that never refuses.
const Unlimited = ^device.Size(0)

// Counter is a [Memory] without addresses: it only counts bytes, as the simulator of DTR's authors
// does. It has no fragmentation.
type Counter struct {
	Budget device.Size // limit of the bytes in use
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
