package page

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"io"
	"math/bits"
	"slices"
)

const (
	magic = "VYBLOCK1"

	perChunk   = 1024 // blocks
	perRead    = 64   // blocks read at once
	recordSize = 56   // bytes per block
	entrySize  = 64   // bytes per chunk in the directory
	endSize    = 40   // bytes of the trailer
)

// chunk is a directory entry, in the format of the file.
type chunk struct {
	Offset   int64  // of its first byte
	Count    uint32 // number of blocks
	Born     uint32 // earliest birth
	Died     uint32 // latest death, or the end of the trace
	Longest  uint32 // longest lifetime in events
	Size     uint64 // largest block
	Low, End uint64 // address range
	_        [2]uint64
}

// Writer writes a block file.
type Writer struct {
	out    *bufio.Writer
	at     int64
	events uint32
	bands  [32][]Rect // by the binary logarithm of the lifetime
	chunks []chunk
	blocks uint64
	err    error

	order []*Rect // buffers of flush
	text  []byte
}

// NewWriter returns a writer for the blocks of a trace with the given number of events.
func NewWriter(w io.Writer, events int) *Writer {
	x := &Writer{out: bufio.NewWriterSize(w, 1<<18), events: uint32(events)}
	x.write([]byte(magic))
	return x
}

// write writes bytes unless an earlier write failed.
func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	n, err := w.out.Write(b)
	w.at += int64(n)
	w.err = err
}

// Add writes a block, buffered. Amortised O(1). Errors are reported by [Writer.Close].
func (w *Writer) Add(r *Rect) {
	k := bits.Len32(max(min(r.Reclaimed, w.events)-r.Born, 1)) - 1
	w.bands[k] = append(w.bands[k], *r)
	w.blocks++
	if len(w.bands[k]) == perChunk {
		w.flush(k)
	}
}

func (w *Writer) flush(k int) {
	list := w.bands[k]
	if len(list) == 0 {
		return
	}
	order := w.order[:0]
	for i := range list {
		order = append(order, &list[i])
	}
	slices.SortFunc(order, func(a, b *Rect) int {
		if a.Size != b.Size {
			return cmp.Compare(b.Size, a.Size)
		}
		return cmp.Or(cmp.Compare(a.Born, b.Born), cmp.Compare(a.Addr, b.Addr))
	})
	c := chunk{Offset: w.at, Count: uint32(len(list)), Born: Never, Low: 1<<64 - 1, Size: uint64(order[0].Size)}
	text := w.text[:0]
	for _, r := range order {
		dies := min(r.Reclaimed, w.events)
		c.Born, c.Died, c.Longest = min(c.Born, r.Born), max(c.Died, dies), max(c.Longest, dies-r.Born)
		c.Low, c.End = min(c.Low, uint64(r.Addr)), max(c.End, uint64(r.Addr)+uint64(r.Size))
		text = appendRect(text, r)
	}
	w.write(text)
	w.chunks = append(w.chunks, c)
	w.bands[k], w.order, w.text = list[:0], order, text
}

// appendRect encodes a block.
func appendRect(b []byte, r *Rect) []byte {
	le := binary.LittleEndian
	b = le.AppendUint64(b, uint64(r.Addr))
	b = le.AppendUint64(b, uint64(r.Size))
	b = le.AppendUint64(b, uint64(r.Requested))
	b = le.AppendUint64(b, r.ID)
	for _, v := range [...]uint32{r.Born, r.Freed, r.Reclaimed, r.Tag, uint32(r.Class), uint32(r.Stream)} {
		b = le.AppendUint32(b, v)
	}
	return b
}

// Close writes the buffered blocks and the directory. It does not close the underlying writer.
func (w *Writer) Close() error {
	for k := range w.bands {
		w.flush(k)
	}
	le := binary.LittleEndian
	text, err := binary.Append(nil, le, w.chunks)
	if err != nil {
		return err
	}
	end := le.AppendUint64(nil, uint64(w.at))
	end = le.AppendUint64(end, uint64(len(w.chunks)))
	end = le.AppendUint64(end, w.blocks)
	end = le.AppendUint32(end, w.events)
	end = le.AppendUint32(end, crc32.ChecksumIEEE(append(text, end...)))
	w.write(text)
	w.write(end)
	w.write([]byte(magic))
	if w.err != nil {
		return w.err
	}
	return w.out.Flush()
}
