package remat

import (
	"errors"
	"fmt"
	"math"

	"github.com/vramyard/vramyard/device"
)

// SampleKind is a way to look at fewer candidates.
type SampleKind uint8

const (
	// SampleNone looks at all.
	SampleNone SampleKind = iota
	// SampleStride goes through all with steps drawn from 1 to the root of their number, as PyTorch's
	// prototype of DTR: about twice the root is seen.
	SampleStride
	// SampleMGE looks at the root of their number, as MegEngine, evenly spread behind a start that is
	// drawn; with QuirkHalf as MegEngine does it.
	SampleMGE
	// SampleK draws Sampling.K of them, each once.
	SampleK
)

// Sampling says which candidates a heuristic looks at. Where none of them is evicted it looks at
// all, so sampling never runs out of memory by itself. The heuristic random needs no sample.
type Sampling struct {
	Kind SampleKind // how they are chosen
	K    int        // how many, for SampleK
}

// Minimum says which storages are too small to be evicted. If all are, any is evicted, unless Cut.
type Minimum struct {
	Size device.Size // bytes up to which a storage is too small; 0 for none
	// of the mean size of candidates, below which a storage is too small, as in PyTorch's prototype; 0
	// for none
	Percent int
	// with Size, as in MegEngine: what is too small at birth stays until it is freed for good, and
	// keeps nothing it is made of
	Cut bool
}

func (c *Config) check() error {
	switch {
	case c.Sampling.Kind > SampleK:
		return fmt.Errorf("sampling %d: want at most %d", c.Sampling.Kind, SampleK)
	case c.Sampling.Kind == SampleK && c.Sampling.K < 1:
		return fmt.Errorf("a sample of %d: want at least 1", c.Sampling.K)
	case c.MinEvictee.Percent < 0 || c.MinEvictee.Percent > 100:
		return fmt.Errorf("a minimum of %d percent: want 0 to 100", c.MinEvictee.Percent)
	case c.MinEvictee.Cut && c.MinEvictee.Percent > 0:
		return errors.New("a minimum that is a share of the mean is not known at birth: want no cut")
	case c.ParentOrder > LargestFirst:
		return fmt.Errorf("parent order %d: want at most %d", c.ParentOrder, LargestFirst)
	case c.Quirks&^AllQuirks != 0:
		return fmt.Errorf("quirks %#x: want at most %#x", uint16(c.Quirks), uint16(AllQuirks))
	}
	return nil
}

// sample returns what the heuristic looks at of a list that is not empty, in the order in which it
// looks.
func (r *runner) sample(all []int32) []int32 {
	n := uint64(len(all))
	root := uint64(math.Sqrt(float64(n)))
	some := r.some[:0]
	switch r.c.Sampling.Kind {
	case SampleNone:
		return all
	case SampleStride:
		for i := r.random.Below(root); i < n; i += 1 + r.random.Below(root) {
			some = append(some, all[i])
		}
	case SampleMGE:
		i := r.random.Below(root)
		for range root {
			if i < n { // MegEngine reads what lies behind the last if it comes there
				some = append(some, all[i])
			}
			if r.c.Quirks&QuirkHalf != 0 {
				i += r.random.Below(root)
			} else {
				i += root
			}
		}
	case SampleK:
		some = append(some, all...)
		k := min(r.c.Sampling.K, len(all))
		for i := range k {
			j := i + int(r.random.Below(n-uint64(i)))
			some[i], some[j] = some[j], some[i]
		}
		r.some = some
		return some[:k]
	}
	r.some = some
	return some
}

// leastEvictee returns the bytes below which a storage is not evicted while there are others.
func (r *runner) leastEvictee() (least device.Size) {
	m := r.c.MinEvictee
	if m.Size > 0 && !m.Cut { // what is cut is no candidate
		least = m.Size + 1
	}
	if m.Percent > 0 {
		sum := device.Size(0)
		for _, s := range r.pool.list() {
			sum += r.s.Storages[s].Size
		}
		least = max(least, sum/device.Size(r.pool.n)*device.Size(m.Percent)/100)
	}
	return least
}

func (r *runner) worth(list []int32) []int32 {
	least := r.leastEvictee()
	if least == 0 {
		return list
	}
	r.large = r.large[:0]
	for _, s := range list {
		if r.s.Storages[s].Size >= least {
			r.large = append(r.large, s)
		}
	}
	return r.large
}

// small reports whether an output is too small at birth to be evicted ever.
func (r *runner) small(t Tensor) bool {
	s := &r.s.Storages[r.s.Tensors[t].Storage]
	return r.c.MinEvictee.Cut && s.Root == t && s.Size <= r.c.MinEvictee.Size
}
