package torch

import (
	"math"
	"reflect"
)

// kind says what a value on the stack is.
type kind uint8

const (
	isNone kind = iota + 1
	isBool
	isInt   // x is an int64
	isUint  // from 1<<63
	isWide  // more than 64 bits
	isFloat // x is its bits
	isText  // x is an index of machine.texts
	isMark
	isList  // x is an index of machine.nodes; a tuple is a closed list
	isDict  // x is an index of machine.nodes
	isEmpty // an empty list that nobody changes any more
	isPair  // x is an index of machine.pairs

	// Rows that were made of dictionaries. There are n of them; x is the first.
	isFrame      // an index of Snapshot.Frames
	isEntry      // counted through all histories that grow
	isBlock      // an index of machine.blocks
	isSegment    // an index of machine.segments
	isAnnotation // an index of machine.annotations

	// Lists of such rows.
	isStack       // x is an index of Snapshot.Calls
	isHistory     // x is an index of machine.histories
	isBlocks      // x is an index of machine.runs, and so below
	isSegments    //
	isAnnotations //
)

// kindNames says for messages what a value is.
var kindNames = [...]string{
	isNone: "None", isBool: "a truth value", isInt: "an integer", isUint: "an integer",
	isWide: "an integer of more than 64 bits", isFloat: "a float", isText: "a string", isMark: "a mark",
	isList: "a list", isDict: "a dictionary", isEmpty: "an empty list", isPair: "a pair of integers",
	isFrame: "a frame", isEntry: "an entry of a history", isBlock: "a block", isSegment: "a segment",
	isAnnotation: "an annotation", isStack: "a list of frames", isHistory: "a list of entries",
	isBlocks: "a list of blocks", isSegments: "a list of segments", isAnnotations: "a list of annotations",
}

// value is something on the stack, in a container or in the memo. Values of one kind of row that
// follow each other are one value, so that a list of a million entries is one.
type value struct {
	x    uint64
	n    uint32
	kind kind
}

// valueBytes is what a value takes.
const valueBytes = 16

// isRow reports whether a value can stand for several.
func (v value) isRow() bool { return v.kind >= isFrame && v.kind <= isAnnotation }

// joins reports whether w continues v.
func (v value) joins(w value) bool {
	return v.kind == w.kind && v.isRow() && v.x+uint64(v.n) == w.x && v.n < math.MaxUint32-w.n
}

// int returns a number with a sign.
func (v value) int() (int64, bool) { return int64(v.x), v.kind == isInt }

// count returns a number without one.
func (v value) count() (uint64, bool) {
	return v.x, v.kind == isUint || v.kind == isInt && int64(v.x) >= 0
}

// address returns an address. PyTorch's own writer has 8 bytes for each, so that the upper half
// of all addresses comes with a sign.
func (v value) address() (uint64, bool) { return v.x, v.kind == isInt || v.kind == isUint }

// truth returns a truth value, which may be written as a number.
func (v value) truth() (is, ok bool) {
	return v.x != 0, v.kind == isBool || v.kind == isInt && v.x <= 1
}

// run is rows that follow each other.
type run struct{ first, n uint32 }

// arenaRows is how many rows lie together.
const arenaRows = 128

// arena holds rows that stay where they are, so that growing copies nothing.
type arena[T any] struct {
	parts [][]T
	n     int
}

func (a *arena[T]) add(row T) uint64 {
	if a.n%arenaRows == 0 {
		a.parts = append(a.parts, make([]T, 0, arenaRows))
	}
	last := &a.parts[len(a.parts)-1]
	*last = append(*last, row)
	a.n++
	return uint64(a.n - 1)
}

// ref returns a row that may be changed.
func (a *arena[T]) ref(i uint64) *T { return &a.parts[i/arenaRows][i%arenaRows] }

// bytes returns what the rows take, apart from what they refer to.
func (a *arena[T]) bytes() int {
	return len(a.parts)*arenaRows*a.rowBytes() + cap(a.parts)*24
}

func (a *arena[T]) rowBytes() int { return int(reflect.TypeFor[T]().Size()) }

func (a *arena[T]) at(i uint32) T { return a.parts[i/arenaRows][i%arenaRows] }

// rows returns the rows of a run, which the caller does not change.
func (a *arena[T]) rows(r run) []T {
	part, from := r.first/arenaRows, r.first%arenaRows
	if to := from + r.n; to <= arenaRows && r.n > 0 {
		return a.parts[part][from:to:to]
	}
	all := make([]T, 0, r.n)
	for i := range r.n {
		all = append(all, a.at(r.first+i))
	}
	return all
}
