package workload

import "math/bits"

// Rand is a splitmix64 generator of random numbers. Its zero value is seeded with 0.
//
// It is here because the workloads must be the same in every language: splitmix64 is four
// lines in any of them, and the standard library's generators are not promised to stay.
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

// Below returns a random number below n, made of the upper 32 bits of the next number: of a
// range beyond 2^32 it reaches 2^32 evenly spread numbers. It returns 0 for n = 0.
func (r *Rand) Below(n uint64) uint64 {
	below, _ := bits.Mul64(r.Next()>>32<<32, n) // a product of 32 and 64 bits does not fit 64
	return below
}
