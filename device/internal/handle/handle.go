package handle

// A number names a thing of a table: 8 bits of the table's ordinal, so that a thing of another one
// is none of its own; 28 bits of generation, so that the number of what is gone stays wrong while
// its slot serves others; 28 bits of slot. The generation of a slot starts at 1, hence no number is
// zero.
const (
	slotBits       = 28
	generationBits = 28
	slotMask       = 1<<slotBits - 1
	generationMask = 1<<generationBits - 1
)

// Table keeps things under numbers. It allocates nothing once it has held as many. The zero Table
// is empty, with the ordinal 0.
type Table[T any] struct {
	// Ordinal tells the numbers of tables apart. It may not change once there was a thing.
	Ordinal uint8
	slots   []slot[T]
	free    []int32 // slots without a thing; the last is used next
}

// slot is a place for a thing.
type slot[T any] struct {
	thing      T
	generation uint64
	used       bool
}

// Add returns the number of a new thing and the thing, which holds what the last one in its
// slot left, for slices to be used again. It returns false when there are as many as numbers
// can tell apart.
func (t *Table[T]) Add() (number uint64, thing *T, ok bool) {
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
	return t.Number(i), &s.thing, true
}

// Number returns the number of what is in slot i.
func (t *Table[T]) Number(i int32) uint64 {
	return uint64(t.Ordinal)<<(slotBits+generationBits) | t.slots[i].generation<<slotBits | uint64(i)
}

// Find returns the slot of a number, and false if it names nothing here.
func (t *Table[T]) Find(number uint64) (i int32, ok bool) {
	at := number & slotMask
	if at >= uint64(len(t.slots)) || !t.slots[at].used || t.Number(int32(at)) != number {
		return 0, false
	}
	return int32(at), true
}

// At returns the thing in slot i. The pointer holds until the next Add.
func (t *Table[T]) At(i int32) *T { return &t.slots[i].thing }

// Remove empties slot i.
func (t *Table[T]) Remove(i int32) {
	t.slots[i].used = false
	t.free = append(t.free, i)
}

// All yields every thing, by slot.
func (t *Table[T]) All(yield func(*T) bool) {
	for i := range t.slots {
		if s := &t.slots[i]; s.used && !yield(&s.thing) {
			return
		}
	}
}
