// Package budget bounds the memory for reading a file, independently of the sizes in its header and
// of its compression ratio.
//
// A reader takes bytes from the [Budget] of its file before it grows a slice or a map, and returns
// the bytes that it releases. [Append] and [Put] do that for slices and maps. Fixed costs of a
// reader, such as a buffer, are not counted.
package budget

import (
	"fmt"
	"reflect"
	"runtime"
	"sync/atomic"

	"github.com/vramyard/vramyard/device"
)

// Default is the bound in bytes if the user sets none. The program, its buffers and its stacks take
// some 60 MiB more, so a process stays below 1 GiB.
const Default = 960 << 20

// Budget is the memory that one file may take. A nil Budget has no bound. It is safe for
// concurrent use.
type Budget struct {
	limit  int64
	used   atomic.Int64
	parent *Budget // of a share; nil otherwise
}

// New returns a budget of limit bytes; 0 means [Default].
func New(limit device.Size) *Budget {
	if limit == 0 {
		limit = Default
	}
	return &Budget{limit: int64(min(limit, 1<<62))}
}

// Error reports that the content of a file takes more memory than the budget has.
type Error struct {
	Limit device.Size // of the budget
}

// Error names the bound.
func (e *Error) Error() string { return fmt.Sprintf("takes more than %v of memory", e.Limit) }

// Take takes n bytes, n >= 0. If fewer are left it takes none and returns an [*Error].
func (b *Budget) Take(n int64) error {
	if b == nil {
		return nil
	}
	if n > b.limit {
		return &Error{device.Size(b.limit)}
	}
	if err := b.parent.Take(n); err != nil {
		return err
	}
	if b.used.Add(n) > b.limit {
		b.Give(n)
		return &Error{device.Size(b.limit)}
	}
	return nil
}

// Give returns n bytes that were taken.
func (b *Budget) Give(n int64) {
	if b != nil {
		b.used.Add(-n)
		b.parent.Give(n)
	}
}

// Check returns an [*Error] if fewer than n bytes are left. It takes none.
func (b *Budget) Check(n int64) error {
	if n > b.Left() {
		return &Error{device.Size(b.limit)}
	}
	return nil
}

// Left returns the bytes that can still be taken.
func (b *Budget) Left() int64 {
	if b == nil {
		return 1 << 62
	}
	return max(0, b.limit-b.used.Load())
}

// SizeOf returns the bytes of n values of a type.
func SizeOf[T any](n int) int64 { return int64(reflect.TypeFor[T]().Size()) * int64(n) }

// Append appends a value to a slice. When the slice grows, the new array is taken before the old
// one is given back.
func Append[T any](b *Budget, s []T, v T) ([]T, error) {
	if len(s) == cap(s) {
		var err error
		if s, err = Grow(b, s, 1); err != nil {
			return s, err
		}
	}
	return append(s, v), nil
}

// An array larger than limit/largeShare triggers a garbage collection before it is made. Otherwise
// arrays that were given back, which the budget no longer counts, would be on the heap beside it.
const largeShare = 16

// Make takes the bytes of an array of n values and returns an empty slice over it.
func Make[T any](b *Budget, n int) ([]T, error) {
	if err := b.Take(SizeOf[T](n)); err != nil {
		return nil, err
	}
	if b != nil && SizeOf[T](n) > b.limit/largeShare {
		runtime.GC()
	}
	return make([]T, 0, n), nil
}

// Grow makes room in a slice for n more values. A small array doubles, which copies and clears
// least, and a large one grows by a quarter, which leaves least unused. So appending takes
// amortized constant time.
func Grow[T any](b *Budget, s []T, n int) ([]T, error) {
	if cap(s)-len(s) >= n {
		return s, nil
	}
	const few = 4
	more := cap(s)
	if b != nil && SizeOf[T](2*more) > b.limit/largeShare {
		more /= 4
	}
	grown, err := Make[T](b, max(len(s)+n, cap(s)+more+few))
	if err != nil {
		return s, err
	}
	b.Give(SizeOf[T](cap(s)))
	return append(grown, s...), nil
}

// Release gives back the bytes of a slice that [Append] or [Grow] has grown.
func Release[T any](b *Budget, s []T) { b.Give(SizeOf[T](cap(s))) }

// Put sets an entry of a map and takes the bytes of a new one.
func Put[K comparable, V any](b *Budget, m map[K]V, k K, v V) error {
	n := len(m)
	m[k] = v
	if len(m) == n {
		return nil
	}
	return b.Take(EntrySize[K, V]())
}

// EntrySize returns the largest number of bytes that an entry of a map takes: just after it has
// doubled, a Go map is 7/16 full, and it has a control byte for each slot.
func EntrySize[K comparable, V any]() int64 {
	return (SizeOf[K](1) + SizeOf[V](1) + 1) * 16 / 7
}

// Share returns a budget whose bytes also count against b. [Budget.Close] returns all of them at
// once.
func (b *Budget) Share() *Budget {
	if b == nil {
		return nil
	}
	return &Budget{limit: b.limit, parent: b}
}

// Close returns the bytes that a share has taken and not returned.
func (b *Budget) Close() {
	if b != nil {
		b.Give(b.used.Load())
	}
}
