package device

import "errors"

// Capability names an optional ability of a device beyond regions.
type Capability uint8

// The capabilities, each with its interface.
const (
	CapVirtualMemory Capability = iota // VirtualMemory
	CapStreams                         // Streams
	CapPools                           // Pools
	CapMemoryInfo                      // MemoryInfo
	CapContents                        // Contents
	CapTimeline                        // Timeline
	numCapabilities
)

// capabilities is the table of all capabilities: the name of each, and whether a method set has it.
var capabilities = [numCapabilities]struct {
	name        string
	implemented func(Source) bool
}{
	CapVirtualMemory: {"virtual-memory", is[VirtualMemory]},
	CapStreams:       {"streams", is[Streams]},
	CapPools:         {"pools", is[Pools]},
	CapMemoryInfo:    {"memory-info", is[MemoryInfo]},
	CapContents:      {"contents", is[Contents]},
	CapTimeline:      {"timeline", is[Timeline]},
}

// is reports whether the method set of s has a capability.
func is[T any](s Source) bool {
	_, ok := s.(T)
	return ok
}

// String returns the capability in lower case.
func (c Capability) String() string {
	if c < numCapabilities {
		return capabilities[c].name
	}
	return "invalid"
}

// Capabilities yields every capability.
func Capabilities(yield func(Capability) bool) {
	for c := range numCapabilities {
		if !yield(c) {
			return
		}
	}
}

// ErrUnsupported says that the device lacks the capability, or this part of it. It is
// [errors.ErrUnsupported].
var ErrUnsupported = errors.ErrUnsupported

// haver is implemented by wrappers, whose methods say nothing about what is behind them, and
// by devices whose capabilities depend on how they are configured.
type haver interface{ Has(Capability) bool }

// Has reports whether s really has the capability, through any number of wrappers.
func Has(s Source, c Capability) bool {
	if h, ok := s.(haver); ok {
		return h.Has(c)
	}
	return Implements(s, c)
}

// Implements reports whether the method set of s has the capability, whatever [Has] says.
func Implements(s Source, c Capability) bool {
	return c < numCapabilities && capabilities[c].implemented(s)
}

// VirtualMemoryOf returns the virtual memory of s, and whether it has any.
func VirtualMemoryOf(s Source) (VirtualMemory, bool) {
	return capable[VirtualMemory](s, CapVirtualMemory)
}

// StreamsOf returns the streams of s, and whether it has any.
func StreamsOf(s Source) (Streams, bool) { return capable[Streams](s, CapStreams) }

// PoolsOf returns the stream-ordered pools of s, and whether it has any.
func PoolsOf(s Source) (Pools, bool) { return capable[Pools](s, CapPools) }

// MemoryInfoOf returns the memory information of s, and whether it has any.
func MemoryInfoOf(s Source) (MemoryInfo, bool) { return capable[MemoryInfo](s, CapMemoryInfo) }

// ContentsOf returns access to the contents of the memory of s, and whether there is any.
func ContentsOf(s Source) (Contents, bool) { return capable[Contents](s, CapContents) }

// TimelineOf returns the timeline of s, and whether it has one.
func TimelineOf(s Source) (Timeline, bool) { return capable[Timeline](s, CapTimeline) }

// capable returns s as what its capability c is.
func capable[T any](s Source, c Capability) (t T, ok bool) {
	if t, ok = s.(T); ok && Has(s, c) {
		return t, true
	}
	return *new(T), false
}

// Handle names physical memory that [VirtualMemory] made. Zero names none.
type Handle uint64

// Access is the permitted use of mapped memory.
type Access uint8

// The accesses.
const (
	AccessNone      Access = iota // nothing, as after Map
	AccessRead                    // reading
	AccessReadWrite               // reading and writing
)

var accessNames = [...]string{"none", "read", "read-write"}

// String returns the access in lower case.
func (a Access) String() string {
	if int(a) < len(accessNames) {
		return accessNames[a]
	}
	return "invalid"
}

