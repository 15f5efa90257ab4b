package trace

import (
	"encoding/binary"
	"slices"
)

// multiset is a multiset of numbers, sorted and compressed: some bytes for each distinct number. So
// the median lifetime of 50 million blocks is exact and takes less memory than a list.
type multiset struct {
	pending  []uint64 // not packed yet
	packed   []byte   // for each distinct number, ascending: the difference to the previous one, and its count
	spare    []byte   // the previous packed, for reuse
	count    int      // numbers, with repetitions
	distinct int      // distinct packed numbers
}

// leastPending is the minimum batch for packing. Packing scans all packed numbers, so pendingShare
// bounds the amortised cost of a number.
const (
	leastPending = 1 << 12
	pendingShare = 8
)

// add adds a number. O(log n) amortised.
func (b *multiset) add(v uint64) {
	b.count++
	b.pending = append(b.pending, v)
	if len(b.pending) >= max(leastPending, b.distinct/pendingShare) {
		b.pack()
	}
}

// pack merges the pending numbers into the packed ones.
func (b *multiset) pack() {
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
	// below packs the pending numbers below v and removes v, whose pending count it returns. With all
	// it packs every pending number.
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

// each calls f for every distinct packed number, ascending, until it returns false.
func (b *multiset) each(f func(v, times uint64) bool) {
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

// ranks returns the numbers at the given ranks, counted from 0. Ranks must be ascending and below
// count.
func (b *multiset) ranks(ranks ...int) []uint64 {
	b.pack()
	var list []uint64
	seen := 0
	b.each(func(v, times uint64) bool {
		seen += int(times)
		for len(list) < len(ranks) && ranks[len(list)] < seen {
			list = append(list, v)
		}
		return len(list) < len(ranks)
	})
	return list
}

// spread returns the lower median, the 90th percentile and the maximum, or 0 for each if the
// multiset is empty.
func (b *multiset) spread() (median, p90, most uint64) {
	n := b.count
	if n == 0 {
		return 0, 0, 0
	}
	list := b.ranks((n-1)/2, (n*9+9)/10-1, n-1)
	return list[0], list[1], list[2]
}
