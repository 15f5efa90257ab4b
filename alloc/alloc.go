package alloc

import (
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/device"
)

// Errors of a strategy. They are returned without detail, because running out of memory is a normal
// result that eviction loops get thousands of times. [power.LastRefusal] returns the detail.
var (
	// ErrOutOfMemory means that the request was legal and no memory was found for it.
	ErrOutOfMemory = errors.New("alloc: out of memory")
	// ErrInvalidRequest means that the strategy can never grant such a request: a size of zero, a
	// size that overflows or exceeds its maximum, an alignment that is not a power of two or that the
	// strategy does not support.
	ErrInvalidRequest = errors.New("alloc: invalid request")
	// ErrInvalidFree means that no live block starts at the address.
	ErrInvalidFree = errors.New("alloc: invalid free")
	// ErrInvalidSettings means that the text of settings is wrong.
	ErrInvalidSettings = errors.New("alloc: invalid settings")
	// ErrInvalidPool means that there is no such private pool, or that nothing is redirected into it.
	ErrInvalidPool = errors.New("alloc: invalid pool")
	// ErrClosed means that the strategy is closed.
	ErrClosed = errors.New("alloc: closed")
	// ErrUnsupported means that the strategy lacks the requested power. It is
	// [errors.ErrUnsupported].
	ErrUnsupported = errors.ErrUnsupported
)

// Hint is a preference for one end of memory. Strategies without ends ignore it.
type Hint uint8

// The hints.
const (
	HintNone Hint = iota // no preference
	HintLow              // at the low end
	HintHigh             // at the high end
)

// PoolID names a private pool. Zero is the default pool.
type PoolID uint64

// Request describes one allocation. Only Size is required.
type Request struct {
	Size   device.Size   // bytes; the strategy decides whether it grants zero
	Align  device.Size   // power of two; 0 means the strategy's own quantum
	Stream device.Stream // stream that first uses the memory
	Hint   Hint          // preferred end of memory
	Before uint64        // only chunks freed at or before this count (BFC's timestamped mode); 0 means no bound
	Tag    uint64        // the caller's label, carried into Chunk and traces
	ID     uint64        // the allocation's number in the trace that is replayed; 0 outside of replays
	Origin Origin        // call site, thread and expected lifetime; 0 where they are not known
}

// Origin is the call site and thread of a request in one word: a [Request] of at most eight words
// is passed in registers.
type Origin uint64

// The parts of an Origin.
const (
	threadBits   = 18
	lifetimeBits = 2
	siteShift    = threadBits + lifetimeBits
	siteBits     = 64 - siteShift
)

// OriginOf returns an origin. The hash of the call stack is folded to 44 bits. Threads are counted
// from 1; numbers above 262,143 become 262,143. Zero means unknown for both.
func OriginOf(site uint64, thread uint32) Origin {
	if site != 0 {
		site = max((site^site>>siteBits)&(1<<siteBits-1), 1)
	}
	return Origin(site<<siteShift | uint64(min(thread, 1<<threadBits-1)))
}

// Site returns the folded hash of the call stack, 0 if it is unknown.
func (o Origin) Site() uint64 { return uint64(o >> siteShift) }

// Thread returns the number of the thread, 0 if it is unknown.
func (o Origin) Thread() uint32 { return uint32(o & (1<<threadBits - 1)) }

// Lifetime returns the lifetime that the program expects of the block.
func (o Origin) Lifetime() Lifetime { return Lifetime(o >> threadBits & (1<<lifetimeBits - 1)) }

// WithLifetime returns the origin with an expected lifetime.
func (o Origin) WithLifetime(l Lifetime) Origin {
	const mask = 1<<lifetimeBits - 1
	return o&^(mask<<threadBits) | Origin(l&mask)<<threadBits
}

// Lifetime is a hint: the scope at whose end the program expects a block to be freed. It may be
// wrong; a strategy that uses it keeps every promise even then.
type Lifetime uint8

// The lifetimes.
const (
	LifeUnknown Lifetime = iota // the program gives no lifetime
	LifeMark                    // freed before the next mark of the program
	LifeStep                    // freed before the step ends, such as one iteration of a training
	LifeRun                     // live until the program ends
)

var lifetimeNames = [...]string{"unknown", "mark", "step", "run"}

// String returns the lifetime in lower case.
func (l Lifetime) String() string {
	if int(l) < len(lifetimeNames) {
		return lifetimeNames[l]
	}
	return "invalid"
}

// Block is a granted allocation.
type Block struct {
	Addr device.Addr // first byte
	Size device.Size // bytes granted, at least those requested
	Ref  uint32      // the strategy's reference to the live block, for [power.Referenced]; 0 for none
}