// VirtualMemory keeps address space and physical memory apart. A range is address space; a
// handle is physical memory; mapping joins them. It is CUDA's virtual memory management
// (cuMemAddressReserve, cuMemCreate, cuMemMap, cuMemSetAccess, cuMemUnmap, cuMemRelease,
// cuMemAddressFree).
//
// All sizes, and all addresses and offsets within ranges and handles, are multiples of
// Granularity; a call with another fails with [ErrGranularity].
type VirtualMemory interface {
	// Granularity returns the bytes of a page of physical memory, a power of two. O(1).
	Granularity() Size

	// ReserveRange reserves address space without memory: at address at, or anywhere if that
	// is zero, at a multiple of align, a power of two or zero for no wish.
	//
	// Errors: ErrOutOfMemory if there is no such room, or at is not free; ErrInvalid.
	ReserveRange(size, align Size, at Addr) (Region, error)

	// ReleaseRange gives back the range that starts at a, in which nothing may be mapped.
	//
	// Errors: ErrMapped; ErrInvalid if no range starts there. On error the range stays.
	ReleaseRange(a Addr) error

	// CreateHandle makes physical memory of size bytes, mapped nowhere.
	//
	// Errors: ErrOutOfMemory if the device has too little; ErrInvalid.
	CreateHandle(size Size) (Handle, error)

	// ReleaseHandle gives back the handle. The memory itself is the device's again when it is
	// mapped nowhere any more.
	//
	// Errors: ErrHandle if there is no such handle.
	ReleaseHandle(h Handle) error

	// Map puts size bytes of a handle, from offset on, at address a of one range. Nothing may
	// be mapped there yet; the same memory may be mapped at other addresses. Nobody may use it
	// before SetAccess.
	//
	// Errors: ErrHandle; ErrMapped; ErrInvalid if the addresses are not in one range or the
	// handle is too small; ErrUnsupported from devices that map handles from their start only,
	// if offset is not zero.
	Map(a Addr, size Size, h Handle, offset Size) error

	// SetAccess says what may be done with size bytes of mapped memory at a, which are whole
	// mappings.
	//
	// Errors: ErrUnmapped if not all of it is mapped; ErrInvalid if it cuts a mapping. On
	// error nothing has changed.
	SetAccess(a Addr, size Size, access Access) error

	// Unmap takes the memory away from size bytes at a, which are whole mappings.
	//
	// Errors: as SetAccess.
	Unmap(a Addr, size Size) error
}

// Event names a mark in a stream. Zero names none.
type Event uint64

// Streams orders work. A [Stream] is a queue: what is queued on one runs one after the other,
// what is queued on several may run at once. A stream needs no creation, because traces name
// streams by numbers: it is there, empty, from the start.
//
// An event is a mark that Record puts behind the work of a stream. It is done when all that
// work is. An event that was never recorded is done.
type Streams interface {
	// NewEvent makes an event. Errors: ErrOutOfMemory.
	NewEvent() (Event, error)

	// DestroyEvent releases the event. Work that waits for its mark keeps waiting.
	DestroyEvent(e Event) error

	// Record moves the event behind the work that is queued on s now.
	Record(e Event, s Stream) error

	// Done reports whether the work before the event's mark has finished. It does not wait.
	Done(e Event) (bool, error)

	// Wait makes what is queued on s from now on wait for the event's present mark.
	Wait(s Stream, e Event) error

	// SyncEvent returns when the work before the event's mark has finished.
	SyncEvent(e Event) error

	// SyncStream returns when the work queued on s has finished.
	SyncStream(s Stream) error

	// SyncDevice returns when all work queued on the device has finished.
	SyncDevice() error
}

// Pool names a stream-ordered pool. Zero is the pool that a device has from the start.
type Pool uint64

// PoolAttribute names a setting or a figure of a pool.
type PoolAttribute uint8

