package torch

import (
	"bufio"
	"encoding/binary"
	"math"
	"math/bits"
)

// batch is the maximum number of items appended at once. PyTorch's viewer passes them as the
// arguments of one call, and its stack overflows between 120,000 and 300,000.
const batch = 1000

// emitter writes the operations of a pickle of protocol 4. A string or frame is written once; later
// uses refer to the memo.
type emitter struct {
	w       *bufio.Writer
	memo    uint32            // next index of the memo
	keys    map[string]uint32 // memo index of each key
	open    []int             // items written so far, for each open list
	scratch [16]byte          // operands: bytes passed to w escape to the heap

	lists []bool // whether each open container of a setting is a list
}

// byte writes an opcode and its operand. The writer keeps errors until it is flushed.
func (e *emitter) byte(op byte, b ...byte) {
	e.w.WriteByte(op)
	for _, x := range b {
		e.w.WriteByte(x)
	}
}

// uint4 writes an opcode and 4 bytes.
func (e *emitter) uint4(op byte, x uint32) {
	e.w.Write(binary.LittleEndian.AppendUint32(append(e.scratch[:0], op), x))
}

// int writes an integer in the shortest form, as Python does.
func (e *emitter) int(x int64) {
	switch {
	case x >= 0 && x <= math.MaxUint8:
		e.byte('K', byte(x))
	case x >= 0 && x <= math.MaxUint16:
		e.byte('M', byte(x), byte(x>>8))
	case x >= math.MinInt32 && x <= math.MaxInt32:
		e.uint4('J', uint32(x))
	default:
		magnitude := uint64(x ^ x>>63)
		e.long(uint64(x), bits.Len64(magnitude)/8+1) // one bit more, for the sign
	}
}

func (e *emitter) uint(x uint64) {
	if x <= math.MaxInt64 {
		e.int(int64(x))
		return
	}
	e.long(x, 9)
}

// long writes an integer of n bytes, at most 9; the ninth is 0.
func (e *emitter) long(x uint64, n int) {
	b := append(binary.LittleEndian.AppendUint64(append(e.scratch[:0], 0x8a, byte(n)), x), 0)
	e.w.Write(b[:2+n])
}

func (e *emitter) float(f float64) {
	e.w.Write(binary.BigEndian.AppendUint64(append(e.scratch[:0], 'G'), math.Float64bits(f)))
}

func (e *emitter) bool(is bool) {
	if is {
		e.byte(0x88)
		return
	}
	e.byte(0x89)
}

func (e *emitter) text(text string) {
	if len(text) <= math.MaxUint8 {
		e.byte(0x8c, byte(len(text)))
	} else {
		e.uint4('X', uint32(len(text)))
	}
	e.w.WriteString(text)
}

// key writes a constant string: in full the first time, then as a reference to the memo.
func (e *emitter) key(text string) {
	if index, ok := e.keys[text]; ok {
		e.get(index)
		return
	}
	e.text(text)
	e.keys[text] = e.memoize()
}

// memoize stores the last written value in the memo and returns its index.
func (e *emitter) memoize() uint32 {
	e.byte(0x94)
	e.memo++
	return e.memo - 1
}

// get writes a reference to the memo.
func (e *emitter) get(index uint32) {
	if index <= math.MaxUint8 {
		e.byte('h', byte(index))
		return
	}
	e.uint4('j', index)
}

func (e *emitter) list() {
	e.byte(']')
	e.open = append(e.open, 0)
}

func (e *emitter) item() {
	n := &e.open[len(e.open)-1]
	if *n%batch == 0 {
		if *n > 0 {
			e.byte('e')
		}
		e.byte('(')
	}
	*n++
}

func (e *emitter) endList() {
	if e.open[len(e.open)-1] > 0 {
		e.byte('e')
	}
	e.open = e.open[:len(e.open)-1]
}

func (e *emitter) dict() { e.byte('}', '(') }

func (e *emitter) endDict() { e.byte('u') }