// State is the state of a chunk. A chunk is in exactly one state.
//
//	   region reserved         Alloc
//	device ────────▶ Free ─────────────▶ Live
//	       ◀────────  ▲ ◀─────────────── │ │
//	region released   │       Free       │ │ Free, while another stream uses the block
//	                  │                  │ ▼
//	                  ├────────────── Pending
//	                  │  stream done     │
//	                  ├────────────── Cached ◀─ Free into a magazine; Alloc makes it Live again
//	                  │  flushed
//	                  └─▶ Unmapped        pages unmapped; a later growth maps them again
//
// Which call causes a transition:
//
//   - Alloc makes Free and Cached chunks Live. If no chunk fits, it first gets a region from the
//     device, or pages for an Unmapped chunk. The remainder of a split stays Free, or is Slack if
//     it is too small to grant.
//   - Free makes a Live chunk Free and coalesces it with adjacent free chunks if the strategy
//     merges. It makes the chunk Pending if [power.RecordStream] named a stream that still uses the
//     block, and Cached if a magazine takes it.
//   - Pending becomes Free when a later call finds that the stream is done.
//   - Trim, Compact, Close and a request that the device refused release free regions, unmap free
//     pages and flush magazines.
//   - Aliased address space is mapped to memory that is counted in another range, as in stitching.
//     A range becomes Live when it is granted, and the ranges that share its pages become Aliased.
type State uint8

// The states.
const (
	Free     State = iota // may be granted
	Live                  // granted
	Pending               // freed, but a stream still uses it
	Cached                // set aside in a magazine for its size class
	Unmapped              // address space without memory behind it
	Slack                 // can never be granted: a tail too small, or lost by the rules of an original
	Aliased               // address space whose memory is counted at another mapping
)

var stateNames = [...]string{"free", "live", "pending", "cached", "unmapped", "slack", "aliased"}

// String returns the state in lower case.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "invalid"
}

// Held reports whether a chunk in the state has memory of its own, which counts as reserved.
func (s State) Held() bool { return s != Unmapped && s != Aliased }

// NoClass is the Class of a chunk that has none.
const NoClass int32 = -1

// Chunk is one contiguous part of a region, as Walk yields it.
type Chunk struct {
	Region    device.Addr // start of the region that contains the chunk
	Addr      device.Addr // first byte
	Size      device.Size // bytes
	Requested device.Size // bytes requested; 0 unless Live or Pending
	Was       device.Size // Free: bytes requested by its last block, if the strategy records them
	State     State       // state of the chunk
	Class     int32       // bin, order or size class, or NoClass
	Owner     uint8       // side of a two-ended arena, part of a composed strategy
	Pool      PoolID      // private pool; zero is the default
	// stream of the request; of a free chunk of a StreamRecorder, the stream that may use it at once
	Stream  device.Stream
	Tag     uint64 // label of the request; 0 unless Live or Pending
	ID      uint64 // number of the allocation, counted from 1, never reused; 0 unless Live and numbered
	FreedAt uint64 // count at which a timestamped chunk was freed; 0 once it is safe
}

// End returns the address just above the chunk.
func (c Chunk) End() device.Addr { return c.Addr.Add(c.Size) }

// String returns the chunk in a line: address, state and size, its class if it has one, and for a
// block also the requested bytes, the stream and the tag.
func (c Chunk) String() string {
	line := fmt.Sprintf("%v %-8v %v", c.Addr, c.State, c.Size)
	if c.Class != NoClass {
		line += fmt.Sprintf(", class %d", c.Class)
	}
	if c.State == Live || c.State == Pending {
		line += fmt.Sprintf(", requested %v, stream %d, tag %d", c.Requested, uint64(c.Stream), c.Tag)
	}
	if c.ID != 0 {
		line += fmt.Sprintf(", allocation %d", c.ID)
	}
	return line
}

// Allocator is the hot path of a strategy.
type Allocator interface {
	// Alloc grants a block for the request.
	//
	// Postcondition: on success the block is disjoint from every live block, lies inside
	// one region held from the device, starts at a multiple of Request.Align and has at
	// least Request.Size bytes.
	// Errors: ErrOutOfMemory, ErrInvalidRequest, ErrClosed.
	Alloc(Request) (Block, error)

	// Free frees the block that starts at the address.
	//
	// Errors: ErrInvalidFree if no live block starts there, ErrClosed.
	Free(device.Addr) error
}

// Inspector shows a strategy's state without changing it.
type Inspector interface {
	// Stats returns the counters. It costs O(1).
	Stats() Stats

	// Walk yields every chunk, region by region in address order, without gaps inside a region. It
	// must not be re-entered, the strategy must not be called during the walk, and it allocates
	// nothing per chunk.
	Walk(yield func(Chunk) bool)

	// Check verifies the private indexes that Walk cannot show, and returns an error that
	// names the broken invariant. It may cost O(chunks log chunks).
	Check() error
}

// Strategy is an allocator that can be inspected and closed.
type Strategy interface {
	Allocator
	Inspector

	// Close releases every region to the device, including live blocks. Afterwards Alloc and Free
	// return ErrClosed. If the device refuses to release regions, Close returns the error, Walk yields
	// these regions, and another Close tries them again. Closing a closed strategy that holds nothing
	// is a no-op.
	Close() error
}
