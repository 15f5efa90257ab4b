package verify

import (
	"fmt"

	"github.com/vramyard/vramyard/device"
)

// script is a source that grants what the recording has next and nothing else. What else a strategy
// asks of it is a disagreement: the script notes the first one, and refuses every reservation from
// then on, because the strategy is given up. It implements device.Source and device.VirtualMemory.
type script struct {
	next   device.Region   // the segment that the recording takes next; no bytes: none
	maps   []device.Region // what the recording maps next, in order
	freed  device.Region   // what the recording gives back now; no bytes: nothing
	made   device.Handle   // handles so far
	spans  *spans          // of the recording
	held   map[device.Addr]device.Size
	bytes  device.Size // of held
	peak   device.Size // most bytes held, or asked for in vain beside those held
	wanted Placement   // what was asked for that the recording does not have
	ending bool        // the strategy is closed: it may give everything back
}

func newScript(l *layout) *script {
	d := &script{held: map[device.Addr]device.Size{}, spans: &l.spans}
	for s := range l.segments.All {
		if s.Value.grows {
			d.book(s.Value.size)
			continue
		}
		d.hold(device.Region{Addr: s.Addr, Size: s.Value.size})
	}
	return d
}

func (d *script) hold(r device.Region) {
	d.held[r.Addr] = r.Size
	d.book(r.Size)
}

func (d *script) book(n device.Size) {
	d.bytes += n
	d.peak = max(d.peak, d.bytes)
}

// left returns the bytes that the recording takes next.
func (d *script) left() device.Size {
	n := d.next.Size
	for _, r := range d.maps {
		n += r.Size
	}
	return n
}

// disagrees reports whether the strategy asked for what the recording does not have.
func (d *script) disagrees() bool { return d.wanted != Placement{} }

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

func (d *script) Release(a device.Addr) error {
	n, ok := d.held[a]
	switch {
	case !ok:
		return fmt.Errorf("%w: no segment starts at %v", device.ErrInvalid, a)
	case d.ending, d.disagrees(), d.freed.Addr == a && d.freed.Size == n:
	default:
		d.wanted = Placement{GivenBack: a}
	}
	delete(d.held, a)
	d.bytes -= n
	return nil
}

// The virtual memory of a script grants ranges and handles, and compares what is mapped and
// unmapped.

func (d *script) Granularity() device.Size { return smallSegment }

// nowhere is where a range begins that the recording does not have.
const nowhere device.Addr = 1 << 62

// ReserveRange implements device.VirtualMemory. A range begins where memory is mapped first.
func (d *script) ReserveRange(size, _ device.Size, _ device.Addr) (device.Region, error) {
	if len(d.maps) > 0 {
		at := d.maps[0].Addr
		return device.Region{Addr: at, Size: d.spans.above(at+1, size-1) + 1}, nil
	}
	return device.Region{Addr: nowhere, Size: size}, nil
}

func (d *script) ReleaseRange(device.Addr) error { return nil }

func (d *script) CreateHandle(device.Size) (device.Handle, error) {
	d.made++
	return d.made, nil
}

func (d *script) ReleaseHandle(device.Handle) error { return nil }

func (d *script) Map(device.Addr, device.Size, device.Handle, device.Size) error { return nil }

// SetAccess implements device.VirtualMemory. It is the last call for memory that is mapped, and the
// one that tells how much it is in all.
func (d *script) SetAccess(a device.Addr, size device.Size, _ device.Access) error {
	r := device.Region{Addr: a, Size: size}
	switch {
	case d.disagrees():
		return device.ErrOutOfMemory
	case len(d.maps) == 0 || d.maps[0] != r:
		d.wanted = Placement{Segment: size}
		d.peak = max(d.peak, d.bytes+size)
		return device.ErrOutOfMemory
	}
	d.maps = d.maps[1:]
	d.book(size)
	return nil
}

func (d *script) Unmap(a device.Addr, size device.Size) error {
	if !d.ending && !d.disagrees() && d.freed != (device.Region{Addr: a, Size: size}) {
		d.wanted = Placement{GivenBack: a}
	}
	if !d.disagrees() {
		d.bytes -= size
	}
	return nil
}
