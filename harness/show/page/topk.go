package page

import (
	"cmp"
	"slices"
)

// topK keeps the n heaviest values of a stream in bounded memory. Ties go to the
// earlier value.
type topK[T any] struct {
	most     int
	list     []heavy[T]
	arrivals int
	least    float64 // values of no more weight are dropped
	Count    int     // dropped values
	Weight   float64 // total weight of dropped values
}

// heavy is a value with its weight.
type heavy[T any] struct {
	value   T
	weight  float64
	arrival int
}

func newTopK[T any](most int) topK[T] { return topK[T]{most: most, least: -1} }

// add takes a value. Amortised O(log n).
func (f *topK[T]) add(v T, weight float64) {
	f.arrivals++
	if weight <= f.least || f.most <= 0 {
		f.Count++
		f.Weight += weight
		return
	}
	f.list = append(f.list, heavy[T]{v, weight, f.arrivals})
	if len(f.list) >= 2*f.most {
		f.cut()
	}
}

// cut drops the lightest values beyond the limit.
func (f *topK[T]) cut() {
	if len(f.list) <= f.most {
		return
	}
	slices.SortFunc(f.list, func(a, b heavy[T]) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.arrival, b.arrival))
	})
	for _, h := range f.list[f.most:] {
		f.Count++
		f.Weight += h.weight
	}
	f.list = f.list[:f.most]
	f.least = f.list[f.most-1].weight
}

// kept returns the heaviest values, sorted by compare.
func (f *topK[T]) kept(compare func(a, b T) int) []T {
	f.cut()
	list := make([]T, len(f.list))
	for i, h := range f.list {
		list[i] = h.value
	}
	slices.SortFunc(list, compare)
	return list
}
