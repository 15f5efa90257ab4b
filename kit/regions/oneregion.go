package regions

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// One is the device as a single region. A strategy that embeds a One by pointer has Stats and
// Close. It places blocks in Region, counts them in Counters and keeps to Close:
//
//   - Alloc and Free return [alloc.ErrClosed] once Closed reports true;
//
// - Walk yields chunks as long as Region has bytes: after a failed Close the region is still held,
// blocks included.
//
// The zero value holds nothing; closing it is a no-op.
type One struct {
	Region   device.Region // the region held from the device; the zero region after a successful Close
	Counters alloc.Stats   // result of Stats; the strategy counts its blocks and refusals here

	src    device.Source
	closed bool
}

// ReserveOne reserves a region of at least size bytes at a multiple of align, a power of two or
// zero for any address. Counters has the region, and its size as Limit.
//
// Postcondition: after an error, which is the device's, nothing is held and the result is the zero
// value.
func ReserveOne(src device.Source, size, align device.Size) (One, error) {
	region, err := src.Reserve(size, align)
	if err != nil {
		return One{}, err
	}
	o := One{Region: region, Counters: alloc.Stats{Limit: region.Size}, src: src}
	o.Counters.RegionAdded(region.Size)
	return o, nil
}

func (o *One) Stats() alloc.Stats { return o.Counters }

// Closed reports whether Close was called, even if the device refused.
func (o *One) Closed() bool { return o.closed }

// Close implements [alloc.Strategy]: it releases the region, live blocks included.
//
// Postcondition: after an error, which is the device's, the region is still held; another Close
// tries again. Otherwise Region is the zero region.
func (o *One) Close() error {
	o.closed = true
	if o.Region.Size == 0 {
		return nil
	}
	if err := o.src.Release(o.Region.Addr); err != nil {
		return err
	}
	o.Counters.RegionReleased(o.Region.Size)
	o.Counters.Emptied()
	o.Region = device.Region{}
	return nil
}
