package page

import (
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"

	"github.com/vramyard/vramyard/device"
)

// errDamaged: the file is truncated or was changed.
var errDamaged = errors.New("the block file is truncated or damaged")

// BlockFile is a file of all blocks of a replay. It is safe for concurrent use.
type BlockFile struct {
	in     io.ReaderAt
	events uint32
	blocks uint64
	chunks []chunk
}

// OpenBlocks opens a file of blocks of size bytes and reads its directory.
func OpenBlocks(in io.ReaderAt, size int64) (*BlockFile, error) {
	if size < int64(len(magic)+endSize) {
		return nil, errDamaged
	}
	var end [endSize]byte
	if _, err := in.ReadAt(end[:], size-endSize); err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	directory, n := le.Uint64(end[0:]), le.Uint64(end[8:])
	if string(end[32:]) != magic || n > uint64(size)/entrySize || directory+n*entrySize+endSize != uint64(size) {
		return nil, errDamaged
	}
	text := make([]byte, n*entrySize)
	if _, err := in.ReadAt(text, int64(directory)); err != nil {
		return nil, err
	}
	if crc32.Update(crc32.ChecksumIEEE(text), crc32.IEEETable, end[:28]) != le.Uint32(end[28:]) {
		return nil, errDamaged
	}
	f := &BlockFile{in: in, blocks: le.Uint64(end[16:]), events: le.Uint32(end[24:]), chunks: make([]chunk, n)}
	if _, err := binary.Decode(text, le, f.chunks); err != nil {
		return nil, err
	}
	return f, nil
}

// Blocks returns the number of blocks in the file.
func (f *BlockFile) Blocks() uint64 { return f.blocks }

// BlockWindow is a window of events and addresses, with a limit of blocks.
type BlockWindow struct {
	From, To  int         // events From to To-1
	Low, High device.Addr // addresses Low to High-1
	Most      int         // most blocks to return, at least 1
}

// FoundBlocks are the blocks found in a window.
type FoundBlocks struct {
	Rects    []Rect // by birth
	Complete bool   // no block is missing
	Stopped  bool   // the search hit its limit, so larger blocks may be missing
}

// Between two cuts, the results may exceed their limit by 1/slackShare of it. A larger excess takes
// more memory and fewer cuts.
const slackShare = 4

// maxExamined bounds the blocks examined in a search.
const maxExamined = 1 << 22

// Find returns the blocks with the most byte-events in a window. It fails if the file cannot be
// read or ctx ends.
func (f *BlockFile) Find(ctx context.Context, w BlockWindow) (*FoundBlocks, error) {
	w.Most = max(w.Most, 1)
	s := search{f: f, w: w, least: -1, complete: true}
	s.from, s.to = uint32(min(max(w.From, 0), int(f.events))), uint32(min(max(w.To, 0), int(f.events)))
	s.to = max(s.to, s.from)
	for i := range f.chunks {
		c := &f.chunks[i]
		if c.Died > s.from && c.Born < s.to && c.End > uint64(w.Low) && c.Low < uint64(w.High) {
			s.queue = append(s.queue, remainder{c, 0, s.bound(c, c.Size)})
		}
	}
	heap.Init(&s.queue)
	examined := 0
	for len(s.queue) > 0 {
		if s.queue[0].bound <= s.least {
			s.complete = false // the rest was not examined, it may be outside the window
			break
		}
		if examined >= maxExamined {
			return &FoundBlocks{Rects: s.finish(), Stopped: true}, nil
		}
		n, err := s.examine(&s.queue[0])
		if err != nil {
			return nil, err
		}
		examined += n
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return &FoundBlocks{Rects: s.finish(), Complete: s.complete}, nil
}

// remainder is the unexamined part of a chunk.
type remainder struct {
	*chunk
	next  int     // index in the chunk of its first block
	bound float64 // upper bound of a block's byte-events in the window
}

// queue is a heap of remainders, highest bound first.
type queue []remainder

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	if q[i].bound != q[j].bound {
		return q[i].bound > q[j].bound
	}
	return q[i].Offset < q[j].Offset
}

func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *queue) Push(x any) { *q = append(*q, x.(remainder)) }

func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// search is the state of [BlockFile.Find].
type search struct {
	f        *BlockFile
	w        BlockWindow
	from, to uint32
	queue    queue
	found    []weighed
	least    float64 // blocks of no more weight are ignored
	complete bool
	buffer   [perRead * recordSize]byte
}

// weighed is a block with its byte-events in the window.
type weighed struct {
	Rect
	weight float64
}

// bound returns an upper bound of the byte-events of a block of at most size bytes in a chunk.
func (s *search) bound(c *chunk, size uint64) float64 {
	return float64(size) * float64(min(c.Longest, s.to-s.from))
}

// examine reads the next blocks of a remainder and returns their number.
func (s *search) examine(p *remainder) (int, error) {
	n := min(perRead, int(p.Count)-p.next)
	b := s.buffer[:n*recordSize]
	if _, err := s.f.in.ReadAt(b, p.Offset+int64(p.next)*recordSize); err != nil {
		return 0, err
	}
	smallest := uint64(0)
	for ; len(b) > 0; b = b[recordSize:] {
		r := decodeRect(b)
		smallest = uint64(r.Size)
		from, to := max(r.Born, s.from), min(r.Reclaimed, s.to)
		if from >= to || r.Addr >= s.w.High || r.Addr.Add(r.Size) <= s.w.Low {
			continue
		}
		if weight := float64(r.Size) * float64(to-from); weight > s.least {
			s.found = append(s.found, weighed{r, weight})
		} else {
			s.complete = false
		}
	}
	if len(s.found) >= s.w.Most+s.w.Most/slackShare+perRead {
		s.cut()
	}
	if p.next += n; p.next == int(p.Count) {
		heap.Pop(&s.queue)
	} else {
		p.bound = s.bound(p.chunk, smallest)
		heap.Fix(&s.queue, 0)
	}
	return n, nil
}

// cut drops the lightest blocks beyond the limit. O(n).
func (s *search) cut() {
	if len(s.found) <= s.w.Most {
		return
	}
	heaviest(s.found, s.w.Most)
	s.found, s.complete = s.found[:s.w.Most], false
	s.least = s.found[0].weight
	for i := range s.found {
		s.least = min(s.least, s.found[i].weight)
	}
}

func (s *search) finish() []Rect {
	s.cut()
	order := make([]uint64, len(s.found)) // birth and index: sorting integers is many times faster than sorting blocks
	for i := range s.found {
		order[i] = uint64(s.found[i].Born)<<32 | uint64(i)
	}
	slices.Sort(order)
	rects := make([]Rect, len(s.found))
	for i, at := range order {
		rects[i] = s.found[uint32(at)].Rect
	}
	for i := 0; i < len(rects); { // few blocks are born at the same event
		next := i + 1
		for next < len(rects) && rects[next].Born == rects[i].Born {
			next++
		}
		slices.SortFunc(rects[i:next], byBirth)
		i = next
	}
	return rects
}

// decodeRect decodes the block at the start of b.
func decodeRect(b []byte) Rect {
	le := binary.LittleEndian
	return Rect{
		Addr: device.Addr(le.Uint64(b)), Size: device.Size(le.Uint64(b[8:])), Requested: device.Size(le.Uint64(b[16:])),
		ID: le.Uint64(b[24:]), Born: le.Uint32(b[32:]), Freed: le.Uint32(b[36:]), Reclaimed: le.Uint32(b[40:]),
		Tag: le.Uint32(b[44:]), Class: int32(le.Uint32(b[48:])), Stream: uint16(le.Uint32(b[52:])),
	}
}
