package device

import "errors"

// Capability is an optional ability of a device beyond regions.
type Capability uint8

// The capabilities, and the interface of each.
const (
	CapVirtualMemory Capability = iota // VirtualMemory
	CapStreams                         // Streams
	CapPools                           // Pools
	CapMemoryInfo                      // MemoryInfo
	CapContents                        // Contents
	CapTimeline                        // Timeline
	numCapabilities
)

// capabilities holds the name of each capability, and whether a source implements it.
var capabilities = [numCapabilities]struct {
	name        string
	implemented func(Source) bool
}{
	CapVirtualMemory: {"virtual-memory", implements[VirtualMemory]},
	CapStreams:       {"streams", implements[Streams]},
	CapPools:         {"pools", implements[Pools]},
	CapMemoryInfo:    {"memory-info", implements[MemoryInfo]},
	CapContents:      {"contents", implements[Contents]},
	CapTimeline:      {"timeline", implements[Timeline]},
}

// implements reports whether s implements T.
func implements[T any](s Source) bool {
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

// ErrUnsupported is the error if the device lacks the capability, or a part of it. It is
// [errors.ErrUnsupported].
var ErrUnsupported = errors.ErrUnsupported

// capabilityReporter is implemented by wrappers, whose method sets do not depend on the wrapped
// device, and by devices whose capabilities depend on their configuration.
type capabilityReporter interface{ Has(Capability) bool }

// Has reports whether s has the capability, through any number of wrappers.
func Has(s Source, c Capability) bool {
	if h, ok := s.(capabilityReporter); ok {
		return h.Has(c)
	}
	return Implements(s, c)
}

// Implements reports whether the method set of s has the capability, regardless of [Has].
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

// ContentsOf returns access to the contents of the memory of s, and whether s supports it.
func ContentsOf(s Source) (Contents, bool) { return capable[Contents](s, CapContents) }

// TimelineOf returns the timeline of s, and whether it has one.
func TimelineOf(s Source) (Timeline, bool) { return capable[Timeline](s, CapTimeline) }

// capable returns s as the interface of its capability c.
func capable[T any](s Source, c Capability) (t T, ok bool) {
	if t, ok = s.(T); ok && Has(s, c) {
		return t, true
	}
	return *new(T), false
}

// Handle names physical memory created by [VirtualMemory]. Zero is invalid.
type Handle uint64

// Access is the permitted use of mapped memory.
type Access uint8

// The accesses.
const (
	AccessNone      Access = iota // none; the state after Map
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

// VirtualMemory separates address space from physical memory. A range is address space, a handle is
// physical memory, and mapping joins them. It models CUDA's virtual memory management
// (cuMemAddressReserve, cuMemCreate, cuMemMap, cuMemSetAccess, cuMemUnmap, cuMemRelease,
// cuMemAddressFree).
//
// All sizes, and all addresses and offsets within ranges and handles, are multiples of Granularity;
// other values fail with [ErrGranularity].
type VirtualMemory interface {
	// Granularity returns the page size of physical memory in bytes, a power of two. O(1).
	Granularity() Size

	// ReserveRange reserves address space without memory: at address at, or anywhere if at is zero.
	// The start is a multiple of align, a power of two or zero for any.
	//
	// Errors: ErrOutOfMemory if no free addresses fit, or at is not free; ErrInvalid.
	ReserveRange(size, align Size, at Addr) (Region, error)

	// ReleaseRange releases the range that starts at a, in which nothing may be mapped.
	//
	// Errors: ErrMapped; ErrInvalid if no range starts there. On error the range stays.
	ReleaseRange(a Addr) error

	// CreateHandle creates physical memory of size bytes without mappings.
	//
	// Errors: ErrOutOfMemory; ErrInvalid.
	CreateHandle(size Size) (Handle, error)

	// ReleaseHandle releases the handle. The memory is freed when it has no mappings left.
	//
	// Errors: ErrHandle if there is no such handle.
	ReleaseHandle(h Handle) error

	// Map maps size bytes of a handle, from offset on, at address a of one range. Nothing may be
	// mapped there yet; the same memory may be mapped at other addresses. It must not be accessed
	// before SetAccess.
	//
	// Errors: ErrHandle; ErrMapped; ErrInvalid if the addresses are not in one range or the handle is
	// too small; ErrUnsupported if offset is not zero and the device requires it.
	Map(a Addr, size Size, h Handle, offset Size) error

	// SetAccess sets the access of size bytes of mapped memory at a, which must be whole mappings.
	//
	// Errors: ErrUnmapped if not all of it is mapped; ErrInvalid if it cuts a mapping. On error
	// nothing has changed.
	SetAccess(a Addr, size Size, access Access) error

	// Unmap unmaps size bytes at a, which must be whole mappings.
	//
	// Errors: as SetAccess.
	Unmap(a Addr, size Size) error
}

// Event names a mark in a stream. Zero is invalid.
type Event uint64

// Streams orders work. A [Stream] is a queue: work queued on one stream runs in order, work on
// different streams may run concurrently. Streams need no creation, because traces name them by
// number: every stream exists, empty, from the start.
//
// An event is a mark that Record puts after the queued work of a stream. It is done when all that
// work has finished. An event that was never recorded is done.
type Streams interface {
	// NewEvent makes an event. Errors: ErrOutOfMemory.
	NewEvent() (Event, error)

	// DestroyEvent releases the event. Work that waits for its mark keeps waiting.
	DestroyEvent(e Event) error

	// Record moves the event after the work queued on s so far.
	Record(e Event, s Stream) error

	// Done reports, without waiting, whether the work before the event's mark has finished.
	Done(e Event) (bool, error)

	// Wait makes all work queued on s from now on wait for the event's current mark.
	Wait(s Stream, e Event) error

	// SyncEvent returns when the work before the event's mark has finished.
	SyncEvent(e Event) error

	// SyncStream returns when the work queued on s has finished.
	SyncStream(s Stream) error

	// SyncDevice returns when all work queued on the device has finished.
	SyncDevice() error
}

// Pool names a stream-ordered pool. Zero is the device's default pool.
type Pool uint64

// PoolAttribute names a setting or a statistic of a pool.
type PoolAttribute uint8

// The attributes. The first four can be set; flags are 0 or 1, sizes bytes.
const (
	ReleaseThreshold  PoolAttribute = iota // bytes kept when a stream or the device is synchronised; default 0
	FollowEvents                           // flag: reuse memory made safe by a wait for an event; default 1
	ReuseFinished                          // flag: reuse memory whose work has finished; default 1
	InsertWaits                            // flag: make a stream wait to reuse memory that another stream freed; default 1
	ReservedNow                            // bytes of physical memory
	ReservedHigh                           // maximum of ReservedNow; setting 0 resets it
	UsedNow                                // bytes of blocks allocated and not freed
	UsedHigh                               // maximum of UsedNow; setting 0 resets it
	NumPoolAttributes                      // number of attributes
)

// Pools are stream-ordered: memory is allocated and freed in the order of the work on a stream, and
// the pool decides when memory freed on one stream may be reused on another. They model CUDA's
// cudaMallocAsync family. Memory counts as held from the device while a pool holds it, whether or
// not a caller uses it.
type Pools interface {
	// NewPool makes an empty pool of at most limit bytes; 0 is unlimited.
	NewPool(limit Size) (Pool, error)

	// DestroyPool destroys a pool without blocks. Errors: ErrInvalid for pool zero, an unknown pool,
	// or a pool with blocks.
	DestroyPool(p Pool) error

	// AllocAsync returns size bytes for the work queued on s from now on.
	//
	// Errors: ErrOutOfMemory; ErrInvalid for no bytes or no such pool.
	AllocAsync(p Pool, size Size, s Stream) (Region, error)

	// FreeAsync frees the block that starts at a once the work queued on s has finished.
	//
	// Errors: ErrInvalid if no block of a pool starts there.
	FreeAsync(a Addr, s Stream) error

	// TrimPool returns unused memory to the device until the pool has at most keep bytes.
	TrimPool(p Pool, keep Size) error

	// PoolAttribute returns a setting or a statistic.
	PoolAttribute(p Pool, a PoolAttribute) (Size, error)

	// SetPoolAttribute changes a setting, or resets a high-water mark.
	//
	// Errors: ErrInvalid if there is no such pool, or the value is not valid for the attribute.
	SetPoolAttribute(p Pool, a PoolAttribute, v Size) error
}

// MemoryInfo reports the amount of memory, as a driver does.
type MemoryInfo interface {
	// MemoryInfo returns the free and the total bytes of the device. Both are 0 for a simulated device
	// without a limit.
	MemoryInfo() (free, total Size, err error)
}

// Contents writes and verifies the contents of memory.
type Contents interface {
	// Fill writes n bytes at a: each word of four bytes at a multiple of four is the pattern,
	// little-endian.
	//
	// Errors: ErrUnmapped if not all of it is held memory; ErrAccess if not all of it may be written.
	// On error nothing is written.
	Fill(a Addr, n Size, pattern uint32) error

	// Compare searches n bytes at a for the first byte that differs from the result of Fill, and
	// returns its address and false, or true if all are equal.
	//
	// Errors: as Fill, for reading.
	Compare(a Addr, n Size, pattern uint32) (differs Addr, same bool, err error)
}

// Timeline controls the work of a simulated device: which work is queued, how long it takes, and
// when it has finished. Times are nanoseconds.
type Timeline interface {
	// Work queues work that takes ns nanoseconds on a stream.
	Work(s Stream, ns uint64) error

	// Drain marks all work queued on the stream so far as finished, including the work that it waited
	// for.
	Drain(s Stream) error

	// Elapse advances the host's clock.
	Elapse(ns uint64) error

	// Now returns the host's clock: the time of calls for which the host waited, and Elapse.
	Now() uint64

	// StreamTime returns the time at which the work queued on the stream ends.
	StreamTime(s Stream) uint64

	// Ordered reports whether work queued on s from now on runs after the event's mark: because the
	// mark is done, is on s itself, or was waited for by s.
	Ordered(e Event, s Stream) (bool, error)
}
