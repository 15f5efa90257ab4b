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

// errNotWhole is what is wrong with a file that was not written to its end, or was changed.
var errNotWhole = errors.New("the file of blocks is not whole")

// BlockFile is a file of blocks. It is safe for concurrent use.
type BlockFile struct {
	in     io.ReaderAt
	events uint32
	blocks uint64
	chunks []chunk
}

// OpenBlocks opens size bytes of a file of blocks. It reads the directory.
func OpenBlocks(in io.ReaderAt, size int64) (*BlockFile, error) {
	if size < int64(len(magic)+endSize) {
		return nil, errNotWhole
	}
	var end [endSize]byte
	if _, err := in.ReadAt(end[:], size-endSize); err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	directory, n := le.Uint64(end[0:]), le.Uint64(end[8:])
	if string(end[32:]) != magic || n > uint64(size)/entrySize || directory+n*entrySize+endSize != uint64(size) {
		return nil, errNotWhole
	}
	text := make([]byte, n*entrySize)
	if _, err := in.ReadAt(text, int64(directory)); err != nil {
		return nil, err
	}
	if crc32.Update(crc32.ChecksumIEEE(text), crc32.IEEETable, end[:28]) != le.Uint32(end[28:]) {
		return nil, errNotWhole
	}
	f := &BlockFile{in: in, blocks: le.Uint64(end[16:]), events: le.Uint32(end[24:]), chunks: make([]chunk, n)}
	if _, err := binary.Decode(text, le, f.chunks); err != nil {
		return nil, err
	}
	return f, nil
}

// Blocks returns how many blocks the file has.
func (f *BlockFile) Blocks() uint64 { return f.blocks }

// BlockWindow is a part of the picture, and how much is wanted of it.
type BlockWindow struct {
	From, To  int         // events: from the first to before the second
	Low, High device.Addr // addresses: from the first to before the second
	Most      int         // blocks, at least one
}

// FoundBlocks are the blocks of a window.
type FoundBlocks struct {
	Rects   []Rect // by birth
	Whole   bool   // nothing is left out
	Stopped bool   // so many blocks were looked at that some of those left out may be larger than some found
}

// spare is the part of what is wanted by which what is found may exceed it before it is cut: more
// takes memory, less takes time.
const spare = 4

// mostLooked bounds the blocks that are looked at for one window.
const mostLooked = 1 << 22

// Find finds the blocks of a window, those that cover most of its byte-events. It fails if the file
// cannot be read or ctx ends.
func (f *BlockFile) Find(ctx context.Context, w BlockWindow) (*FoundBlocks, error) {
	w.Most = max(w.Most, 1)
	s := search{f: f, w: w, least: -1, whole: true}
	s.from, s.to = uint32(min(max(w.From, 0), int(f.events))), uint32(min(max(w.To, 0), int(f.events)))
	s.to = max(s.to, s.from)
	for i := range f.chunks {
		c := &f.chunks[i]
		if c.Gone > s.from && c.Born < s.to && c.End > uint64(w.Low) && c.Low < uint64(w.High) {
			s.queue = append(s.queue, piece{c, 0, s.bound(c, c.Size)})
		}
	}
	heap.Init(&s.queue)
	looked := 0
	for len(s.queue) > 0 {
		if s.queue[0].bound <= s.least {
			s.whole = false // there may be none left in the window, but nobody has looked
			break
		}
		if looked >= mostLooked {
			return &FoundBlocks{Rects: s.finish(), Stopped: true}, nil
		}
		n, err := s.look(&s.queue[0])
		if err != nil {
			return nil, err
		}
		looked += n
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return &FoundBlocks{Rects: s.finish(), Whole: s.whole}, nil
}

// piece is the rest of a chunk that is not looked at yet.
type piece struct {
	*chunk
	next  int     // number of its first block in the chunk
	bound float64 // byte-events of the window that none of its blocks exceeds
}

// queue is a heap of pieces, the one that may hold the largest block first.
type queue []piece

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	if q[i].bound != q[j].bound {
		return q[i].bound > q[j].bound
	}
	return q[i].Offset < q[j].Offset
}

func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *queue) Push(x any) { *q = append(*q, x.(piece)) }

func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// search is one search for the blocks of a window.
type search struct {
	f        *BlockFile
	w        BlockWindow
	from, to uint32
	queue    queue
	found    []weighed
	least    float64 // what covers no more is not wanted
	whole    bool
	buffer   [perPiece * recordSize]byte
}

// weighed is a block with the byte-events that it covers of the window.
type weighed struct {
	Rect
	weight float64
}

// bound returns the most that a block of a chunk covers if it has no more than so many bytes.
func (s *search) bound(c *chunk, size uint64) float64 {
	return float64(size) * float64(min(c.Longest, s.to-s.from))
}

// look looks at the next blocks of the foremost piece, and returns how many.
func (s *search) look(p *piece) (int, error) {
	n := min(perPiece, int(p.Count)-p.next)
	b := s.buffer[:n*recordSize]
	if _, err := s.f.in.ReadAt(b, p.Offset+int64(p.next)*recordSize); err != nil {
		return 0, err
	}
	smallest := uint64(0)
	for ; len(b) > 0; b = b[recordSize:] {
		r := decodeRect(b)
		smallest = uint64(r.Size)
		from, to := max(r.Born, s.from), min(r.Dies, s.to)
		if from >= to || r.Addr >= s.w.High || r.Addr.Add(r.Size) <= s.w.Low {
			continue
		}
		if weight := float64(r.Size) * float64(to-from); weight > s.least {
			s.found = append(s.found, weighed{r, weight})
		} else {
			s.whole = false
		}
	}
	if len(s.found) >= s.w.Most+s.w.Most/spare+perPiece {
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

// cut drops the blocks that cover least until there are no more than are wanted. O(n).
func (s *search) cut() {
	if len(s.found) <= s.w.Most {
		return
	}
	heaviest(s.found, s.w.Most)
	s.found, s.whole = s.found[:s.w.Most], false
	s.least = s.found[0].weight
	for i := range s.found {
		s.least = min(s.least, s.found[i].weight)
	}
}

func (s *search) finish() []Rect {
	s.cut()
	order := make([]uint64, len(s.found)) // births and places: numbers are sorted many times faster than blocks
	for i := range s.found {
		order[i] = uint64(s.found[i].Born)<<32 | uint64(i)
	}
	slices.Sort(order)
	rects := make([]Rect, len(s.found))
	for i, at := range order {
		rects[i] = s.found[uint32(at)].Rect
	}
	for i := 0; i < len(rects); { // few are born at the same event
		next := i + 1
		for next < len(rects) && rects[next].Born == rects[i].Born {
			next++
		}
		slices.SortFunc(rects[i:next], byBirth)
		i = next
	}
	return rects
}

// decodeRect returns the block at the start of b.
func decodeRect(b []byte) Rect {
	le := binary.LittleEndian
	return Rect{
		Addr: device.Addr(le.Uint64(b)), Size: device.Size(le.Uint64(b[8:])), Requested: device.Size(le.Uint64(b[16:])),
		ID: le.Uint64(b[24:]), Born: le.Uint32(b[32:]), Freed: le.Uint32(b[36:]), Dies: le.Uint32(b[40:]),
		Tag: le.Uint32(b[44:]), Class: int32(le.Uint32(b[48:])), Stream: uint16(le.Uint32(b[52:])),
	}
}
