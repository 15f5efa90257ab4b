package remat

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Memory is where storages lie while they are resident. It may refuse: then the run evicts one more
// storage and asks again.
type Memory interface {
	// Room reports whether an operator that needs so many bytes may begin. A memory that can only
	// tell by trying says yes.
	Room(need device.Size) bool
	// Alloc returns a block of so many bytes, more than 0, or false if there is no place. The owner
	// says who it is for, so that whoever walks through memory meets it again.
	Alloc(size device.Size, owner Owner) (alloc.Block, bool)
	// Free takes a block back.
	Free(alloc.Block)
}

// Neighbours is a [Memory] that knows what a block lies next to.
type Neighbours interface {
	// FreeNeighbours returns the free bytes right below and right above a block that would become
	// one hole with it if it were freed.
	FreeNeighbours(alloc.Block) (below, above device.Size)
}

// Addressed is a [Memory] whose blocks lie somewhere, as those of [Space] do.
type Addressed interface {
	Memory
	Neighbours

	// Ends sets at which end of memory blocks are asked for from now on, for whom.
	Ends(of func(Owner) alloc.Hint)
	// Judge returns what to call it that there is no place for so many bytes, after a refusal.
	Judge(size device.Size) Verdict
	// Refused returns, after a refusal, the bytes that are free, wherever, and the most of them in one
	// piece.
	Refused() (free, largest device.Size)
	// LargestFree returns the bytes of the largest hole in what is held of the device.
	LargestFree() device.Size
	// Release gives what is free in pieces that can go back to the device, and returns the bytes.
	Release() device.Size
	// Window returns blocks whose eviction would make room for so many bytes at the least sum of what
	// they are worth, none if it finds no such blocks. Worth says of a block of an owner what it is
	// worth, or that it stays. If whole is true, regions become free that have to be released.
	Window(size device.Size, worth func(Owner, device.Addr) (float64, bool)) (goes []Owner, whole bool)
	// Move moves blocks towards each other and sets where they lie now. If a block can be placed
	// nowhere any more, it returns the bytes that were asked for it, and not all blocks of the list
	// are live.
	Move(list []Moving, by Move) (lost device.Size)
}

// Moving is a block that moves.
type Moving struct {
	Owner Owner       // for whom it was asked for
	Size  device.Size // bytes asked for
	Block alloc.Block // where it lies
}

// Move is how blocks move.
type Move uint8

const (
	// Anew is that all are freed, what is cached goes back, and they are asked for again in the order
	// of the list: what they hold is elsewhere meanwhile.
	Anew Move = iota
	// Down is that they slide towards the low end of their region.
	Down
)

// Touching is a [Memory] that knows what a block touches without ever merging with it, across the
// bounds of regions.
type Touching interface {
	// TouchingFree returns the free bytes right below and right above a block, mergeable or not.
	TouchingFree(alloc.Block) (below, above device.Size)
}

// Owner says which storage a block was asked for; zero is a workspace. It need not be the block in
// which the storage lies: an output that is there already gets another one while its operator runs.
type Owner uint64

func ownerOf(s int32) Owner { return Owner(s) + 1 }

// Unlimited is the budget of a [Counter] that never refuses.
const Unlimited = ^device.Size(0)

// Counter is a [Memory] that counts bytes and knows no addresses, as the simulator of DTR's authors
// does: what fits by number fits.
type Counter struct {
	Budget device.Size // bytes that may be used at once
	used   device.Size
}

// Room implements [Memory].
func (c *Counter) Room(need device.Size) bool { return c.used+need <= c.Budget }

// Alloc implements [Memory].
func (c *Counter) Alloc(size device.Size, _ Owner) (alloc.Block, bool) {
	if c.used+size > c.Budget {
		return alloc.Block{}, false
	}
	c.used += size
	return alloc.Block{Size: size}, true
}

// Free implements [Memory].
func (c *Counter) Free(b alloc.Block) { c.used -= b.Size }
