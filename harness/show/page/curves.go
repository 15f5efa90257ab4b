package page

import (
	"math"
	"slices"

	"github.com/vramyard/vramyard/device"
)

// Curve is a figure over time: its highest and lowest value in each bucket, NaN where it was not
// sampled.
type Curve struct {
	Max []float64 // by bucket
	Min []float64 // by bucket
}

func newCurve(n int) Curve {
	return Curve{slices.Repeat([]float64{math.NaN()}, n), slices.Repeat([]float64{math.NaN()}, n)}
}

func (c *Curve) add(bucket int, v float64) {
	if !(v <= c.Max[bucket]) {
		c.Max[bucket] = v
	}
	if !(v >= c.Min[bucket]) {
		c.Min[bucket] = v
	}
}

// Curves are the curves of a run. Sizes are bytes.
type Curves struct {
	Requested   Curve // requested by blocks in use
	Allocated   Curve // granted to blocks that are not freed yet, as the strategy sees it
	Active      Curve // allocated and pending
	Reserved    Curve // reserved from the device, extremes within an event included
	Pending     Curve // freed, but still used by a stream
	LargestFree Curve // the largest free chunk, where sampled
	Internal    Curve // internal fragmentation: 1 - requested / allocated
	External    Curve // external fragmentation: 1 - largest free chunk / free bytes, see docs/metrics.md
}

func newCurves(n int) Curves {
	var c Curves
	for _, p := range c.All() {
		*p = newCurve(n)
	}
	return c
}

// All returns the curves in the order of the fields.
func (c *Curves) All() []*Curve {
	return []*Curve{
		&c.Requested, &c.Allocated, &c.Active, &c.Reserved, &c.Pending, &c.LargestFree, &c.Internal, &c.External,
	}
}

// Sum is a sum that every strategy reports.
type Sum int

// The sums in ascending order of their values.
const (
	Requested Sum = iota
	Allocated
	Active
	Reserved
	numSums
)

var sumNames = [numSums]string{"requested", "allocated", "active", "reserved"}

// String returns the name in lower case.
func (s Sum) String() string { return sumNames[s] }

// Peak is the highest value of a sum.
type Peak struct {
	Event int         // first event at which it was reached; -1: it never exceeded 0
	Bytes device.Size // the highest value
}

// share returns 1 - part/whole, or 0 if whole is 0.
func share(part, whole device.Size) float64 {
	if whole == 0 || part >= whole {
		return 0
	}
	return 1 - float64(part)/float64(whole)
}
