package page

import (
	"cmp"
	"slices"
)

// topK keeps the n heaviest values of a stream in bounded memory. Ties go to the
// earlier value.
type topK[T any] struct {
	most     int
	values   []T     // by slot
	list     []heavy // the kept values
	unused   []int32 // slots of dropped values
	arrivals int
	least    float64 // values of no more weight are dropped
	Count    int     // dropped values
	Weight   float64 // total weight of dropped values
}

// heavy is a value with its weight. It holds the slot of the value, because sorting moves it.
type heavy struct {
	weight  float64
	arrival int
	slot    int32
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
	slot := int32(len(f.values))
	if n := len(f.unused); n > 0 {
		slot, f.unused = f.unused[n-1], f.unused[:n-1]
		f.values[slot] = v
	} else {
		f.values = append(f.values, v)
	}
	f.list = append(f.list, heavy{weight, f.arrivals, slot})
	if len(f.list) >= 2*f.most {
		f.cut()
	}
}

// cut drops the lightest values beyond the limit.
func (f *topK[T]) cut() {
	if len(f.list) <= f.most {
		return
	}
	slices.SortFunc(f.list, func(a, b heavy) int {
		if a.weight != b.weight {
			return cmp.Compare(b.weight, a.weight)
		}
		return cmp.Compare(a.arrival, b.arrival)
	})
	for _, h := range f.list[f.most:] {
		f.Count++
		f.Weight += h.weight
		f.unused = append(f.unused, h.slot)
	}
	f.list = f.list[:f.most]
	f.least = f.list[f.most-1].weight
}

// kept returns the heaviest values, sorted by compare.
func (f *topK[T]) kept(compare func(a, b T) int) []T {
	f.cut()
	list := make([]T, len(f.list))
	for i, h := range f.list {
		list[i] = f.values[h.slot]
	}
	slices.SortFunc(list, compare)
	return list
}
