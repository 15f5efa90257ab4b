package page

import (
	"math"
	"slices"

	"github.com/vramyard/vramyard/device"
)

// Curve is the course of a figure: its highest and lowest value in each bucket. A bucket in which
// it was not looked at has NaN.
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
	Requested   Curve // asked for by blocks that the program uses
	Allocated   Curve // granted to blocks that the strategy was not told are free
	Active      Curve // with what is pending on a stream
	Reserved    Curve // held from the device, at most and at least within an event
	Pending     Curve // freed, and still used by a stream
	LargestFree Curve // the largest free chunk, where it was looked at
	Internal    Curve // 1 - requested / allocated, of what the program uses
	External    Curve // 1 - largest free chunk / free bytes, as docs/metrics.md defines it
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

// Sum names a sum that every strategy has.
type Sum int

// The sums, each at least the one before.
const (
	Requested Sum = iota
	Allocated
	Active
	Reserved
	numSums
)

var sumNames = [numSums]string{"requested", "allocated", "active", "reserved"}

// String returns the sum in lower case.
func (s Sum) String() string { return sumNames[s] }

// Peak is the highest value of a sum.
type Peak struct {
	Event int         // the first after which, or within which, it was so high; -1 if it never was above 0
	Bytes device.Size // how high
}

// share returns 1 - part/whole, 0 where there is no whole.
func share(part, whole device.Size) float64 {
	if whole == 0 || part >= whole {
		return 0
	}
	return 1 - float64(part)/float64(whole)
}
