package trace

// Without returns a source without the allocations that have these numbers, counted from 1 in the
// order of the Alloc events. Their events become marks, so event numbers do not change.
func Without(s Source, numbers map[uint64]struct{}) Source { return withoutSource{s, numbers} }

type withoutSource struct {
	Source
	numbers map[uint64]struct{}
}

func (w withoutSource) Batches(yield func([]Event) error) error {
	var out []Event
	var n uint64
	left := map[uint32]struct{}{} // slots of allocations that are left out
	return w.Source.Batches(func(events []Event) error {
		out = append(out[:0], events...)
		for i := range out {
			e := &out[i]
			if e.Kind == Alloc {
				n++
				delete(left, e.Slot)
				if _, ok := w.numbers[n]; ok {
					left[e.Slot] = struct{}{}
				}
			}
			if _, ok := left[e.Slot]; ok {
				*e = Event{Kind: Mark, Slot: NoSlot, Time: e.Time}
			}
		}
		return yield(out)
	})
}
