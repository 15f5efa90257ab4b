package sim

// A number names a thing that the device made: 8 bits of the device's ordinal, so that a
// thing of another device is none of its own; 28 bits of generation, so that the number of
// what is gone stays wrong while its slot serves others; 28 bits of slot. The generation of a
// slot starts at 1, hence no number is zero.
const (
	slotBits       = 28
	generationBits = 28
	slotMask       = 1<<slotBits - 1
	generationMask = 1<<generationBits - 1
)

// table keeps things under numbers. It allocates nothing once it has held as many.
type table[T any] struct {
	ordinal uint64
	slots   []slot[T]
	free    []int32 // slots without a thing; the last is used next
}

// slot is a place for a thing.
type slot[T any] struct {
	thing      T
	generation uint64
	used       bool
}

// add returns the number of a new thing and the thing, which holds what the last one in its
// slot left, for slices to be used again. It returns false when there are as many as numbers
// can tell apart.
func (t *table[T]) add() (number uint64, thing *T, ok bool) {
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
	return t.number(i), &s.thing, true
}

// number returns the number of what is in slot i.
func (t *table[T]) number(i int32) uint64 {
	return t.ordinal<<(slotBits+generationBits) | t.slots[i].generation<<slotBits | uint64(i)
}

// find returns the slot of a number, and false if it names nothing here.
func (t *table[T]) find(number uint64) (i int32, ok bool) {
	at := number & slotMask
	if at >= uint64(len(t.slots)) || !t.slots[at].used || t.number(int32(at)) != number {
		return 0, false
	}
	return int32(at), true
}

// at returns the thing in slot i. The pointer holds until the next add.
func (t *table[T]) at(i int32) *T { return &t.slots[i].thing }

// remove empties slot i.
func (t *table[T]) remove(i int32) {
	t.slots[i].used = false
	t.free = append(t.free, i)
}
