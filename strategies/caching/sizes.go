package caching

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
)

// The fixed sizes of PyTorch.
const (
	quantum      device.Size = 512             // every size of a block is a multiple of it
	mostSmall                = device.MiB      // largest block of the small pool
	smallSegment             = 2 * device.MiB  // a segment of the small pool
	usualSegment             = 20 * device.MiB // a segment of the large pool, unless set otherwise
	leastAlone               = 10 * device.MiB // from here on a request gets a segment for itself ...
	aloneQuantum             = 2 * device.MiB  // ... of a multiple of this
	mostTail                 = device.MiB      // most that stays with a block of the large pool instead of being split off
	mostRequest  device.Size = 1<<60 - 1       // anything larger PyTorch refuses at once
)

// Requests are rounded by the interval of the power of two below them: the first interval is for
// requests below 2 MiB, the second from 2 MiB to 4 MiB, and so on.
const (
	intervals     = 16
	firstInterval = 20 // log2 of the first interval's start
)

// settings holds the parameters of a [Config] in the form that the algorithm uses.
type settings struct {
	maxSplit          device.Size            // blocks from this size on are never split; the largest size if all are split
	maxRounding       device.Size            // such a block serves a request that is smaller by less than this
	roundingSet       bool                   // a string has set it; if not, it is largeSegment
	largeSegment      device.Size            // a segment of the large pool, and its pages where segments grow
	gcThreshold       float64                // share of the bound above which old segments go back; 0 for never
	divisions         [intervals]device.Size // steps from one power of two to the next, by interval; 0 and 1 for none
	unstepped         bool                   // no interval has steps
	expandable        bool                   // new segments grow by mapping
	grew              bool                   // some segments may grow: expandable is set, or was
	limited           bool                   // the bytes held are bounded ...
	fraction          float64                // ... by this share of the device
	fractionSet       bool                   // the string has the fraction
	ties              tie                    // chooses among free blocks of one size
	lastBegunFirst    bool                   // of several redirections the last one begun decides, not the first one
	oneStreamCaptures bool                   // only a redirection of one stream counts as a capture
	borrowsFirst      bool                   // pools with use_on_oom come before the release of memory, not last
	borrowsGrowing    bool                   // blocks of segments that grow serve outside of such a pool, too
	wholeBlocks       bool                   // blocks of a pool with no_split are not split
}

// bound sets the share of the device that may be held. In 2.11 the whole device means no bound.
func (s *settings) bound(fraction float64, rules string) {
	s.fraction = fraction
	s.limited = rules == Rules26 || fraction != 1
}

// limitAt returns the limit on a device of n bytes.
func (s *settings) limitAt(n device.Size) device.Size {
	if !s.limited {
		return noLimit
	}
	return device.Size(s.fraction * float64(n))
}

// barAt returns the bytes held above which old segments are collected, on a device of n bytes.
func (s *settings) barAt(n device.Size) device.Size {
	return device.Size(s.gcThreshold * float64(min(s.limitAt(n), max(n, 1))))
}

// isSmall reports whether a rounded size belongs to the small pool.
func isSmall(n device.Size) bool {
	return n <= mostSmall
}

// round returns the rounded size of a request of n bytes.
//
// Precondition: 0 < n <= mostRequest.
func (s *settings) round(n device.Size) device.Size {
	if s.unstepped || n < quantum {
		return device.AlignUp(n, quantum)
	}
	return s.roundInSteps(n)
}

// roundInSteps is round for n of at least a quantum if some interval has steps.
func (s *settings) roundInSteps(n device.Size) device.Size {
	log := bits.Len64(uint64(n)) - 1
	steps := s.divisions[intervalOf(n)]
	// Small requests would get steps below the quantum. The product wraps like the original's.
	if steps <= 1 || n <= quantum*steps {
		return device.AlignUp(n, quantum)
	}
	below := device.Size(1) << log
	step := below >> (bits.Len64(uint64(steps)) - 1)
	switch {
	case n == below:
		return n
	case step == 0:
		return 2 * below
	}
	return device.AlignUp(n, step)
}

// intervalOf returns the interval of a size above 0.
func intervalOf(n device.Size) int {
	return min(max(bits.Len64(uint64(n))-1-firstInterval, 0), intervals-1)
}

// segmentSize returns the size of a new segment for a rounded size.
func (s *settings) segmentSize(n device.Size) device.Size {
	switch {
	case isSmall(n):
		return smallSegment
	case n < leastAlone:
		return s.largeSegment
	}
	return device.AlignUp(n, aloneQuantum)
}

// leastTail returns the least bytes that are split off from a block of a kind. A large block keeps
// a rest of up to mostTail, which would serve little, unless the rest may be unmapped.
func (s *settings) leastTail(kind uint32) device.Size {
	if kind == large && !s.expandable {
		return mostTail + 1
	}
	return quantum
}
