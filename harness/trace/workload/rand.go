package workload

import "math/bits"

// Rand is a splitmix64 generator of random numbers. Its zero value is seeded with 0.
//
// Workloads must be the same in every language. splitmix64 is four lines in any of them, and the
// standard library may change its generators.
type Rand struct{ state uint64 }

// NewRand returns a generator with the given seed.
func NewRand(seed uint64) *Rand { return &Rand{seed} }

// Next returns the next 64 random bits.
func (r *Rand) Next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Below returns a random number below n, computed from the upper 32 bits of the next number; for n
// beyond 2^32 it takes only 2^32 evenly spread values. It returns 0 for n = 0.
func (r *Rand) Below(n uint64) uint64 {
	below, _ := bits.Mul64(r.Next()>>32<<32, n) // the product of 32 and 64 bits exceeds 64 bits
	return below
}
