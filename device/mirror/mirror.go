package mirror

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// Card is a device opened for exclusive use.
type Card interface {
	device.Device
	// Close frees everything held.
	Close() error
}

// Extent selects the filled bytes that are written to the card.
type Extent uint8

// The extents.
const (
	// Marks writes marks at both ends and at each page. A comparison must then cover exactly one
	// fill.
	Marks Extent = iota
	// Bytes writes all bytes.
	Bytes
)

// Options configure the use of a card.
type Options struct {
	// Extent selects the filled bytes that are written to the card.
	Extent Extent
	// Room is the card's memory in bytes beyond the model's capacity. A region with an alignment
	// above 512 takes as much of it, because the card has no other way to align it. Beyond that it
	// fails with out of memory.
	Room device.Size
}

// Device is a model whose calls are repeated on a card. It is not safe for concurrent use.
type Device struct {
	device.Forwarder // to the model
	card             Card
	vm               device.VirtualMemory // of the card; nil if not supported
	supported        device.CallSet       // calls of the card's capabilities

	spans     index.AddrList[span]        // regions, ranges and blocks, by model address
	cardSpans index.AddrList[device.Size] // likewise by card address, without mapped memory
	handles   map[device.Handle]device.Handle
	events    map[device.Event]device.Event
	poolOf    map[device.Pool]device.Pool
	pooled    bool // a pool has had a block

	extent  Extent
	room    device.Size
	traffic Traffic
	differs error
	closed  bool
}

// Traffic counts the bytes written to the card and read from it.
type Traffic struct {
	Written device.Size // by fills
	Read    device.Size // by comparisons
}

// kind is the kind of a span.
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

// invalidBit is added to an address without a span, to get one that is invalid on every card.
const invalidBit device.Addr = 1 << 62

// New returns a mirror, which takes over both devices. Both must be unused.
func New(model device.Device, card Card, o Options) *Device {
	d := &Device{
		card: card, extent: o.Extent, room: o.Room,
		handles: map[device.Handle]device.Handle{}, events: map[device.Event]device.Event{},
		poolOf: map[device.Pool]device.Pool{0: 0},
	}
	d.Forwarder = device.Hooked(newCardModel(model, card, o.Room), device.Hook{After: d.repeat})
	d.vm, _ = device.VirtualMemoryOf(card)
	for c := range device.NumCalls {
		if k, optional := c.Capability(); !optional || device.Has(card, k) {
			d.supported |= device.CallsOf(c)
		}
	}
	if d.vm != nil {
		if m, c := d.Forwarder.Granularity(), d.vm.Granularity(); m != c {
			d.differ("the granularity is %v on the model, %v on the card", m, c)
		}
	}
	return d
}

// Has implements [device.Has]: the capabilities of both devices, and the model's timeline.
func (d *Device) Has(c device.Capability) bool { return d.Forwarder.Has(c) }

// ModelOnly returns another model with the capabilities and the room of d, but without a card.
func (d *Device) ModelOnly(model device.Device) device.Device {
	return newCardModel(model, d.card, d.room)
}

// Differs returns the first difference between the two devices, or nil.
func (d *Device) Differs() error { return d.differs }

// Traffic returns the traffic so far.
func (d *Device) Traffic() Traffic { return d.traffic }

// CardCalls returns the card's calls so far.
func (d *Device) CardCalls() device.Calls { return d.card.Usage().Calls }

// Close frees everything that the card holds. The model remains the caller's.
func (d *Device) Close() error {
	if d.closed {
		return nil
	}
	d.closed = true
	return d.card.Close()
}

// Settle compares the two accounts, and returns the first difference found so far.
func (d *Device) Settle() error {
	if !d.inStep() {
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
			d.differ("the model has %d %s, the card %d", f.model, f.name, f.card)
		}
	}
	if !d.pooled && m.Held != c.Held {
		d.differ("the model holds %d bytes, the card %d", uint64(m.Held), uint64(c.Held))
	}
	return d.differs
}

// differ records a difference. Only the first counts.
func (d *Device) differ(format string, args ...any) {
	if d.differs == nil {
		d.differs = fmt.Errorf(format, args...)
	}
}

// inStep reports whether calls are still repeated on the card.
func (d *Device) inStep() bool { return d.differs == nil && !d.closed }

// classes are the errors of devices. Errors that wrap another one come first.
var classes = [...]error{
	device.ErrGranularity, device.ErrMapped, device.ErrUnmapped, device.ErrAccess, device.ErrHandle, device.ErrEvent,
	device.ErrPool,
	device.ErrBusy, device.ErrInvalid, device.ErrOutOfMemory, device.ErrUnsupported,
}

// class returns the index of an error in classes, or -1.
func class(err error) int {
	return slices.IndexFunc(classes[:], func(c error) bool { return errors.Is(err, c) })
}

