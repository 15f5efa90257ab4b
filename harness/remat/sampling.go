package remat

import (
	"errors"
	"fmt"
	"math"

	"github.com/vramyard/vramyard/device"
)

// SampleKind is a method of sampling candidates.
type SampleKind uint8

const (
	// SampleNone considers all candidates.
	SampleNone SampleKind = iota
	// SampleStride walks the n candidates with random strides from 1 to √n, as PyTorch's prototype
	// of DTR does: about 2√n candidates.
	SampleStride
	// SampleMGE considers √n evenly spaced candidates from a random start, as MegEngine does; see
	// QuirkHalf.
	SampleMGE
	// SampleK draws Sampling.K candidates without replacement.
	SampleK
)

// Sampling selects the candidates that a heuristic considers. If Minimum exempts all of them from
// eviction, all candidates are considered, so a run never fails because of its sample. The
// heuristic random ignores it.
type Sampling struct {
	Kind SampleKind // the method
	K    int        // sample size, for SampleK
}

// Minimum exempts small storages from eviction. If all candidates are small, they are evicted
// nevertheless, unless Cut is set.
type Minimum struct {
	Size device.Size // a storage of up to this many bytes is small; 0: none is
	// a storage below this percentage of the mean size of all candidates is small, as in PyTorch's
	// prototype; 0: none is
	Percent int
	// with Size, as in MegEngine: a storage that is small when it is created stays resident until it
	// is freed permanently, and does not count as a dependant of its inputs
	Cut bool
}

func (c *Config) check() error {
	switch {
	case c.Sampling.Kind > SampleK:
		return fmt.Errorf("sampling %d: want at most %d", c.Sampling.Kind, SampleK)
	case c.Sampling.Kind == SampleK && c.Sampling.K < 1:
		return fmt.Errorf("sampling: K is %d, want at least 1", c.Sampling.K)
	case c.MinEvictee.Percent < 0 || c.MinEvictee.Percent > 100:
		return fmt.Errorf("min evictee: %d percent, want 0 to 100", c.MinEvictee.Percent)
	case c.MinEvictee.Cut && c.MinEvictee.Percent > 0:
		return errors.New("min evictee: Cut needs Size, the mean is unknown when a tensor is created")
	case c.ParentOrder > LargestFirst:
		return fmt.Errorf("parent order %d: want at most %d", c.ParentOrder, LargestFirst)
	case c.Quirks&^AllQuirks != 0:
		return fmt.Errorf("quirks %#x: want at most %#x", uint16(c.Quirks), uint16(AllQuirks))
	}
	return nil
}

// sample draws the candidates to consider from a non-empty list. All but SampleK keep their order.
func (r *runner) sample(all []int32) []int32 {
	n := uint64(len(all))
	root := uint64(math.Sqrt(float64(n)))
	some := r.sampled[:0]
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
			if i < n { // MegEngine reads past the end here
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
		r.sampled = some
		return some[:k]
	}
	r.sampled = some
	return some
}

// minEvictee returns the size below which a storage is evicted only if all candidates are smaller.
func (r *runner) minEvictee() (least device.Size) {
	m := r.c.MinEvictee
	if m.Size > 0 && !m.Cut { // with Cut, small storages are pinned
		least = m.Size + 1
	}
	if m.Percent > 0 {
		sum := device.Size(0)
		all := r.candidates()
		for _, s := range all {
			sum += r.s.Storages[s].Size
		}
		least = max(least, sum/device.Size(len(all))*device.Size(m.Percent)/100)
	}
	return least
}

func (r *runner) largeEnough(list []int32) []int32 {
	least := r.minEvictee()
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

// small reports whether an output is too small ever to be evicted.
func (r *runner) small(t Tensor) bool {
	s := &r.s.Storages[r.s.Tensors[t].Storage]
	return r.c.MinEvictee.Cut && s.Root == t && s.Size <= r.c.MinEvictee.Size
}
