package cells

import "math/bits"

// arena holds the runs of words that large slabs have beside their records. The length of a run is
// a power of two, so that other slabs can reuse it.
type arena struct {
	all   []uint64
	spare [bits.UintSize][]uint32 // unused runs, by log2 of their length
}

// take returns the offset of n words. Their contents are unspecified.
func (r *arena) take(n uint32) uint32 {
	log := bits.Len32(n - 1)
	if s := r.spare[log]; len(s) > 0 {
		r.spare[log] = s[:len(s)-1]
		return s[len(s)-1]
	}
	at := uint32(len(r.all))
	r.all = append(r.all, make([]uint64, 1<<log)...)
	return at
}

// give takes back a run of n words.
func (r *arena) give(at, n uint32) {
	log := bits.Len32(n - 1)
	r.spare[log] = append(r.spare[log], at)
}

// bytes returns the host memory of the runs, unused capacity included.
func (r *arena) bytes() (n int) {
	n = cap(r.all) * 8
	for _, s := range r.spare {
		n += cap(s) * 4
	}
	return n
}