// The attributes. The first four can be set; flags are 0 or 1, sizes bytes.
const (
	ReleaseThreshold  PoolAttribute = iota // bytes kept when a stream or the device is synchronised; 0 at first
	FollowEvents                           // flag: reuse what a wait for an event made safe; 1 at first
	ReuseFinished                          // flag: reuse what is found to be finished; 1 at first
	InsertWaits                            // flag: make a stream wait to reuse what another freed; 1 at first
	ReservedNow                            // bytes of physical memory
	ReservedHigh                           // most of ReservedNow; can be reset to what it is by setting 0
	UsedNow                                // bytes of blocks allocated and not freed
	UsedHigh                               // most of UsedNow; can be reset likewise
	NumPoolAttributes                      // how many attributes there are
)

// Pools are stream-ordered: memory is allocated and freed in the order of the work on a
// stream, and the pool decides when memory that one stream freed may serve another. They are
// CUDA's cudaMallocAsync family. Bytes given out count as held from the device when the pool
// takes them, not when a caller does.
type Pools interface {
	// NewPool makes an empty pool with a bound in bytes, 0 for no bound.
	NewPool(most Size) (Pool, error)

	// DestroyPool gives back a pool without blocks. Errors: ErrInvalid for pool zero, a pool that is
	// not there or has blocks.
	DestroyPool(p Pool) error

	// AllocAsync returns size bytes that work queued on s from now on may use.
	//
	// Errors: ErrOutOfMemory; ErrInvalid for no bytes or no such pool.
	AllocAsync(p Pool, size Size, s Stream) (Region, error)

	// FreeAsync gives the block that starts at a back once the work queued on s has finished.
	//
	// Errors: ErrInvalid if no block of a pool starts there.
	FreeAsync(a Addr, s Stream) error

	// TrimPool gives memory that no block is in back to the device until the pool has keep bytes.
	TrimPool(p Pool, keep Size) error

	// PoolAttribute returns a setting or a figure.
	PoolAttribute(p Pool, a PoolAttribute) (Size, error)

	// SetPoolAttribute changes a setting, or resets a high-water mark.
	//
	// Errors: ErrInvalid if there is no such pool, or the attribute cannot have the value.
	SetPoolAttribute(p Pool, a PoolAttribute, v Size) error
}

// MemoryInfo reports the amount of memory, as a driver does.
type MemoryInfo interface {
	// MemoryInfo returns the bytes that are free and those of the whole device. Both are 0 for a
	// simulated device without a bound.
	MemoryInfo() (free, total Size, err error)
}

// Contents reads and writes what is in memory.
type Contents interface {
	// Fill writes n bytes at a: each word of four bytes at a multiple of four is the pattern, its
	// low byte first.
	//
	// Errors: ErrUnmapped if not all of it is memory that is held; ErrAccess if not all of it may
	// be written. On error nothing is written.
	Fill(a Addr, n Size, pattern uint32) error

	// Compare looks for the first of n bytes at a that is not what Fill would have written, and
	// returns its address and false, or true if there is none.
	//
	// Errors: as Fill, of reading.
	Compare(a Addr, n Size, pattern uint32) (differs Addr, same bool, err error)
}

// Timeline lets a caller say of a simulated device what a real one finds out by itself: what
// work there is, how long it takes, and when it has finished. Times are nanoseconds.
type Timeline interface {
	// Work queues work that takes ns nanoseconds on a stream.
	Work(s Stream, ns uint64) error

	// Drain says that all work queued on the stream so far has finished, and so has what that
	// waited for.
	Drain(s Stream) error

	// Elapse lets the host do something else for so long.
	Elapse(ns uint64) error

	// Now returns the time of the host: what calls took that the host waited for, and Elapse.
	Now() uint64

	// StreamTime returns the time at which the work queued on the stream will have finished.
	StreamTime(s Stream) uint64

	// Ordered reports whether what is queued on s from now on runs after the event's mark, for
	// it is done, or on the stream itself, or the stream was made to wait for it.
	Ordered(e Event, s Stream) (bool, error)
}
