package page

import (
	"cmp"
	"slices"
)

// foremost keeps the heaviest of many, in bounded memory. Among equals those that came first are
// heavier.
type foremost[T any] struct {
	most   int
	list   []heavy[T]
	came   int
	least  float64 // what weighs no more is not kept
	Count  int     // what was not kept
	Weight float64 // of that, together
}

// heavy is something with its weight.
type heavy[T any] struct {
	value  T
	weight float64
	came   int
}

func newForemost[T any](most int) foremost[T] { return foremost[T]{most: most, least: -1} }

// add takes one more. O(1) but for every most-th that is kept, which costs a sort.
func (f *foremost[T]) add(v T, weight float64) {
	f.came++
	if weight <= f.least || f.most <= 0 {
		f.Count++
		f.Weight += weight
		return
	}
	f.list = append(f.list, heavy[T]{v, weight, f.came})
	if len(f.list) >= 2*f.most {
		f.cut()
	}
}

// cut drops the lightest until there are no more than are to be kept.
func (f *foremost[T]) cut() {
	if len(f.list) <= f.most {
		return
	}
	slices.SortFunc(f.list, func(a, b heavy[T]) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.came, b.came))
	})
	for _, h := range f.list[f.most:] {
		f.Count++
		f.Weight += h.weight
	}
	f.list = f.list[:f.most]
	f.least = f.list[f.most-1].weight
}

// kept returns the heaviest in the order of compare.
func (f *foremost[T]) kept(compare func(a, b T) int) []T {
	f.cut()
	list := make([]T, len(f.list))
	for i, h := range f.list {
		list[i] = h.value
	}
	slices.SortFunc(list, compare)
	return list
}
