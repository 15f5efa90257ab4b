package verify

import (
	"fmt"

	"github.com/vramyard/vramyard/device"
)

// script is a source that grants what the recording has next and nothing else. What else a strategy
// asks of it is a disagreement: the script notes the first one, and refuses every reservation from
// then on, because the strategy is given up.
type script struct {
	next   device.Region // the segment that the recording takes next; no bytes: none
	freed  device.Addr   // the segment that the recording gives back now; 0: none
	held   map[device.Addr]device.Size
	bytes  device.Size // of held
	peak   device.Size // most bytes held, or asked for in vain beside those held
	wanted Placement   // what was asked for that the recording does not have
	ending bool        // the strategy is closed: it may give everything back
}

// newScript returns a source from which the segments of a layout are taken.
func newScript(l *layout) *script {
	d := &script{held: map[device.Addr]device.Size{}}
	for s := range l.segments.All {
		d.hold(device.Region{Addr: s.Addr, Size: s.Value.size})
	}
	return d
}

// hold books a segment.
func (d *script) hold(r device.Region) {
	d.held[r.Addr] = r.Size
	d.bytes += r.Size
	d.peak = max(d.peak, d.bytes)
}

// disagrees reports whether the strategy asked for what the recording does not have.
func (d *script) disagrees() bool { return d.wanted != Placement{} }

// Reserve implements device.Source.
func (d *script) Reserve(size, align device.Size) (device.Region, error) {
	r := d.next
	switch {
	case d.disagrees():
		return device.Region{}, device.ErrOutOfMemory
	case r.Size == 0, r.Size != size, !r.Addr.IsAligned(max(align, 1)):
		d.wanted = Placement{Segment: size}
		d.peak = max(d.peak, d.bytes+size)
		return device.Region{}, device.ErrOutOfMemory
	}
	d.next = device.Region{}
	d.hold(r)
	return r, nil
}

// Release implements device.Source.
func (d *script) Release(a device.Addr) error {
	n, ok := d.held[a]
	switch {
	case !ok:
		return fmt.Errorf("%w: no segment starts at %v", device.ErrInvalid, a)
	case d.ending, d.disagrees(), d.freed == a:
	default:
		d.wanted = Placement{GivenBack: a}
	}
	delete(d.held, a)
	d.bytes -= n
	return nil
}
