package textbook

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/regions"
)

const (
	minAllocationSize        device.Size = 256              // all sizes and addresses are multiples of it
	maxInternalFragmentation             = 128 * device.MiB // a remainder of at least this size is split off
	numBins                              = 21               // the first starts at 256 B, the last at 256 MiB
	unallocated                          = -1               // allocation ID of a free chunk
)

// maxRequest is the largest size that can be rounded up to a multiple of 256.
const maxRequest = ^device.Size(0) - minAllocationSize + 1

// chunkHandle is the index of a chunk's record.
type chunkHandle uint32

const invalidChunkHandle chunkHandle = 0

// chunk is the record of a chunk: a part of a region that is free or in use.
type chunk struct {
	ptr           device.Addr
	size          device.Size
	requestedSize device.Size // bytes asked for, of a chunk in use
	allocationID  int64       // counts the allocations; unallocated if the chunk is free
	prev, next    chunkHandle // adjacent chunks of the region
	binNum        int32       // bin of a free chunk
	tag           uint64      // of the request, as is the stream; the original has neither
	stream        device.Stream
}

func (c *chunk) inUse() bool { return c.allocationID != unallocated }

// Allocator is the best-fit allocator with coalescing. It is not safe for concurrent use.
type Allocator struct {
	front.View
	front         front.Front // statistics and the last refusal
	cfg           Config
	subAllocator  regions.Set            // takes regions from the device and counts them
	regionManager regionManager          // finds the chunk of an address
	bins          [numBins][]chunkHandle // free chunks, in each bin by size, then address
	chunks        []chunk                // records of all chunks; the first, of invalidChunkHandle, is not used
	freeChunks    chunkHandle            // list of unused records, linked by next

	nextAllocationID int64
}

// New returns an allocator over src. It takes nothing from the device yet. It fails if the
// configuration is invalid.
func New(src device.Source, c Config) (*Allocator, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	a := &Allocator{cfg: c, chunks: make([]chunk, 1)}
	a.subAllocator = regions.NewSet(src, &a.front.Stats)
	a.front.Stats.Limit, a.front.Stats.NextRegion = c.Limit, roundedBytes(min(c.Limit, maxRequest))
	if c.AllowGrowth {
		a.front.Stats.NextRegion = roundedBytes(min(c.Limit, 2*device.MiB))
	}
	limits := front.Limits{Most: maxRequest, Align: minAllocationSize, Above: power.ReasonOverflow, Null: true}
	a.View = a.front.Init(limits, func() (largest, bytes device.Size) {
		return a.LargestFree(), a.front.Stats.Reserved - a.front.Stats.Allocated
	})
	return a, nil
}

// roundedBytes returns n rounded up to a multiple of 256.
func roundedBytes(n device.Size) device.Size {
	return (n + minAllocationSize - 1) / minAllocationSize * minAllocationSize
}

// binNumForSize returns the bin of chunks of n bytes: log2(n/256), at most the last bin.
func binNumForSize(n device.Size) int32 {
	return int32(min(bits.Len64(uint64(n/minAllocationSize)), numBins) - 1)
}

// Alloc is AllocateRaw of the original.
func (a *Allocator) Alloc(r alloc.Request) (alloc.Block, error) {
	if !a.front.Accepts(&r) {
		return alloc.Block{}, a.front.Refuse(&r)
	}
	rounded := roundedBytes(r.Size)
	h := a.findChunkPtr(rounded)
	if h == invalidChunkHandle {
		if asked, err := a.extend(rounded); err != nil {
			return alloc.Block{}, a.front.OutOfMemory(&r, rounded, asked, err)
		}
		h = a.findChunkPtr(rounded) // the new region has it
	}
	c := a.chunkFromHandle(h)
	c.requestedSize, c.tag, c.stream = r.Size, r.Tag, r.Stream
	a.nextAllocationID++
	c.allocationID = a.nextAllocationID
	a.front.Stats.Granted(r.Size, c.size)
	return alloc.Block{Addr: c.ptr, Size: c.size}, nil
}

// findChunkPtr returns the smallest free chunk of at least n bytes, the lowest of equals, removed
// from its bin and split. Sizes rise along each bin and from bin to bin, so the first chunk that is
// large enough is the smallest.
func (a *Allocator) findChunkPtr(n device.Size) chunkHandle {
	for _, bin := range a.bins[binNumForSize(n):] {
		for _, h := range bin {
			if size := a.chunkFromHandle(h).size; size >= n {
				a.removeFreeChunkFromBin(h)
				if size-n >= n || size-n >= maxInternalFragmentation {
					a.splitChunk(h, n)
				}
				return h
			}
		}
	}
	return invalidChunkHandle
}

// splitChunk cuts a chunk after n bytes. The rest becomes a free chunk.
func (a *Allocator) splitChunk(h chunkHandle, n device.Size) {
	newHandle := a.allocateChunk() // first, because it may move all records
	c := a.chunkFromHandle(h)
	if c.next != invalidChunkHandle {
		a.chunkFromHandle(c.next).prev = newHandle
	}
	a.addFreeChunk(newHandle, chunk{ptr: c.ptr.Add(n), size: c.size - n, prev: h, next: c.next})
	c.size, c.next = n, newHandle
}

// addFreeChunk fills the record of a new chunk and enters it into the array and into its bin.
func (a *Allocator) addFreeChunk(h chunkHandle, c chunk) {
	c.allocationID = unallocated
	*a.chunkFromHandle(h) = c
	a.regionManager.setHandle(c.ptr, h)
	a.insertFreeChunkIntoBin(h)
}

