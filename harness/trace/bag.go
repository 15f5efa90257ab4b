package trace

import (
	"encoding/binary"
	"slices"
)

// bag counts how often it was given each number. It keeps the numbers in order, packed: some bytes
// for each different one, however often it comes. So the median of the lives of 50 million blocks
// is known exactly, and takes less memory than a list of them.
type bag struct {
	pending  []uint64 // not packed yet
	packed   []byte   // for each number, by size: its distance from the one before, and how often it came
	spare    []byte   // what packed was before
	count    int      // numbers, each as often as it came
	distinct int      // different ones among those that are packed
}

// leastPending is how many numbers are packed at once at least. Packing takes a look at all that is
// packed already, so that the share of pendingShare bounds what a number costs.
const (
	leastPending = 1 << 12
	pendingShare = 8
)

// add gives the bag a number. O(log n) amortised.
func (b *bag) add(v uint64) {
	b.count++
	b.pending = append(b.pending, v)
	if len(b.pending) >= max(leastPending, b.distinct/pendingShare) {
		b.pack()
	}
}

// pack merges what is pending into what is packed.
func (b *bag) pack() {
	if len(b.pending) == 0 {
		return
	}
	slices.Sort(b.pending)
	out := b.spare[:0]
	var last uint64
	distinct := 0
	put := func(v, times uint64) {
		out = binary.AppendUvarint(binary.AppendUvarint(out, v-last), times)
		last = v
		distinct++
	}
	rest := b.pending
	// below packs what is pending below v, and returns how often v itself is.
	below := func(v uint64, all bool) (times uint64) {
		for len(rest) > 0 && (all || rest[0] <= v) {
			head, n := rest[0], 1
			for n < len(rest) && rest[n] == head {
				n++
			}
			rest = rest[n:]
			if head == v && !all {
				return uint64(n)
			}
			put(head, uint64(n))
		}
		return 0
	}
	b.each(func(v, times uint64) bool {
		times += below(v, false)
		put(v, times)
		return true
	})
	below(0, true)
	b.packed, b.spare, b.pending, b.distinct = out, b.packed, b.pending[:0], distinct
}

// each calls f for every different number that is packed, by size, until it returns false.
func (b *bag) each(f func(v, times uint64) bool) {
	var v uint64
	for at := 0; at < len(b.packed); {
		gap, n := binary.Uvarint(b.packed[at:])
		times, m := binary.Uvarint(b.packed[at+n:])
		at += n + m
		if v += gap; !f(v, times) {
			return
		}
	}
}

// ranks returns the numbers at some places of the sorted list, counted from 0, in the order of the
// places, which must not decrease and lie in the list.
func (b *bag) ranks(places ...int) []uint64 {
	b.pack()
	var list []uint64
	seen := 0
	b.each(func(v, times uint64) bool {
		seen += int(times)
		for len(list) < len(places) && places[len(list)] < seen {
			list = append(list, v)
		}
		return len(list) < len(places)
	})
	return list
}

// spread returns the lower median, what nine of ten do not exceed, and the largest; all 0 of an
// empty bag.
func (b *bag) spread() (median, tenth, most uint64) {
	n := b.count
	if n == 0 {
		return 0, 0, 0
	}
	list := b.ranks((n-1)/2, (n*9+9)/10-1, n-1)
	return list[0], list[1], list[2]
}
