package handle

// A handle consists of 8 bits of the table's ordinal, so that other tables reject it; 28 bits of
// generation, so that it stays invalid after its slot is reused; and 28 bits of slot. The
// generation of a slot starts at 1, so no handle is zero.
const (
	slotBits       = 28
	generationBits = 28
	slotMask       = 1<<slotBits - 1
	generationMask = 1<<generationBits - 1
)

// Table is a slot table. It allocates only to grow beyond its maximum size so far. The zero Table
// is empty, with the ordinal 0.
type Table[T any] struct {
	// Ordinal distinguishes the handles of tables. It must not change after the first Add.
	Ordinal uint8
	slots   []slot[T]
	free    []int32 // free slots, used last in, first out
}

// slot is an entry of the table.
type slot[T any] struct {
	value      T
	generation uint32
	used       bool
}

// Add returns the handle of a new entry, and the entry, which keeps the content of the slot's last
// entry so that slices can be reused. It returns false if all slots are in use.
func (t *Table[T]) Add() (number uint64, value *T, ok bool) {
	i := int32(len(t.slots))
	switch n := len(t.free); {
	case n > 0:
		i, t.free = t.free[n-1], t.free[:n-1]
	case len(t.slots) > slotMask:
		return 0, nil, false
	default:
		t.slots = append(t.slots, slot[T]{})
	}
	s := &t.slots[i]
	s.used = true
	s.generation = s.generation%generationMask + 1
	return t.Number(i), &s.value, true
}

// Number returns the handle of slot i.
func (t *Table[T]) Number(i int32) uint64 {
	return uint64(t.Ordinal)<<(slotBits+generationBits) | uint64(t.slots[i].generation)<<slotBits | uint64(i)
}

// Find returns the slot of a handle, and false if the handle is invalid.
func (t *Table[T]) Find(number uint64) (i int32, ok bool) {
	at := number & slotMask
	if at >= uint64(len(t.slots)) || !t.slots[at].used || t.Number(int32(at)) != number {
		return 0, false
	}
	return int32(at), true
}

// At returns the entry in slot i. The pointer is valid until the next Add.
func (t *Table[T]) At(i int32) *T { return &t.slots[i].value }

// Remove empties slot i.
func (t *Table[T]) Remove(i int32) {
	t.slots[i].used = false
	t.free = append(t.free, i)
}

// All yields every entry, by slot.
func (t *Table[T]) All(yield func(*T) bool) {
	for i := range t.slots {
		if s := &t.slots[i]; s.used && !yield(&s.value) {
			return
		}
	}
}
