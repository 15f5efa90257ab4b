package shards

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/vramyard/vramyard/device"
)

// Device is a source of regions that several shards share. It makes one call at a time and records
// which shard holds which memory. Use [NewDevice].
type Device struct {
	inner device.Device
	mu    sync.Mutex
	bytes device.Size            // held by all shards; guarded by mu
	peak  device.Size            // maximum of bytes; guarded by mu
	held  atomic.Pointer[[]Held] // by address; replaced, never changed
}

// Held is memory that a shard holds.
type Held struct {
	device.Region
	Shard int // number of the shard
}

// heldBytes is the host memory of a [Held].
const heldBytes = 24

// NewDevice returns a device that shares src.
func NewDevice(src device.Source) *Device {
	dev, ok := src.(device.Device)
	if !ok {
		dev = &plain{Source: src, sizes: map[device.Addr]device.Size{}}
	}
	d := &Device{inner: dev}
	d.held.Store(&[]Held{})
	return d
}

// plain is a source without an account of itself, as a device.
type plain struct {
	device.Source
	sizes map[device.Addr]device.Size
	held  device.Size
}

func (p *plain) Reserve(size, align device.Size) (device.Region, error) {
	r, err := p.Source.Reserve(size, align)
	if err == nil {
		p.sizes[r.Addr] = r.Size
		p.held += r.Size
	}
	return r, err
}

func (p *plain) Release(a device.Addr) error {
	err := p.Source.Release(a)
	if err == nil {
		p.held -= p.sizes[a]
	}
	return err
}

// Usage implements [device.Device]. It has only the bytes held.
func (p *plain) Usage() device.Usage { return device.Usage{Held: p.held} }

// Part returns the device for one shard, with every capability. A call waits for the calls of other
// shards. A call that reserves or releases regions, ranges or blocks of pools costs O(regions),
// because it replaces the table in which [Device.Find] searches.
func (d *Device) Part(shard int) device.Source {
	var before device.Size // bytes held from the device, including those of others
	f := device.Hooked(d.inner, device.Hook{
		Before: func(*device.Invocation) error {
			d.mu.Lock()
			before = d.inner.Usage().Held
			return nil
		},
		After: func(v *device.Invocation) {
			defer d.mu.Unlock()
			d.bytes += d.inner.Usage().Held - before
			d.peak = max(d.peak, d.bytes)
			if v.Err == nil {
				d.updateTable(shard, v)
			}
		},
	})
	return &f
}

// updateTable replaces the table after a call.
func (d *Device) updateTable(shard int, v *device.Invocation) {
	held := d.Table()
	switch v.Call {
	case device.CallReserve, device.CallReserveRange, device.CallAllocAsync:
		d.replace(slices.Insert(slices.Clone(held), above(held, v.Region.Addr), Held{v.Region, shard}))
	case device.CallRelease, device.CallReleaseRange, device.CallFreeAsync:
		i := above(held, v.Addr) - 1
		d.replace(slices.Delete(slices.Clone(held), i, i+1))
	}
}

// replace is separate from updateTable because its argument is moved to the heap.
func (d *Device) replace(held []Held) { d.held.Store(&held) }

// above returns the number of entries of a table that begin at an address or below.
func above(held []Held, a device.Addr) int {
	i, j := 0, len(held)
	for i < j {
		if m := int(uint(i+j) / 2); held[m].Addr <= a {
			i = m + 1
		} else {
			j = m
		}
	}
	return i
}

// Find returns the memory that contains an address, and whether a shard holds it. It takes no lock
// and costs O(log regions). The memory of a live block stays with its shard.
func (d *Device) Find(a device.Addr) (Held, bool) {
	held := d.Table()
	if i := above(held, a); i > 0 && held[i-1].Contains(a) {
		return held[i-1], true
	}
	return Held{}, false
}

// Table returns the memory of all shards, by address. It must not be changed.
func (d *Device) Table() []Held { return *d.held.Load() }

// peakHeld returns the peak of the bytes that the shards held together.
func (d *Device) peakHeld() device.Size {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.peak
}

// Bytes returns the host memory of the table.
func (d *Device) Bytes() device.Size { return device.Size(cap(d.Table())) * heldBytes }
