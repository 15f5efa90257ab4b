package regions

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// One is the device as a single region, for a strategy that needs no more. A pointer
// to a strategy that embeds it has Stats and Close; what remains is to place blocks in
// Region, to book them in Counters, and to keep to Close:
//
//   - Alloc and Free return [alloc.ErrClosed] once Closed reports true;
//   - Walk yields chunks as long as Region has bytes: a device may refuse to take the region
//     back, which then is still held, blocks and all.
//
// The zero value holds nothing, and there is nothing to close.
type One struct {
	Region   device.Region // all that is held of the device; the zero region once it was given back
	Counters alloc.Stats   // what Stats returns; the strategy books its blocks and refusals here

	src    device.Source
	closed bool
}

// ReserveOne reserves a region of at least size bytes whose start is a multiple of align, a
// power of two or zero for no wish. The region is booked, and is the limit.
//
// Postcondition: on error, which is the device's, nothing is held and the result is the zero
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

// Stats implements [alloc.Inspector].
func (o *One) Stats() alloc.Stats { return o.Counters }

// Closed reports whether Close was called, whatever the device answered.
func (o *One) Closed() bool { return o.closed }

// Close implements [alloc.Strategy]: it gives the region back, and with it what is live there.
//
// Postcondition: on error, which is the device's, the region is still held and booked;
// calling Close again tries once more. Otherwise Region is the zero region.
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
