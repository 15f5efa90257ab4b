package torch

// table is an open-addressing hash table of ids, which begin at 1. It is at most three quarters
// full. A map would take five times the memory, and as much again while growing.
type table struct{ slots []uint32 }

// find returns the slot of the entry for which same returns true, or else the free slot, with a 0
// in it, for a new entry. The table has room for one more.
func (t *table) find(hash uint64, same func(id uint32) bool) *uint32 {
	mask := uint64(len(t.slots) - 1)
	at := hash & mask
	for t.slots[at] != 0 && !same(t.slots[at]) {
		at = (at + 1) & mask
	}
	return &t.slots[at]
}

// reserve grows the table to hold at least n+1 entries.
func (t *table) reserve(n int, hash func(id uint32) uint64) {
	if 4*(n+1) <= 3*len(t.slots) {
		return
	}
	size := 64
	for 4*(n+1) > 3*size {
		size *= 2
	}
	old := t.slots
	t.slots = make([]uint32, size)
	for _, id := range old {
		if id != 0 {
			*t.find(hash(id), func(uint32) bool { return false }) = id
		}
	}
}
