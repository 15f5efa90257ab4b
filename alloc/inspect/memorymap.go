package inspect

import (
	"math/bits"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// The bins of TensorFlow's allocator: bin b starts at 256 << b bytes, and the last has no end.
const (
	firstBin = 256
	numBins  = 21
)

// MemoryMap is a snapshot of a strategy in the terms of TensorFlow's allocator, which writes one to
// a file when a request fails. Sizes are bytes.
type MemoryMap struct {
	Name   string       `json:"name"`   // of the allocator
	Stats  MapStats     `json:"stats"`  // counters
	Bins   []BinSummary `json:"bins"`   // one for each of the 21 bins
	Chunks []MapChunk   `json:"chunks"` // every chunk with memory, by address
}

// MapStats are the counters in a [MemoryMap].
type MapStats struct {
	Allocs        uint64      `json:"num_allocs"`         // blocks granted
	BytesInUse    device.Size `json:"bytes_in_use"`       // in live blocks
	PeakInUse     device.Size `json:"peak_bytes_in_use"`  // maximum of bytes_in_use
	LargestAlloc  device.Size `json:"largest_alloc_size"` // largest block granted
	Fragmentation float32     `json:"fragmentation"`      // share of free memory outside the largest free chunk
}

// BinSummary adds up the chunks of one bin. Live chunks are in no bin; here they count for
// the bin of their size.
type BinSummary struct {
	Bin            int32       `json:"bin"`              // number
	Size           device.Size `json:"bin_size"`         // lowest size of the bin
	BytesInUse     device.Size `json:"bytes_in_use"`     // in live chunks
	BytesInBin     device.Size `json:"bytes_in_bin"`     // in live and free chunks
	RequestedInUse device.Size `json:"requested_in_use"` // requested by live chunks
	ChunksInUse    int         `json:"chunks_in_use"`    // live chunks
	ChunksInBin    int         `json:"chunks_in_bin"`    // live and free chunks
}

// MapChunk is one chunk in a [MemoryMap].
type MapChunk struct {
	Addr      device.Addr `json:"address"`                 // first byte
	Size      device.Size `json:"size"`                    // bytes
	Requested device.Size `json:"requested_size"`          // bytes requested; 0 for a free chunk
	Bin       int32       `json:"bin"`                     // -1 for a chunk that is in use or in no list of its strategy
	InUse     bool        `json:"in_use"`                  // live, or used by a stream after its free
	Tag       uint64      `json:"tag,omitzero"`            // label of the request
	FreedAt   uint64      `json:"freed_at_count,omitzero"` // count of the free; 0 for live and safe chunks
}

// MapOf returns a snapshot of any strategy under a name. Address space without memory is left out.
// O(chunks), and it allocates as much.
//
// It differs from the original's in two points: the fragmentation of memory without a free byte is
// 0, where the original writes not-a-number, and a free chunk has no requested size, where the
// original writes the size of the previous block.
func MapOf(s alloc.Inspector, name string) MemoryMap {
	t := s.Stats()
	m := MemoryMap{Name: name, Bins: make([]BinSummary, numBins), Stats: MapStats{
		Allocs: t.Allocs, BytesInUse: t.Allocated, PeakInUse: t.PeakAllocated, LargestAlloc: t.LargestAlloc,
	}}
	if free := t.Reserved - t.Active; free > 0 {
		m.Stats.Fragmentation = float32(float64(free-power.LargestFree(s)) / float64(free))
	}
	for b := range m.Bins {
		m.Bins[b].Bin, m.Bins[b].Size = int32(b), firstBin<<b
	}
	for c := range s.Walk {
		if !c.State.Held() {
			continue
		}
		of := binOf(c.Size)
		k := MapChunk{Addr: c.Addr, Size: c.Size, Requested: c.Requested, Bin: of, Tag: c.Tag, FreedAt: c.FreedAt,
			InUse: c.State == alloc.Live || c.State == alloc.Pending}
		b := &m.Bins[of]
		b.BytesInBin += c.Size
		b.ChunksInBin++
		if k.InUse {
			b.BytesInUse += c.Size
			b.RequestedInUse += c.Requested
			b.ChunksInUse++
		}
		if k.InUse || c.Class == alloc.NoClass {
			k.Bin = -1
		}
		m.Chunks = append(m.Chunks, k)
	}
	return m
}

// binOf returns the bin of a size.
func binOf(n device.Size) int32 {
	return int32(min(max(bits.Len64(uint64(n/firstBin)), 1), numBins)) - 1
}
