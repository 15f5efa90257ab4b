package mirror

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// Card is a device that was opened for one use.
type Card interface {
	device.Device
	// Close gives back all that is held.
	Close() error
}

// Extent says which filled bytes are written to the card.
type Extent uint8

// The extents.
const (
	// Marks are written, at both ends and at each page. Then what is compared has to be what was
	// filled by one call.
	Marks Extent = iota
	// Bytes are, all of them.
	Bytes
)

// Options say how a card is used.
type Options struct {
	// Extent says which filled bytes are written to the card.
	Extent Extent
	// Room in bytes is what the card has beyond the model's capacity. A region with an alignment above
	// 512 takes as much of it, because a card has no other way to align one; for more there is no
	// memory.
	Room device.Size
}

// Device is a model that a card repeats. It is not safe for concurrent use.
type Device struct {
	device.Forwarder // to the model
	card             Card
	vm               device.VirtualMemory // of the card; nil where it has none
	asked            device.CallSet       // the calls of the card's capabilities

	spans   index.AddrList[span]        // regions, ranges and blocks, by the model's address
	there   index.AddrList[device.Size] // the same without ranges' memory, by the card's
	handles map[device.Handle]device.Handle
	events  map[device.Event]device.Event
	named   map[device.Pool]device.Pool
	pooled  bool // there was a block of a pool

	extent  Extent
	room    device.Size
	traffic Traffic
	differs error
	closed  bool
}

// Traffic counts what was written to the card and read from it. Sizes are bytes.
type Traffic struct {
	Written device.Size // by fills
	Read    device.Size // by comparisons
}

// kind says what a span is.
type kind uint8

const (
	region kind = iota
	addresses
	pooled
)

// span is a region, a range or a block of a pool.
type span struct {
	size device.Size
	card device.Addr
	kind kind
}

// nowhere makes an address that no card has of one that nothing was given out at, with the same low
// bits.
const nowhere device.Addr = 1 << 62

// New returns a mirror. Nothing may be held of the two devices, which are the mirror's from now on.
func New(model device.Device, card Card, o Options) *Device {
	d := &Device{
		card: card, extent: o.Extent, room: o.Room,
		handles: map[device.Handle]device.Handle{}, events: map[device.Event]device.Event{},
		named: map[device.Pool]device.Pool{0: 0},
	}
	d.Forwarder = device.Hooked(newModelled(model, card, o.Room), device.Hook{After: d.repeat})
	d.vm, _ = device.VirtualMemoryOf(card)
	for c := range device.NumCalls {
		if k, optional := c.Capability(); !optional || device.Has(card, k) {
			d.asked |= device.CallsOf(c)
		}
	}
	if d.vm != nil {
		if m, c := d.Forwarder.Granularity(), d.vm.Granularity(); m != c {
			d.note("the granularity of the model is %v, that of the card %v", m, c)
		}
	}
	return d
}

// Has tells [device.Has] what both devices can, and of a timeline what the model can.
func (d *Device) Has(c device.Capability) bool { return d.Forwarder.Has(c) }

// Alone returns another model that can what d can and has as much room, and no card beside it.
func (d *Device) Alone(model device.Device) device.Device { return newModelled(model, d.card, d.room) }

// Differs returns the first difference between the two devices, or nil.
func (d *Device) Differs() error { return d.differs }

// Traffic returns what was written to the card and read from it so far.
func (d *Device) Traffic() Traffic { return d.traffic }

// CardCalls returns the calls of the card so far.
func (d *Device) CardCalls() device.Calls { return d.card.Usage().Calls }

// Close gives back all that the card holds. The model is thrown away by whoever made it.
func (d *Device) Close() error {
	if d.closed {
		return nil
	}
	d.closed = true
	return d.card.Close()
}

// Settle compares the two accounts, notes what differs as any other difference, and returns the
// first of all.
func (d *Device) Settle() error {
	if !d.alike() {
		return d.differs
	}
	m, c := d.Forwarder.Usage(), d.card.Usage()
	for _, f := range []struct {
		name        string
		model, card uint64
	}{
		{"regions", uint64(m.Regions), uint64(c.Regions)}, {"handles", uint64(m.Handles), uint64(c.Handles)},
		{"ranges", uint64(m.Ranges), uint64(c.Ranges)}, {"bytes of ranges", uint64(m.Space), uint64(c.Space)},
		{"mapped bytes", uint64(m.Mapped), uint64(c.Mapped)}, {"events", uint64(m.Events), uint64(c.Events)},
	} {
		if f.model != f.card {
			d.note("the model has %d %s, the card %d", f.model, f.name, f.card)
		}
	}
	if !d.pooled && m.Held != c.Held {
		d.note("the model holds %d bytes, the card %d", uint64(m.Held), uint64(c.Held))
	}
	return d.differs
}

// note notes a difference. The first counts.
func (d *Device) note(format string, args ...any) {
	if d.differs == nil {
		d.differs = fmt.Errorf(format, args...)
	}
}

// alike reports whether the card is still asked.
func (d *Device) alike() bool { return d.differs == nil && !d.closed }

