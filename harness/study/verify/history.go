package verify

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// History is what a recording says an allocator did.
type History struct {
	Name     string    // of the trace
	Hash     string    // SHA-256 of the trace's decompressed file
	Addr     string    // SHA-256 of the decompressed file with the addresses; "" if the trace has them
	Segments []Segment // held when the recording began, by address
	Blocks   []Block   // live when the recording began, by address
	Steps    []Step    // what happened, in order

	Pools [][2]uint64 // of a snapshot: the file's numbers of the private pools, of pool 1 first
}

// Segment is one reservation of the recorded allocator.
type Segment struct {
	device.Region               // where it lies
	Stream        device.Stream // stream whose blocks lie in it
	Pool          alloc.PoolID  // private pool; 0 for the default pool
	Lost          bool          // nothing tells the pool
	Grows         bool          // mapped in a range that can grow
	Small         bool          // of one that grows: for small blocks
}

// Block is a block that was live when the recording began.
type Block struct {
	ID        uint64      // of the allocation in the trace
	Addr      device.Addr // first byte
	Requested device.Size // bytes asked for
	Size      device.Size // bytes granted; 0 where the recording does not tell
}

// Kind says what a step is.
type Kind uint8

// The kinds of steps.
const (
	Alloc        Kind = iota // an allocation of Size bytes was placed at Addr
	Free                     // the block at Addr became free
	SegmentAlloc             // a segment was taken from the device, for the allocation that follows
	SegmentFree              // a segment was given back
	SegmentMap               // memory was mapped in a segment that grows, for the allocation that follows
	SegmentUnmap             // memory of such a segment was given back
)

var kindNames = [...]string{"alloc", "free", "segment_alloc", "segment_free", "segment_map", "segment_unmap"}

// String returns the kind as the file of addresses names it.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "invalid"
}

// Step is one thing that happened while the recording ran.
type Step struct {
	Kind   Kind          // what happened
	Event  int           // number of the event of the trace, marks left out; of the entry of a snapshot
	ID     uint64        // Alloc, Free: the allocation's name in the trace
	Addr   device.Addr   // of the block or the segment
	Size   device.Size   // bytes asked for, or of the segment
	Stream device.Stream // of the request or the segment
	Pool   alloc.PoolID  // SegmentAlloc, SegmentMap: private pool; 0 for the default pool
	Lost   bool          // SegmentAlloc, SegmentMap: nothing tells the pool
	Small  bool          // SegmentMap: for small blocks
}
