package postmortem

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// sparseShare is the inverse of the largest share in use of a sparse segment.
const sparseShare = 10

// Final is the memory of a snapshot when it was written, from its segments and blocks. Every
// reserved byte is in one of Live, Pending, Returnable, PoolEmpty and Beside.
type Final struct {
	Reserved      Amount      `json:"reserved"`                        // segments
	Live          Amount      `json:"live"`                            // blocks of the program, with rounding
	Requested     device.Size `json:"requested_bytes"`                 // requested for live and pending blocks
	Pending       Amount      `json:"pending"`                         // freed blocks that a stream may still use
	Returnable    device.Size `json:"empty_cache_bytes"`               // returned by torch.cuda.empty_cache()
	Empty         Amount      `json:"empty_segments"`                  // segments without a block in use
	PoolEmpty     device.Size `json:"private_pool_empty_bytes"`        // empty segments of private pools
	InactiveSplit device.Size `json:"free_beside_blocks_in_use_bytes"` // free, in segments with a block in use
	Sparse        []Sparse    `json:"sparse_segments"`                 // segments held by few bytes, most free bytes first
}

// Sparse is a segment of which at most a tenth is in use, and which therefore cannot be returned.
type Sparse struct {
	Addr  device.Addr `json:"addr"`       // first byte
	Bytes device.Size `json:"bytes"`      // size of the segment
	Used  Amount      `json:"used"`       // blocks in use
	Free  device.Size `json:"free_bytes"` // bytes free beside them
	By    Owner       `json:"held_by"`    // of the largest block in use
}

// Final sums up the segments and blocks of the file.
func (r *Recording) Final() *Final {
	end := len(r.Timeline.Steps)
	l := r.livesAt(end)
	who, pageOf := l.ownerLookup(end), torchPages(r.Promises)
	f := &Final{Sparse: []Sparse{}}
	chunks := r.fileChunks(l, r.filePools())
	for len(chunks) > 0 {
		n := slices.IndexFunc(chunks, func(c alloc.Chunk) bool { return c.Region != chunks[0].Region })
		if n < 0 {
			n = len(chunks)
		}
		f.add(chunks[:n], pageOf(chunks[0]), who)
		chunks = chunks[n:]
	}
	slices.SortStableFunc(f.Sparse, func(a, b Sparse) int { return cmp.Compare(b.Free, a.Free) })
	return f
}

// add adds a segment that is mapped in pages, or comes and goes whole if page is 0.
func (f *Final) add(segment []alloc.Chunk, page device.Size, who OwnerLookup) {
	s := Sparse{Addr: segment[0].Region}
	var largest *alloc.Chunk
	var returnable device.Size
	for i := range segment {
		c := &segment[i]
		s.Bytes += c.Size
		if c.State == alloc.Free {
			s.Free += c.Size
			if page != 0 {
				returnable += whole(*c, page)
			}
			continue
		}
		if c.State == alloc.Pending {
			f.Pending.add(c.Size)
		} else {
			f.Live.add(c.Size)
		}
		f.Requested += c.Requested
		s.Used.add(c.Size)
		if largest == nil || c.Size > largest.Size {
			largest = c
		}
	}
	f.Reserved.add(s.Bytes)
	switch {
	case largest == nil && segment[0].Pool != 0:
		f.Empty.add(s.Bytes)
		f.PoolEmpty += s.Bytes
	case largest == nil:
		f.Empty.add(s.Bytes)
		f.Returnable += s.Bytes
	default:
		if segment[0].Pool != 0 {
			returnable = 0
		}
		f.Returnable += returnable
		f.InactiveSplit += s.Free - returnable
		if page == 0 && s.Used.Bytes <= s.Bytes/sparseShare {
			s.By = who(largest.Tag)
			f.Sparse = append(f.Sparse, s)
		}
	}
}
