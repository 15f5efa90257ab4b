package power

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// AllStreams as the stream of [PrivatePools].BeginPool means every stream.
const AllStreams = ^device.Stream(0)

// PrivatePools separates the memory of some requests from all others, so that a program may use the
// addresses again after it has freed them. PyTorch has them for CUDA graphs and MemPools.
type PrivatePools interface {
	// BeginPool redirects the requests of a stream, or of all streams, into a pool from now on. It
	// creates the pool with one user, or adds a user. If several redirections match a request, the one
	// that was begun first applies, or the last one with [promise.Set].LastPoolFirst.
	//
	// Errors: ErrInvalidPool for the default pool, ErrClosed.
	BeginPool(id alloc.PoolID, s device.Stream) error

	// EndPool ends the redirection into a pool that was begun first. The pool keeps its memory and
	// its users.
	//
	// Errors: ErrInvalidPool if nothing is redirected into it, ErrClosed.
	EndPool(id alloc.PoolID) error

	// ReleasePool removes one user of a pool. The memory of a pool without users is released with
	// other cached memory as its blocks are freed, and then the pool is removed.
	//
	// Errors: ErrInvalidPool if there is no such pool with a user, ErrClosed.
	ReleasePool(id alloc.PoolID) error
}

// PoolOptions are the options of PyTorch's MemPools. The zero value has none.
type PoolOptions struct {
	UseOnOOM bool // free blocks of the pool serve a request outside of it that would fail
	NoSplit  bool // blocks of the pool are not split
}

// MemPools has [PrivatePools] with options.
type MemPools interface {
	// BeginMemPool is BeginPool, and sets the options of the pool. They last until the pool is
	// removed, also if BeginPool begins it again.
	//
	// Errors: ErrInvalidPool for the default pool, ErrClosed.
	BeginMemPool(id alloc.PoolID, s device.Stream, o PoolOptions) error
}

// Configurable changes its settings while it runs, as the program's own call does. In PyTorch that
// is torch.cuda.memory._set_allocator_settings.
type Configurable interface {
	// Configure applies settings in the strategy's own text form from now on. Live blocks, and memory
	// that is held, stay as they are.
	//
	// Errors: ErrInvalidSettings, ErrUnsupported if these settings cannot change while the strategy
	// runs, ErrClosed. An error changes nothing.
	Configure(settings string) error
}

// Class and Owner of the chunks of a [Counted] strategy. Small and large blocks lie in separate
// segments, and a segment is one reservation or a range that grows by mapping.
const (
	ClassSmall      int32 = 0 // Chunk.Class in a segment for small blocks
	ClassLarge      int32 = 1 // Chunk.Class in a segment for large blocks
	OwnerExpandable uint8 = 1 // Chunk.Owner in a segment that grows
)

// Counted has the counters of PyTorch's caching allocator, in addition to [alloc.Stats].
type Counted interface {
	// Counters yields each counter under the name it has in torch.cuda.memory_stats, such as
	// "active_bytes.large_pool.peak", always all of them and in the same order. It must not be
	// re-entered. O(1).
	Counters(yield func(name string, value int64) bool)
}

// ActionKind is a kind of action other than an allocation or a free.
type ActionKind uint8

// The kinds of actions, as PyTorch's memory history has them.
const (
	SegmentAlloc  ActionKind = iota // a segment was taken from the device
	SegmentFree                     // a segment was returned to the device
	SegmentMap                      // memory was mapped in a segment that grows
	SegmentUnmap                    // memory of such a segment was unmapped
	FreeCompleted                   // the free of a block that was pending became final
	OutOfMemory                     // a request found no memory
)

var actionNames = [...]string{
	"segment_alloc", "segment_free", "segment_map", "segment_unmap", "free_completed", "oom",
}

// String returns the kind as PyTorch's memory history names it.
func (k ActionKind) String() string {
	if int(k) < len(actionNames) {
		return actionNames[k]
	}
	return "invalid"
}

// Action is one entry of a strategy's history.
type Action struct {
	Kind       ActionKind    // kind of the action
	Addr       device.Addr   // first byte; 0 for OutOfMemory
	Size       device.Size   // bytes of the memory; FreeCompleted: bytes requested; OutOfMemory: rounded request
	Stream     device.Stream // stream of the segment, the block or the request
	Pool       alloc.PoolID  // private pool of the segment or the block; 0 for OutOfMemory
	DeviceFree device.Size   // OutOfMemory: free bytes of the device
}

// Historian reports its actions other than grants and frees, at the time of the action.
type Historian interface {
	// SetHistory sets the listener that is called with every action from now on; nil removes it. The
	// listener must not call the strategy.
	SetHistory(listener func(Action))
}

// BeginPool redirects requests of s into a private pool. It fails with [alloc.ErrUnsupported] if s
// has no [PrivatePools].
func BeginPool(s alloc.Inspector, id alloc.PoolID, stream device.Stream) error {
	type beginner interface {
		BeginPool(alloc.PoolID, device.Stream) error
	}
	return requireError(s, PowerPrivatePools, func(p beginner) error { return p.BeginPool(id, stream) })
}

// BeginMemPool redirects requests of s into a private pool and sets its options. It fails with
// [alloc.ErrUnsupported] if s has no [MemPools].
func BeginMemPool(s alloc.Inspector, id alloc.PoolID, stream device.Stream, o PoolOptions) error {
	return requireError(s, PowerMemPools, func(p MemPools) error { return p.BeginMemPool(id, stream, o) })
}

// EndPool ends a redirection of s into a private pool. It fails with [alloc.ErrUnsupported] if s
// has no [PrivatePools].
func EndPool(s alloc.Inspector, id alloc.PoolID) error {
	type ender interface{ EndPool(alloc.PoolID) error }
	return requireError(s, PowerPrivatePools, func(p ender) error { return p.EndPool(id) })
}

// ReleasePool removes one user of a private pool of s. It fails with [alloc.ErrUnsupported]
// if s has no [PrivatePools].
func ReleasePool(s alloc.Inspector, id alloc.PoolID) error {
	type releaser interface{ ReleasePool(alloc.PoolID) error }
	return requireError(s, PowerPrivatePools, func(p releaser) error { return p.ReleasePool(id) })
}

// Configure changes the settings of s. It fails with [alloc.ErrUnsupported] if s is not
// [Configurable].
func Configure(s alloc.Inspector, settings string) error {
	return requireError(s, PowerConfigurable, func(c Configurable) error { return c.Configure(settings) })
}

// Counters yields the counters of s in PyTorch's terms. It fails with [alloc.ErrUnsupported] if s
// is not [Counted].
func Counters(s alloc.Inspector, yield func(name string, value int64) bool) error {
	return require(s, PowerCounted, func(c Counted) { c.Counters(yield) })
}

// SetHistory sets the listener of the actions of s. It fails with [alloc.ErrUnsupported] if s is
// not a [Historian].
func SetHistory(s alloc.Inspector, listener func(Action)) error {
	return require(s, PowerHistorian, func(h Historian) { h.SetHistory(listener) })
}