// extend takes a region for n bytes from the device and makes it one free chunk. If it fails it
// returns the size that the device refused last.
//
// The planned size of a region doubles until the request fits, and otherwise after the region is
// taken. If the device refuses, extend backpedals: it asks for nine tenths of the size, repeatedly.
func (a *Allocator) extend(n device.Size) (asked device.Size, err error) {
	available := device.AlignDown(a.cfg.Limit-a.front.Stats.Reserved, minAllocationSize)
	if n > available {
		return 0, regions.ErrLimit
	}
	planned, increased := &a.front.Stats.NextRegion, false // the original's curr_region_allocation_bytes
	for n > *planned {
		*planned, increased = doubled(*planned), true
	}
	asked = min(*planned, available)
	r, err := a.subAllocator.Reserve(asked, minAllocationSize, 0)
	for err != nil {
		if backpedal(asked) < n {
			return asked, err
		}
		asked = backpedal(asked)
		r, err = a.subAllocator.Reserve(asked, minAllocationSize, 0)
	}
	if !increased {
		*planned = doubled(*planned)
	}
	a.regionManager.addAllocationRegion(r)
	a.addFreeChunk(a.allocateChunk(), chunk{ptr: r.Addr, size: r.Size})
	return asked, nil
}

// doubled returns twice n, or the largest multiple of 256 if that overflows.
func doubled(n device.Size) device.Size { return 2 * min(n, maxRequest/2) }

// backpedal returns nine tenths of n in single precision, rounded up, and less than n.
func backpedal(n device.Size) device.Size {
	const factor float32 = 0.9
	return min(roundedBytes(device.Size(float32(n)*factor)), n-minAllocationSize)
}

// Free is DeallocateRaw of the original, which ignores address 0. The array has a handle for the
// 256 bytes at ptr if a chunk starts in them.
func (a *Allocator) Free(ptr device.Addr) error {
	h := a.regionManager.getHandle(ptr)
	c := a.chunkFromHandle(h)
	if h == invalidChunkHandle || c.ptr != ptr || !c.inUse() {
		return a.front.NothingFreed(ptr)
	}
	a.front.Stats.Freed(c.requestedSize, c.size)
	c.allocationID = unallocated
	a.insertFreeChunkIntoBin(a.tryToCoalesce(h))
	return nil
}

// tryToCoalesce merges a free chunk that is in no bin with the next and with the previous chunk, if
// they are free. It returns the result, which is in no bin.
func (a *Allocator) tryToCoalesce(h chunkHandle) chunkHandle {
	if next := a.chunkFromHandle(h).next; a.isFree(next) {
		a.removeFreeChunkFromBin(next)
		a.merge(h, next)
	}
	if prev := a.chunkFromHandle(h).prev; a.isFree(prev) {
		a.removeFreeChunkFromBin(prev)
		a.merge(prev, h)
		return prev
	}
	return h
}

func (a *Allocator) isFree(h chunkHandle) bool {
	return h != invalidChunkHandle && !a.chunkFromHandle(h).inUse()
}

// merge adds h2 to the chunk before it, h1. Both are free and in no bin.
func (a *Allocator) merge(h1, h2 chunkHandle) {
	c1, c2 := a.chunkFromHandle(h1), a.chunkFromHandle(h2)
	c1.size += c2.size
	c1.next = c2.next
	if c1.next != invalidChunkHandle {
		a.chunkFromHandle(c1.next).prev = h1
	}
	a.deleteChunk(h2)
}

// deleteChunk takes a chunk out of the array of its region and gives up its record.
func (a *Allocator) deleteChunk(h chunkHandle) {
	c := a.chunkFromHandle(h)
	a.regionManager.setHandle(c.ptr, invalidChunkHandle)
	*c = chunk{next: a.freeChunks}
	a.freeChunks = h
}

// allocateChunk returns an unused record, the one given up last, or a new record.
func (a *Allocator) allocateChunk() chunkHandle {
	h := a.freeChunks
	if h == invalidChunkHandle {
		a.chunks = append(a.chunks, chunk{})
		return chunkHandle(len(a.chunks) - 1)
	}
	a.freeChunks = a.chunkFromHandle(h).next
	return h
}

// chunkFromHandle returns the record of a chunk. It is valid until the next allocateChunk.
func (a *Allocator) chunkFromHandle(h chunkHandle) *chunk { return &a.chunks[h] }

// insertFreeChunkIntoBin puts a chunk into the bin of its size.
func (a *Allocator) insertFreeChunkIntoBin(h chunkHandle) {
	c := a.chunkFromHandle(h)
	c.binNum = binNumForSize(c.size)
	bin, i := a.placeInBin(h)
	*bin = slices.Insert(*bin, i, h)
}

func (a *Allocator) removeFreeChunkFromBin(h chunkHandle) {
	bin, i := a.placeInBin(h)
	*bin = slices.Delete(*bin, i, i+1)
}

// placeInBin returns the bin of a chunk and the place in it by size and address.
func (a *Allocator) placeInBin(h chunkHandle) (*[]chunkHandle, int) {
	bin := &a.bins[a.chunkFromHandle(h).binNum]
	i, _ := slices.BinarySearchFunc(*bin, h, func(h1, h2 chunkHandle) int {
		c1, c2 := a.chunkFromHandle(h1), a.chunkFromHandle(h2)
		return cmp.Or(cmp.Compare(c1.size, c2.size), cmp.Compare(c1.ptr, c2.ptr))
	})
	return bin, i
}

// Close releases all regions, with chunks in use or not.
func (a *Allocator) Close() error {
	a.front.Close()
	a.regionManager.regions, a.bins = nil, [numBins][]chunkHandle{}
	a.chunks, a.freeChunks = a.chunks[:1], invalidChunkHandle
	return a.subAllocator.ReleaseAll()
}