// classes are the errors of devices, those that are of another kind first.
var classes = [...]error{
	device.ErrGranularity, device.ErrMapped, device.ErrUnmapped, device.ErrAccess, device.ErrHandle, device.ErrEvent,
	device.ErrPool,
	device.ErrBusy, device.ErrInvalid, device.ErrOutOfMemory, device.ErrUnsupported,
}

// class returns which of the classes an error is of, -1 for none, and success.
func class(err error) int {
	return slices.IndexFunc(classes[:], func(c error) bool { return errors.Is(err, c) })
}

// answer returns an error in words.
func answer(err error) string {
	if err == nil {
		return "done"
	}
	return err.Error()
}

// same compares the answers to a call, and reports whether both are success.
func (d *Device) same(v *device.Invocation, card error) bool {
	if class(v.Err) != class(card) || (v.Err == nil) != (card == nil) {
		d.note("%v: the model answers %q, the card %q", v, answer(v.Err), answer(card))
		return false
	}
	return v.Err == nil
}

// took compares the regions that a call returned and books them.
func (d *Device) took(k kind, v, card *device.Invocation) {
	if !d.same(v, card.Err) {
		return
	}
	m, c := v.Region, card.Region
	p, found := d.there.Floor(c.Addr)
	switch {
	case c.Size != m.Size:
		d.note("%v: the model gives %d bytes, the card %d", v, uint64(m.Size), uint64(c.Size))
	case c.Addr == 0:
		d.note("%v: the card gives address 0", v)
	case v.Align != 0 && !c.Addr.IsAligned(v.Align):
		d.note("%v: the card gives %v, no multiple of %d", v, c.Addr, uint64(v.Align))
	case found && c.Addr.Sub(d.there.Entry(p).Addr) < d.there.Entry(p).Value:
		d.note("%v: the card gives %v, which lies in %d bytes that it gave at %v", v, c.Addr,
			uint64(d.there.Entry(p).Value), d.there.Entry(p).Addr)
	default:
		d.enter(k, m, c, v)
	}
}

// enter books what overlaps nothing that begins below it.
func (d *Device) enter(k kind, m, c device.Region, v *device.Invocation) {
	p, _ := d.there.Search(c.Addr)
	if above := d.there.Above(p); d.there.Holds(above) && d.there.Entry(above).Addr < c.End() {
		e := d.there.Entry(above)
		d.note("%v: the card gives %d bytes at %v, which overlap %d bytes that it gave at %v", v, uint64(c.Size), c.Addr,
			uint64(e.Value), e.Addr)
		return
	}
	d.there.Insert(p, index.AddrEntry[device.Size]{Addr: c.Addr, Value: c.Size})
	p, _ = d.spans.Search(m.Addr)
	d.spans.Insert(p, index.AddrEntry[span]{Addr: m.Addr, Value: span{m.Size, c.Addr, k}})
}

// left books that the span at an address of the model's was released.
func (d *Device) left(a device.Addr) {
	p, found := d.spans.Search(a)
	if !found {
		return
	}
	at, _ := d.there.Search(d.spans.Entry(p).Value.card)
	d.there.Delete(at)
	d.spans.Delete(p)
}

// around returns what was given out around an address.
func (d *Device) around(a device.Addr) (index.AddrEntry[span], bool) {
	if p, ok := d.spans.Floor(a); ok {
		if e := d.spans.Entry(p); a.Sub(e.Addr) < e.Value.size {
			return e, true
		}
	}
	return index.AddrEntry[span]{}, false
}

// at returns an address as the card has it.
func (d *Device) at(a device.Addr) device.Addr {
	if e, ok := d.around(a); ok {
		return e.Value.card.Add(a.Sub(e.Addr))
	}
	return a | nowhere
}

// inRange returns an address of a range as the card has it. One of anything else is nowhere there:
// where the model's regions are whole pages, the card's may not be.
func (d *Device) inRange(a device.Addr) device.Addr {
	if e, ok := d.around(a); ok && e.Value.kind != addresses {
		return a | nowhere
	}
	return d.at(a)
}

// each calls f for the parts of size bytes at an address of the model's that lie in one span each,
// until an error. Bytes outside of spans are one part, and so are no bytes.
func (d *Device) each(a device.Addr, size device.Size, f func(part span, n device.Size) error) error {
	for {
		n := size
		e, ok := d.around(a)
		if ok {
			n = min(size, e.Value.size-a.Sub(e.Addr))
		}
		if err := f(e.Value, n); err != nil || n == size {
			return err
		}
		a, size = a.Add(n), size-n
	}
}

// both makes a call about bytes of ranges on the card, in parts where the card's ranges are apart.
// A call that the model refuses is not made in parts, because the first ones would be granted.
func (d *Device) both(v *device.Invocation) {
	a := v.Addr
	if e, ok := d.around(a); v.Err != nil && ok && v.Size > e.Value.size-a.Sub(e.Addr) {
		return
	}
	card := d.each(a, v.Size, func(_ span, n device.Size) error {
		part := *v
		part.Addr, part.Size = d.inRange(a), n
		a = a.Add(n)
		part.On(d.card)
		return part.Err
	})
	d.same(v, card)
}