// answer describes the result of a call.
func answer(err error) string {
	if err == nil {
		return "done"
	}
	return err.Error()
}

// same compares the results of a call, and reports whether both are success.
func (d *Device) same(v *device.Invocation, card error) bool {
	if class(v.Err) != class(card) || (v.Err == nil) != (card == nil) {
		d.differ("%v: the model answers %q, the card %q", v, answer(v.Err), answer(card))
		return false
	}
	return v.Err == nil
}

// recordRegion compares the regions that a call returned and records them.
func (d *Device) recordRegion(k kind, v, card *device.Invocation) {
	if !d.same(v, card.Err) {
		return
	}
	m, c := v.Region, card.Region
	p, found := d.cardSpans.Floor(c.Addr)
	switch {
	case c.Size != m.Size:
		d.differ("%v: the model gives %d bytes, the card %d", v, uint64(m.Size), uint64(c.Size))
	case c.Addr == 0:
		d.differ("%v: the card gives address 0", v)
	case v.Align != 0 && !c.Addr.IsAligned(v.Align):
		d.differ("%v: the card gives %v, no multiple of %d", v, c.Addr, uint64(v.Align))
	case found && c.Addr.Sub(d.cardSpans.Entry(p).Addr) < d.cardSpans.Entry(p).Value:
		d.differ("%v: the card gives %v, which lies in %d bytes that it gave at %v", v, c.Addr,
			uint64(d.cardSpans.Entry(p).Value), d.cardSpans.Entry(p).Addr)
	default:
		d.insert(k, m, c, v)
	}
}

// insert records a span that overlaps no span at a lower address.
func (d *Device) insert(k kind, m, c device.Region, v *device.Invocation) {
	p, _ := d.cardSpans.Search(c.Addr)
	if above := d.cardSpans.Above(p); d.cardSpans.Holds(above) && d.cardSpans.Entry(above).Addr < c.End() {
		e := d.cardSpans.Entry(above)
		d.differ("%v: the card gives %d bytes at %v, which overlap %d bytes that it gave at %v", v, uint64(c.Size), c.Addr,
			uint64(e.Value), e.Addr)
		return
	}
	d.cardSpans.Insert(p, index.AddrEntry[device.Size]{Addr: c.Addr, Value: c.Size})
	p, _ = d.spans.Search(m.Addr)
	d.spans.Insert(p, index.AddrEntry[span]{Addr: m.Addr, Value: span{m.Size, c.Addr, k}})
}

// remove records the release of the span at a model address.
func (d *Device) remove(a device.Addr) {
	p, found := d.spans.Search(a)
	if !found {
		return
	}
	at, _ := d.cardSpans.Search(d.spans.Entry(p).Value.card)
	d.cardSpans.Delete(at)
	d.spans.Delete(p)
}

// spanAt returns the span that contains an address.
func (d *Device) spanAt(a device.Addr) (index.AddrEntry[span], bool) {
	if p, ok := d.spans.Floor(a); ok {
		if e := d.spans.Entry(p); a.Sub(e.Addr) < e.Value.size {
			return e, true
		}
	}
	return index.AddrEntry[span]{}, false
}

// cardAddr converts a model address to a card address.
func (d *Device) cardAddr(a device.Addr) device.Addr {
	if e, ok := d.spanAt(a); ok {
		return e.Value.card.Add(a.Sub(e.Addr))
	}
	return a | invalidBit
}

// inRange converts an address in a range to a card address. Addresses of other spans become
// invalid: the model's regions may be whole pages where the card's are not.
func (d *Device) inRange(a device.Addr) device.Addr {
	if e, ok := d.spanAt(a); ok && e.Value.kind != addresses {
		return a | invalidBit
	}
	return d.cardAddr(a)
}

// eachSpan calls f for the parts of size bytes at a model address, one for each span, until an
// error. Bytes outside of spans are one part, and so is an empty range.
func (d *Device) eachSpan(a device.Addr, size device.Size, f func(part span, n device.Size) error) error {
	for {
		n := size
		e, ok := d.spanAt(a)
		if ok {
			n = min(size, e.Value.size-a.Sub(e.Addr))
		}
		if err := f(e.Value, n); err != nil || n == size {
			return err
		}
		a, size = a.Add(n), size-n
	}
}

// repeatInParts makes a call about bytes of ranges on the card, in parts if the card's ranges are
// apart. A call that failed on the model is not split, because the first parts would succeed.
func (d *Device) repeatInParts(v *device.Invocation) {
	a := v.Addr
	if e, ok := d.spanAt(a); v.Err != nil && ok && v.Size > e.Value.size-a.Sub(e.Addr) {
		return
	}
	card := d.eachSpan(a, v.Size, func(_ span, n device.Size) error {
		part := *v
		part.Addr, part.Size = d.inRange(a), n
		a = a.Add(n)
		part.On(d.card)
		return part.Err
	})
	d.same(v, card)
}
