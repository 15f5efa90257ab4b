package torch

import (
	"math"
	"reflect"
)

// kind is the kind of a value.
type kind uint8

const (
	isNone kind = iota + 1
	isBool
	isInt   // x is an int64
	isUint  // x is at least 1<<63
	isWide  // more than 64 bits
	isFloat // x is its bits
	isText  // x is an index of machine.texts
	isMark
	isList  // x is an index of machine.nodes; a tuple is a closed list
	isDict  // x is an index of machine.nodes
	isEmpty // an empty list that is complete
	isPair  // x is an index of machine.pairs

	// Rows converted from dictionaries. There are n of them; x is the index of the first.
	isFrame      // an index of Snapshot.Frames
	isEntry      // numbered across all growing histories
	isBlock      // an index of machine.blocks
	isSegment    // an index of machine.segments
	isAnnotation // an index of machine.annotations

	// Lists of rows.
	isStack       // x is an index of Snapshot.Calls
	isHistory     // x is an index of machine.histories
	isBlocks      // x is an index of machine.runs, and likewise below
	isSegments    //
	isAnnotations //
)

// kindNames describes the kinds in error messages.
var kindNames = [...]string{
	isNone: "None", isBool: "a truth value", isInt: "an integer", isUint: "an integer",
	isWide: "an integer of more than 64 bits", isFloat: "a float", isText: "a string", isMark: "a mark",
	isList: "a list", isDict: "a dictionary", isEmpty: "an empty list", isPair: "a pair of integers",
	isFrame: "a frame", isEntry: "an entry of a history", isBlock: "a block", isSegment: "a segment",
	isAnnotation: "an annotation", isStack: "a list of frames", isHistory: "a list of entries",
	isBlocks: "a list of blocks", isSegments: "a list of segments", isAnnotations: "a list of annotations",
}

// value is an element of the stack, a container or the memo. Consecutive rows of one kind are a
// single value, so a list of a million entries is one value.
type value struct {
	x    uint64
	n    uint32
	kind kind
}

// valueBytes is the size of a value.
const valueBytes = 16

// isRow reports whether the value is a run of rows.
func (v value) isRow() bool { return v.kind >= isFrame && v.kind <= isAnnotation }

// joins reports whether w is the row after v.
func (v value) joins(w value) bool {
	return v.kind == w.kind && v.isRow() && v.x+uint64(v.n) == w.x && v.n < math.MaxUint32-w.n
}

// int returns a signed integer.
func (v value) int() (int64, bool) { return int64(v.x), v.kind == isInt }

// count returns an unsigned integer.
func (v value) count() (uint64, bool) {
	return v.x, v.kind == isUint || v.kind == isInt && int64(v.x) >= 0
}

// address returns an address. PyTorch's own writer stores 64 bits as a signed integer, so addresses
// of the upper half are negative.
func (v value) address() (uint64, bool) { return v.x, v.kind == isInt || v.kind == isUint }

// truth returns a boolean, which may be written as 0 or 1.
func (v value) truth() (is, ok bool) {
	return v.x != 0, v.kind == isBool || v.kind == isInt && v.x <= 1
}

// run is a range of consecutive rows.
type run struct{ first, n uint32 }

// arenaRows is the number of rows in a part of an arena.
const arenaRows = 128

// arena is a growing list of rows that do not move.
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

// ref returns a pointer to a row.
func (a *arena[T]) ref(i uint64) *T { return &a.parts[i/arenaRows][i%arenaRows] }

// bytes returns the memory of the rows, without the data that they refer to.
func (a *arena[T]) bytes() int {
	return len(a.parts)*arenaRows*a.rowBytes() + cap(a.parts)*24
}

func (a *arena[T]) rowBytes() int { return int(reflect.TypeFor[T]().Size()) }

func (a *arena[T]) at(i uint32) T { return a.parts[i/arenaRows][i%arenaRows] }

// rows returns the rows of a run, which must not be changed.
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
