package sim

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/device"
)

// Device is a simulated GPU. It is not safe for concurrent use.
type Device struct {
	cfg     Config
	regions []device.Region // sorted by address, disjoint
	next    device.Addr     // lowest address that Bump may still hand out
	usage   device.Usage
}

var _ device.Device = (*Device)(nil)

// New returns an empty simulated device. It fails if cfg has a field out of range.
func New(cfg Config) (*Device, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Device{cfg: cfg, next: Base, usage: device.Usage{Capacity: cfg.Capacity}}, nil
}

// Config returns the configuration with every default filled in.
func (d *Device) Config() Config { return d.cfg }

// Usage implements [device.Device].
func (d *Device) Usage() device.Usage { return d.usage }

// Regions yields the regions held, by address. The device must not be called meanwhile.
func (d *Device) Regions(yield func(device.Region) bool) {
	for _, r := range d.regions {
		if !yield(r) {
			return
		}
	}
}

// Reserve implements [device.Source]. It costs O(regions held) and fails with
// [device.ErrInvalid] for a size of zero or an alignment that is no power of two, and
// with [device.ErrOutOfMemory] as the package comment says.
func (d *Device) Reserve(size, align device.Size) (device.Region, error) {
	if size == 0 || align != 0 && !device.IsPowerOfTwo(align) {
		d.usage.Calls.Refused++
		return device.Region{}, device.ErrInvalid
	}
	r, i, ok := d.place(size, max(align, d.cfg.Align))
	if !ok {
		d.usage.Calls.Refused++
		return device.Region{}, device.ErrOutOfMemory
	}
	d.regions = slices.Insert(d.regions, i, r)
	d.next = max(d.next, r.End())
	d.account(r, 1)
	d.usage.Calls.Reserve++
	return r, nil
}

// Release implements [device.Source]. It costs O(regions held) and fails with
// [device.ErrInvalid] if no held region starts at a.
func (d *Device) Release(a device.Addr) error {
	i, found := slices.BinarySearchFunc(d.regions, a, func(r device.Region, a device.Addr) int {
		return cmp.Compare(r.Addr, a)
	})
	if !found {
		d.usage.Calls.Rejected++
		return device.ErrInvalid
	}
	d.account(d.regions[i], -1)
	d.regions = slices.Delete(d.regions, i, i+1)
	d.usage.Calls.Release++
	return nil
}

// account books a region in (sign 1) or out (sign -1).
func (d *Device) account(r device.Region, sign int) {
	u := &d.usage
	charge := device.AlignUp(r.Size, d.cfg.Charge)
	if sign < 0 {
		u.Charged -= charge
		u.Held -= r.Size
	} else {
		u.Charged += charge
		u.Held += r.Size
	}
	u.Regions += sign
	u.PeakCharged = max(u.PeakCharged, u.Charged)
	u.PeakHeld = max(u.PeakHeld, u.Held)
}

// place chooses the region for a request, and its index among the held ones.
func (d *Device) place(size, align device.Size) (r device.Region, i int, ok bool) {
	// Above the address space nothing fits, and below it no sum here can overflow.
	if size > device.Size(End-Base) || align > device.Size(End-Base) {
		return r, 0, false
	}
	if d.cfg.FailAbove != 0 && size > d.cfg.FailAbove {
		return r, 0, false
	}
	size = device.AlignUp(size, d.cfg.Round)
	if d.cfg.Capacity != 0 && device.AlignUp(size, d.cfg.Charge) > d.usage.Free() {
		return r, 0, false
	}
	var at device.Addr
	switch d.cfg.Policy {
	case Bump:
		at, i = device.AlignUp(d.next, align), len(d.regions)
		ok = at <= End && size <= End.Sub(at)
	case TopDown:
		at, i, ok = d.highest(size, align)
	default:
		at, i, ok = d.lowest(size, align)
	}
	return device.Region{Addr: at, Size: size}, i, ok
}

// lowest returns the lowest aligned address at which size bytes and the gap fit.
func (d *Device) lowest(size, align device.Size) (at device.Addr, i int, ok bool) {
	at = device.AlignUp(Base, align)
	for i, r := range d.regions {
		if at.Add(size+d.cfg.Gap) <= r.Addr {
			return at, i, true
		}
		at = max(at, device.AlignUp(r.End().Add(d.cfg.Gap), align))
	}
	return at, len(d.regions), at <= End && size <= End.Sub(at)
}

// highest returns the highest aligned address below topDownEnd at which size bytes fit.
func (d *Device) highest(size, align device.Size) (at device.Addr, i int, ok bool) {
	end := topDownEnd
	for i := len(d.regions); i >= 0; i-- {
		floor := Base
		if i > 0 {
			floor = d.regions[i-1].End()
		}
		if end >= floor && end.Sub(floor) >= size {
			if at := device.AlignDown(end-device.Addr(size), align); at >= floor {
				return at, i, true
			}
		}
		if i > 0 {
			end = d.regions[i-1].Addr
		}
	}
	return 0, 0, false
}
