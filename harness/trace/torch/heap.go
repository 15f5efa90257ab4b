package torch

import (
	"cmp"
	"fmt"
	"slices"
)

// Heap sums up the memory of one private pool and stream at the time of the dump. Sizes are bytes.
type Heap struct {
	Pool      [2]uint64 `json:"pool"`            // private pool; both 0 for the default pool
	Stream    int64     `json:"stream"`          // handle
	Segments  int       `json:"segment_count"`   // segments; for expandable ones mapped ranges
	Reserved  uint64    `json:"reserved_bytes"`  // bytes of the segments
	Allocated uint64    `json:"allocated_bytes"` // live blocks
	Pending   uint64    `json:"pending_bytes"`   // blocks freed by the program that a stream may still use
	Requested uint64    `json:"requested_bytes"` // bytes requested by live and pending blocks

	Free     uint64 `json:"free_bytes"`           // free blocks
	Holes    int    `json:"free_count"`           // number of free blocks
	Largest  uint64 `json:"largest_free_bytes"`   // largest free block
	Split    uint64 `json:"inactive_split_bytes"` // free blocks that share their segment with other blocks
	Empty    uint64 `json:"empty_segment_bytes"`  // segments without live or pending blocks
	Pinned   int    `json:"pinned_segment_count"` // partly free segments kept by a single live or pending block
	PinnedBy uint64 `json:"pinning_block_bytes"`  // those blocks
	Held     uint64 `json:"pinned_free_bytes"`    // free bytes of the pinned segments
}

// heaps sums up the segments of a device, by pool and stream.
func heaps(segments []Segment) []Heap {
	type key struct {
		pool   [2]uint64
		stream int64
	}
	places := map[key]int{}
	var list []Heap
	for i := range segments {
		s := &segments[i]
		k := key{s.Pool, s.Stream}
		at, found := places[k]
		if !found {
			at = len(list)
			places[k] = at
			list = append(list, Heap{Pool: s.Pool, Stream: s.Stream})
		}
		list[at].add(s)
	}
	slices.SortFunc(list, func(a, b Heap) int {
		return cmp.Or(slices.Compare(a.Pool[:], b.Pool[:]), cmp.Compare(a.Stream, b.Stream))
	})
	return list
}

func (h *Heap) add(s *Segment) {
	used := 0
	var free, busy uint64
	for _, b := range s.Blocks {
		switch b.State {
		case Inactive:
			h.Holes++
			h.Largest = max(h.Largest, b.Size)
			free += b.Size
			if b.Size < s.Total {
				h.Split += b.Size
			}
			continue
		case ActiveAllocated:
			h.Allocated += b.Size
		case ActivePendingFree:
			h.Pending += b.Size
		}
		used++
		busy += b.Size
		h.Requested += b.Requested
	}
	h.Segments++
	h.Reserved += s.Total
	h.Free += free
	switch used {
	case 0:
		h.Empty += s.Total
	case 1:
		if free > 0 {
			h.Pinned++
			h.PinnedBy += busy
			h.Held += free
		}
	}
}

// External returns the external fragmentation: 1 - largest free block / free bytes. It is 0 without
// free bytes.
func (h *Heap) External() float64 {
	if h.Free == 0 {
		return 0
	}
	return 1 - float64(h.Largest)/float64(h.Free)
}

// String returns a summary in one line.
func (h *Heap) String() string {
	return fmt.Sprintf("pool %s, stream %d: %d segments, %d bytes reserved, %d allocated, %d pending, %d requested; "+
		"%d bytes free in %d blocks, the largest %d (external fragmentation %.1f %%), %d of them beside blocks in use; "+
		"%d bytes in empty segments; %d segments pinned by one block each, %d bytes, with %d bytes free beside them",
		poolName(h.Pool), h.Stream, h.Segments, h.Reserved, h.Allocated, h.Pending, h.Requested,
		h.Free, h.Holes, h.Largest, 100*h.External(), h.Split, h.Empty, h.Pinned, h.PinnedBy, h.Held)
}
