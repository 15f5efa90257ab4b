package promise

import (
	"cmp"
	"math/bits"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Set holds the promises of a configuration beyond the core that every strategy keeps. The zero
// value promises nothing more. The property suite verifies them.
type Set struct {
	// Quantum in bytes: blocks start at a multiple of it from the start of their region, and
	// alignments up to it are supported. 0 promises neither.
	Quantum device.Size
	// ZeroSize promises that a request for no bytes is granted.
	ZeroSize bool
	// Honours reports whether the alignment of a request, a power of two, is supported. If it is nil,
	// alignments above Quantum may be supported or refused.
	Honours func(alloc.Request) bool
	// MaxGrant returns the largest block that a request may be given; nil is no promise.
	MaxGrant func(alloc.Request) device.Size
	// MustMerge reports whether two free chunks, right starting where left ends in one
	// region, should have been one; nil is no promise.
	MustMerge func(left, right alloc.Chunk) bool
	// ClassOf returns the Class of a free chunk; nil is no promise.
	ClassOf func(alloc.Chunk) int32
	// SearchOrder orders the free chunks of one class as the search tries them; nil is no promise.
	// Chunks of different classes are not compared.
	SearchOrder func(a, b alloc.Chunk) int
	// Serves reports whether a free chunk of the pool that a request goes to should have served
	// it: if one did, the strategy may not have run out of memory. Nil is no promise.
	Serves func(alloc.Chunk, alloc.Request) bool
	// Fits reports whether a free chunk of the request's pool may serve the request at all. If it is
	// false the chunk is not used even when the request would otherwise fail. Nil means Serves.
	Fits func(alloc.Chunk, alloc.Request) bool
	// ExactNeighbours promises that [power.Neighbours] returns all bytes that a freed block coalesces
	// with. Otherwise there may be more.
	ExactNeighbours bool
	// ExactPlacer promises that a request that [power.Placer] denies is not served from held memory,
	// only with more memory from the device. Otherwise held memory may serve it.
	ExactPlacer bool
	// Places returns the expected placement of a request, given the chunks of a walk and the pool
	// that the request goes to. The promise is void for a call in which pending blocks may have
	// become free, or in which the device or a limit refused memory. Nil is no promise.
	Places func(walk []alloc.Chunk, r alloc.Request, into alloc.PoolID) Placement
	// ReturnOrder compares two regions by the order in which a trim releases them. It gets the
	// first chunk of each, with the size of the region; nil is no promise.
	ReturnOrder func(a, b alloc.Chunk) int
	// Stamped promises that frees are counted as [power.Frontier] describes: until the frontier has
	// passed the count of a free, the chunk that holds its bytes shows that count or a later one.
	Stamped bool
	// FreesNull promises that a free of address 0 succeeds and changes nothing. Otherwise it is an
	// invalid free.
	FreesNull bool
	// FreeReleases means that Free may release a region to the device.
	FreeReleases bool
	// Page is the unit in bytes in which memory of a range is released: Trim leaves no page, counted
	// from the start of its range, mapped without a live or pending block. 0 is the device's
	// granularity.
	Page device.Size
	// JoinsRegions means that adjacent reservations are shown as one region.
	JoinsRegions bool
	// LastPoolFirst promises that the redirection begun last decides, if several match a request.
	// Otherwise the one begun first decides.
	LastPoolFirst bool
	// OneStreamCaptures promises that only a redirection of one stream may be a graph capture, during
	// which the strategy does not wait for streams. Otherwise every redirection may be one.
	OneStreamCaptures bool
	// Quiescent weakens the promise of a [power.Concurrent] strategy: the results of
	// concurrent calls need not be linearizable. A request may be refused although there is room, and
	// Stats may be torn. When no call is in progress, the state is consistent with all results.
	Quiescent bool
	// Boundaries are sizes in bytes around which the strategy decides differently, such
	// as its size classes. The generator aims at them and one byte to either side.
	Boundaries []device.Size
	// Confs are settings that a [power.Configurable] strategy is changed to in tests, some of them
	// wrong.
	Confs []string
	// Changed returns the promises after a [power.Configurable] strategy was changed to settings, and
	// false if these are wrong. Nil is no promise about changes.
	Changed func(settings string) (Set, bool)
	// Except lists the invariants that the original breaks and this strategy with it.
	Except []Exception
}

// Placement is the expected placement of a request. The zero value accepts any placement.
type Placement struct {
	Addr  device.Addr // start of the block; 0 for any
	Size  device.Size // bytes of the block
	Takes device.Size // additional bytes held afterwards
}

// Exception is an invariant that a strategy does not keep.
type Exception struct {
	Invariant string // number in docs/invariants.md: "I5"
	Reason    string // the reason, in one sentence
}

// Promiser is a configuration that states what its strategy promises.
type Promiser interface {
	// Promises returns the promises. It is called on a configuration with its defaults filled in.
	Promises() Set
}

// MergeAll is a MustMerge: no two adjacent chunks are free.
func MergeAll(_, _ alloc.Chunk) bool { return true }

// MergeSafe is the MustMerge of a timestamped strategy: no two adjacent chunks are free unless one
// still waits for the frontier.
func MergeSafe(left, right alloc.Chunk) bool { return left.FreedAt == 0 && right.FreedAt == 0 }

// MergeBuddies is a MustMerge: no two free chunks of one size are each other's buddy.
func MergeBuddies(left, right alloc.Chunk) bool {
	return left.Size == right.Size && left.Addr.Sub(left.Region)%(2*left.Size) == 0
}

// MergeWithin returns a MustMerge: adjacent free chunks are merged within spans of the given bytes,
// counted from the start of the region.
func MergeWithin(span device.Size) func(left, right alloc.Chunk) bool {
	return func(_, right alloc.Chunk) bool { return right.Addr.Sub(right.Region)%span != 0 }
}

// BySizeThenAddress is the SearchOrder of a best fit.
func BySizeThenAddress(a, b alloc.Chunk) int {
	return cmp.Or(cmp.Compare(a.Size, b.Size), cmp.Compare(a.Addr, b.Addr))
}

// ByAddress is the SearchOrder of a first fit.
func ByAddress(a, b alloc.Chunk) int { return cmp.Compare(a.Addr, b.Addr) }

// ServesAnywhere returns a Serves: a chunk serves if it has room for the request, rounded up to
// quantum, at an aligned address. The quantum is a power of two.
func ServesAnywhere(quantum device.Size) func(alloc.Chunk, alloc.Request) bool {
	return func(c alloc.Chunk, r alloc.Request) bool {
		if r.Before != 0 && c.FreedAt > r.Before || !device.CanAlignUp(r.Size, quantum) {
			return false
		}
		align := max(r.Align, 1)
		if !device.CanAlignUp(c.Addr, align) {
			return false
		}
		pad := device.AlignUp(c.Addr, align).Sub(c.Addr)
		need := device.AlignUp(max(r.Size, 1), quantum)
		return c.Size >= pad && c.Size-pad >= need
	}
}

// PowerOfTwo returns n rounded up to a power of two, and to least, a power of two itself.
//
// Precondition: n is at most 1<<63.
func PowerOfTwo(n, least device.Size) device.Size {
	if n <= least {
		return least
	}
	return 1 << bits.Len64(uint64(n-1))
}

// PowersOfTwo returns the powers of two from least to most, for Boundaries.
func PowersOfTwo(least, most device.Size) (all []device.Size) {
	for n := least; n != 0 && n <= most; n <<= 1 {
		all = append(all, n)
	}
	return all
}
