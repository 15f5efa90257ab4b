package verify

import (
	"fmt"

	"github.com/vramyard/vramyard/device"
)

// script is a device that grants exactly the next recorded reservation. Any other call is a
// disagreement: the first one is recorded, and later reservations are refused, because the strategy
// is abandoned. It implements device.Source and device.VirtualMemory.
type script struct {
	next   device.Region   // segment reserved next in the recording; no bytes: none
	maps   []device.Region // ranges mapped next, in order
	freed  device.Region   // range released now; no bytes: none
	made   device.Handle   // handles created
	spans  *spans          // ranges of the recording
	held   map[device.Addr]device.Size
	bytes  device.Size // total size of held
	peak   device.Size // peak of reserved bytes, refused requests included
	wanted Placement   // the unexpected call
	ending bool        // the strategy is being closed: it may release everything
}

func newScript(l *layout) *script {
	d := &script{held: map[device.Addr]device.Size{}, spans: &l.spans}
	for s := range l.segments.All {
		if s.Value.grows {
			d.count(s.Value.size)
			continue
		}
		d.hold(device.Region{Addr: s.Addr, Size: s.Value.size})
	}
	return d
}

func (d *script) hold(r device.Region) {
	d.held[r.Addr] = r.Size
	d.count(r.Size)
}

func (d *script) count(n device.Size) {
	d.bytes += n
	d.peak = max(d.peak, d.bytes)
}

// left returns the bytes reserved next in the recording.
func (d *script) left() device.Size {
	n := d.next.Size
	for _, r := range d.maps {
		n += r.Size
	}
	return n
}

// disagrees reports whether there was an unexpected call.
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

// Virtual memory: ranges and handles are granted, mappings are compared.

func (d *script) Granularity() device.Size { return smallSegment }

// nowhere is the address of unrecorded ranges.
const nowhere device.Addr = 1 << 62

// ReserveRange implements device.VirtualMemory. A range starts where it is mapped first.
func (d *script) ReserveRange(size, _ device.Size, _ device.Addr) (device.Region, error) {
	if len(d.maps) > 0 {
		at := d.maps[0].Addr
		return device.Region{Addr: at, Size: min(size, d.spans.end(d.spans.at(at)).Sub(at))}, nil
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

// SetAccess implements device.VirtualMemory. It is the last call of a mapping, and gives its total
// size.
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
	d.count(size)
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
