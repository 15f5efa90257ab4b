package postmortem

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/units"
)

// sparseShare is the share of a segment that is in use at most if the segment is sparse: a tenth.
const sparseShare = 10

// Final is the memory of a snapshot when it was written, from its segments and blocks. Every reserved byte is in
// one of Live, Pending, Returnable, PoolEmpty and Beside.
type Final struct {
	Reserved   Amount      `json:"reserved"`                        // segments
	Live       Amount      `json:"live"`                            // blocks of the program, with rounding
	Requested  device.Size `json:"requested_bytes"`                 // requested for live and pending blocks
	Pending    Amount      `json:"pending"`                         // freed blocks that a stream may still use
	Returnable device.Size `json:"empty_cache_bytes"`               // returned by torch.cuda.empty_cache()
	Empty      Amount      `json:"empty_segments"`                  // segments without a block in use
	PoolEmpty  device.Size `json:"private_pool_empty_bytes"`        // empty segments of private pools
	Beside     device.Size `json:"free_beside_blocks_in_use_bytes"` // free, in segments with a block in use
	Sparse     []Sparse    `json:"sparse_segments"`                 // segments held by few bytes, most free bytes first
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
	end := len(r.Course.Steps)
	l := r.livesAt(end)
	who, pageOf := l.who(end), torchPages(r.Promises)
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
func (f *Final) add(segment []alloc.Chunk, page device.Size, who Who) {
	s := Sparse{Addr: segment[0].Region}
	var largest *alloc.Chunk
	var returnable device.Size
	for i := range segment {
		c := &segment[i]
		s.Bytes += c.Size
		if c.State == alloc.Free {
			s.Free += c.Size
			if page != 0 {
				returnable += wholePages(device.Size(c.Addr-c.Region), c.Size, page)
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
		f.Beside += s.Free - returnable
		if page == 0 && s.Used.Bytes <= s.Bytes/sparseShare {
			s.By = who(largest.Tag)
			f.Sparse = append(f.Sparse, s)
		}
	}
}

// wholePages returns the bytes of the pages that lie whole in a range of n bytes at an offset.
func wholePages(offset, n, page device.Size) device.Size {
	first, end := (offset+page-1)/page*page, (offset+n)/page*page
	return max(first, end) - first
}

// mostSparse is how many sparse segments are listed as text.
const mostSparse = 5

// WriteText writes the heap as text.
func (f *Final) WriteText(w io.Writer) error {
	var b strings.Builder
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "  %-10s %s\n", what, units.Printable(fmt.Sprintf(format, args...)))
	}
	line("reserved", "%s in %s", units.Bytes(f.Reserved.Bytes), units.Several(f.Reserved.Count, "segment"))
	line("live", "%s requested in %s, %s with rounding", units.Bytes(f.Requested), units.Several(f.Live.Count+f.Pending.Count, "block"),
		units.Bytes(f.Live.Bytes+f.Pending.Bytes))
	if f.Pending.Count > 0 {
		line("pending", "%s of that in %s, freed by the program, still in use by a stream", units.Bytes(f.Pending.Bytes), units.Several(f.Pending.Count, "block"))
	}
	f.writeEmpty(line)
	line("beside", "%s free beside blocks in use, which no call returns", units.Bytes(f.Beside))
	var free device.Size
	for i := range f.Sparse {
		free += f.Sparse[i].Free
	}
	if len(f.Sparse) > 0 {
		line("held", "%s of that in %s of which at most a tenth is in use", units.Bytes(free), units.Several(len(f.Sparse), "segment"))
	}
	for i := range f.Sparse[:min(len(f.Sparse), mostSparse)] {
		s := &f.Sparse[i]
		by := ""
		if len(s.By.Stack) > 0 {
			by = ": " + s.By.name()
		}
		line("", "%s at %#x by %s of %s%s", units.Bytes(s.Bytes), uint64(s.Addr), units.Several(s.Used.Count, "block"), units.Bytes(s.Used.Bytes), by)
	}
	if more := len(f.Sparse) - mostSparse; more > 0 {
		line("", "and %s more", units.Several(more, "segment"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeEmpty writes the lines about memory without a block in use.
func (f *Final) writeEmpty(line func(what, format string, args ...any)) {
	const returns = "torch.cuda.empty_cache() returns"
	if whole := f.Empty.Bytes - f.PoolEmpty; whole == f.Returnable && f.PoolEmpty == 0 {
		line("empty", "%s in %s, which %s", units.Bytes(whole), units.Several(f.Empty.Count, "segment"), returns)
		return
	}
	line("empty", "%s in %s", units.Bytes(f.Empty.Bytes), units.Several(f.Empty.Count, "segment"))
	line("returnable", "%s of free segments and pages, which %s", units.Bytes(f.Returnable), returns)
	if f.PoolEmpty > 0 {
		line("pools", "%s in empty segments of private pools, which a CUDA graph may still use", units.Bytes(f.PoolEmpty))
	}
}
