package mirror

import (
	"errors"

	"github.com/vramyard/vramyard/device"
)

// repeat makes a call on the card that the model has answered, and compares the answers. The card
// is not called if the model ran out of addresses, of room for alignment or of room in a pool.
func (d *Device) repeat(v *device.Invocation) {
	if !d.inStep() || !d.supported.Has(v.Call) {
		return
	}
	outOfMemory := errors.Is(v.Err, device.ErrOutOfMemory)
	switch v.Call {
	case device.CallReserve:
		if !(v.Align > sizeUnit && outOfMemory) {
			d.recordRegion(region, v, d.onCard(v))
		}
	case device.CallReserveRange:
		if !outOfMemory {
			d.reserveRange(v)
		}
	case device.CallAllocAsync:
		if !outOfMemory {
			d.recordRegion(pooled, v, d.onCard(v))
			d.pooled = d.pooled || v.Err == nil
		}
	case device.CallSetAccess, device.CallUnmap:
		d.repeatInParts(v)
	case device.CallDone:
		d.done(v)
	case device.CallFill, device.CallCompare:
		if v.Err == nil && v.Size != 0 {
			d.repeatContents(v)
		}
	default:
		if c := d.onCard(v); d.same(v, c.Err) {
			d.recordEffects(v, c)
		}
	}
}

// onCard makes a call on the card with the card's addresses and handles.
func (d *Device) onCard(v *device.Invocation) *device.Invocation {
	c := *v
	switch v.Call {
	case device.CallReleaseRange, device.CallMap:
		c.Addr = d.inRange(v.Addr)
	case device.CallRelease, device.CallFreeAsync:
		c.Addr = d.cardAddr(v.Addr)
	}
	c.Handle, c.Event, c.Pool = d.handles[v.Handle], d.events[v.Event], d.pool(v.Pool)
	c.On(d.card)
	return &c
}

// recordEffects records the effects of a call that succeeded on both devices, and compares the
// returned values.
func (d *Device) recordEffects(v, c *device.Invocation) {
	switch v.Call {
	case device.CallRelease, device.CallReleaseRange, device.CallFreeAsync:
		d.remove(v.Addr)
	case device.CallCreateHandle:
		d.handles[v.Handle] = c.Handle
	case device.CallReleaseHandle:
		delete(d.handles, v.Handle)
	case device.CallNewEvent:
		d.events[v.Event] = c.Event
	case device.CallDestroyEvent:
		delete(d.events, v.Event)
	case device.CallNewPool:
		d.poolOf[v.Pool] = c.Pool
	case device.CallDestroyPool:
		delete(d.poolOf, v.Pool)
	case device.CallPoolAttribute: // compares settings, but not statistics
		if setting(v.Attribute) && v.Value != c.Value {
			d.differ("%v: the model says %d, the card %d", v, uint64(v.Value), uint64(c.Value))
		}
	case device.CallMemoryInfo:
		if v.Total != 0 && !d.pooled && (c.Free != v.Free || c.Total != v.Total) {
			d.differ("%v: the model says that %d of %d bytes are free, the card that %d of %d are", v,
				uint64(v.Free), uint64(v.Total), uint64(c.Free), uint64(c.Total))
		}
	}
}

// reserveRange reserves a range on the card, adjacent to another range if it is on the model.
func (d *Device) reserveRange(v *device.Invocation) {
	c := *v // an invalid call is passed unchanged
	if v.Err == nil {
		c.Addr = d.adjacent(v.Addr, v.Align)
	}
	want := c.Addr
	c.On(d.card)
	if v.Err == nil && want != 0 && errors.Is(c.Err, device.ErrOutOfMemory) {
		c.Addr = 0 // occupied on the card
		c.On(d.card)
	} else if c.Err == nil && want != 0 && c.Region.Addr != want {
		d.differ("%v at %v: the card gives %v", v, want, c.Region.Addr)
	}
	d.recordRegion(addresses, v, &c)
}

// adjacent returns the card address for a range that follows another one on the model, or 0 for any
// address.
func (d *Device) adjacent(at device.Addr, align device.Size) device.Addr {
	if at == 0 {
		return 0
	}
	e, ok := d.spanAt(at - 1)
	if !ok || e.Value.kind != addresses {
		return 0
	}
	if end := e.Value.card.Add(e.Value.size); align == 0 || end.IsAligned(align) {
		return end
	}
	return 0
}

// done compares the state of an event. If it is done on the model, it must be done on the card once
// the host has waited for it: the card has no work, but passes its records asynchronously.
func (d *Device) done(v *device.Invocation) {
	c := d.onCard(v)
	if v.Yes && c.Err == nil && !c.Yes {
		wait := *c
		wait.Call = device.CallSyncEvent
		if wait.On(d.card); wait.Err == nil {
			c.On(d.card)
		} else {
			c.Err = wait.Err
		}
	}
	if d.same(v, c.Err) && v.Yes && !c.Yes {
		d.differ("%v: the model's event is done, the card's is not after the host has waited for it", v)
	}
}

// Drain implements [device.Timeline] on the model. On the card the host waits for the stream.
func (d *Device) Drain(s device.Stream) error {
	err := d.Forwarder.Drain(s)
	wait := device.Invocation{Call: device.CallSyncStream, Stream: s}
	if err == nil && d.inStep() && d.supported.Has(wait.Call) {
		wait.On(d.card)
		d.same(&device.Invocation{Call: wait.Call, Stream: s}, wait.Err)
	}
	return err
}

// noPool is a pool that does not exist on the card.
const noPool = ^device.Pool(0)

// pool returns the card's handle of a pool.
func (d *Device) pool(p device.Pool) device.Pool {
	if c, ok := d.poolOf[p]; ok {
		return c
	}
	return noPool
}

// setting reports whether an attribute is a setting, not a statistic.
func setting(a device.PoolAttribute) bool {
	switch a {
	case device.FollowEvents, device.ReuseFinished, device.InsertWaits, device.ReleaseThreshold:
		return true
	}
	return false
}
