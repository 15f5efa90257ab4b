package verify

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// History is the recorded behaviour of an allocator.
type History struct {
	Name     string    // of the trace
	Hash     string    // SHA-256 of the trace's decompressed file
	Addr     string    // SHA-256 of the decompressed address file; "" if the trace has the addresses
	Segments []Segment // at the start of the recording, by address
	Blocks   []Block   // live at the start of the recording, by address
	Steps    []Step    // in order

	Pools [][2]uint64 // of a snapshot: IDs of the private pools in the file, from pool 1 on
}

// Segment is a reservation of the recorded allocator.
type Segment struct {
	device.Region               // its range
	Stream        device.Stream // stream of its blocks
	Pool          alloc.PoolID  // private pool; 0: the default pool
	PoolUnknown   bool          // the pool is unknown
	Grows         bool          // expandable: mapped in a larger range
	Small         bool          // if expandable: for small blocks
}

// Block is a block live at the start of the recording.
type Block struct {
	ID        uint64      // allocation ID in the trace
	Addr      device.Addr // first byte
	Requested device.Size // requested bytes
	Size      device.Size // granted bytes; 0: unknown
}

// Kind is the kind of a step.
type Kind uint8

// The kinds of steps.
const (
	Alloc        Kind = iota // an allocation of Size bytes was placed at Addr
	Free                     // the block at Addr became free
	SegmentAlloc             // a segment was reserved for the next allocation
	SegmentFree              // a segment was released
	SegmentMap               // memory of an expandable segment was mapped for the next allocation
	SegmentUnmap             // memory of an expandable segment was unmapped
	Configure                // the program changed the settings of the allocator to Conf
)

var kindNames = [...]string{"alloc", "free", "segment_alloc", "segment_free", "segment_map", "segment_unmap",
	"conf"}

// String returns the name of the kind in the address file.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "invalid"
}

// Step is a recorded action.
type Step struct {
	Kind        Kind          // the action
	Event       int           // index of the trace's event, without marks, or of the snapshot's entry
	ID          uint64        // Alloc, Free: allocation ID in the trace
	Addr        device.Addr   // of the block or the segment
	Size        device.Size   // requested bytes, or size of the segment
	Stream      device.Stream // of the request or the segment
	Pool        alloc.PoolID  // SegmentAlloc, SegmentMap: private pool; 0: the default pool
	PoolUnknown bool          // SegmentAlloc, SegmentMap: the pool is unknown
	Small       bool          // SegmentMap: for small blocks
	Conf        string        // Configure: the settings
}
