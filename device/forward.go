package device

// Forwarder passes every call of every capability on to a wrapped device, and fails with
// [ErrUnsupported] where that lacks the capability. A wrapper embeds it and overrides what it
// changes; a test in internal/tidy keeps it complete.
type Forwarder struct {
	inner Device
}

var (
	_ Device        = (*Forwarder)(nil)
	_ VirtualMemory = (*Forwarder)(nil)
	_ Streams       = (*Forwarder)(nil)
	_ Pools         = (*Forwarder)(nil)
	_ MemoryInfo    = (*Forwarder)(nil)
	_ Contents      = (*Forwarder)(nil)
	_ Timeline      = (*Forwarder)(nil)
)

// Forward returns a forwarder to d.
func Forward(d Device) Forwarder { return Forwarder{d} }

// Has tells [Has] which capabilities the wrapped device has.
func (f *Forwarder) Has(c Capability) bool { return Has(f.inner, c) }

// Reserve implements [Source].
func (f *Forwarder) Reserve(size, align Size) (Region, error) { return f.inner.Reserve(size, align) }

// Release implements [Source].
func (f *Forwarder) Release(a Addr) error { return f.inner.Release(a) }

// Usage implements [Device].
func (f *Forwarder) Usage() Usage { return f.inner.Usage() }

// Granularity implements [VirtualMemory]; without the capability it returns 0.
func (f *Forwarder) Granularity() Size {
	if v, ok := f.inner.(VirtualMemory); ok {
		return v.Granularity()
	}
	return 0
}

// ReserveRange implements [VirtualMemory].
func (f *Forwarder) ReserveRange(size, align Size, at Addr) (Region, error) {
	if v, ok := f.inner.(VirtualMemory); ok {
		return v.ReserveRange(size, align, at)
	}
	return Region{}, ErrUnsupported
}

// ReleaseRange implements [VirtualMemory].
func (f *Forwarder) ReleaseRange(a Addr) error {
	if v, ok := f.inner.(VirtualMemory); ok {
		return v.ReleaseRange(a)
	}
	return ErrUnsupported
}

// CreateHandle implements [VirtualMemory].
func (f *Forwarder) CreateHandle(size Size) (Handle, error) {
	if v, ok := f.inner.(VirtualMemory); ok {
		return v.CreateHandle(size)
	}
	return 0, ErrUnsupported
}

// ReleaseHandle implements [VirtualMemory].
func (f *Forwarder) ReleaseHandle(h Handle) error {
	if v, ok := f.inner.(VirtualMemory); ok {
		return v.ReleaseHandle(h)
	}
	return ErrUnsupported
}

// Map implements [VirtualMemory].
func (f *Forwarder) Map(a Addr, size Size, h Handle, offset Size) error {
	if v, ok := f.inner.(VirtualMemory); ok {
		return v.Map(a, size, h, offset)
	}
	return ErrUnsupported
}

// SetAccess implements [VirtualMemory].
func (f *Forwarder) SetAccess(a Addr, size Size, access Access) error {
	if v, ok := f.inner.(VirtualMemory); ok {
		return v.SetAccess(a, size, access)
	}
	return ErrUnsupported
}

// Unmap implements [VirtualMemory].
func (f *Forwarder) Unmap(a Addr, size Size) error {
	if v, ok := f.inner.(VirtualMemory); ok {
		return v.Unmap(a, size)
	}
	return ErrUnsupported
}

// NewEvent implements [Streams].
func (f *Forwarder) NewEvent() (Event, error) {
	if s, ok := f.inner.(Streams); ok {
		return s.NewEvent()
	}
	return 0, ErrUnsupported
}

// DestroyEvent implements [Streams].
func (f *Forwarder) DestroyEvent(e Event) error {
	if s, ok := f.inner.(Streams); ok {
		return s.DestroyEvent(e)
	}
	return ErrUnsupported
}

// Record implements [Streams].
func (f *Forwarder) Record(e Event, on Stream) error {
	if s, ok := f.inner.(Streams); ok {
		return s.Record(e, on)
	}
	return ErrUnsupported
}

// Done implements [Streams].
func (f *Forwarder) Done(e Event) (bool, error) {
	if s, ok := f.inner.(Streams); ok {
		return s.Done(e)
	}
	return false, ErrUnsupported
}

// Wait implements [Streams].
func (f *Forwarder) Wait(on Stream, e Event) error {
	if s, ok := f.inner.(Streams); ok {
		return s.Wait(on, e)
	}
	return ErrUnsupported
}

// SyncEvent implements [Streams].
func (f *Forwarder) SyncEvent(e Event) error {
	if s, ok := f.inner.(Streams); ok {
		return s.SyncEvent(e)
	}
	return ErrUnsupported
}

// SyncStream implements [Streams].
func (f *Forwarder) SyncStream(on Stream) error {
	if s, ok := f.inner.(Streams); ok {
		return s.SyncStream(on)
	}
	return ErrUnsupported
}

// SyncDevice implements [Streams].
func (f *Forwarder) SyncDevice() error {
	if s, ok := f.inner.(Streams); ok {
		return s.SyncDevice()
	}
	return ErrUnsupported
}

// NewPool implements [Pools].
func (f *Forwarder) NewPool(most Size) (Pool, error) {
	if p, ok := f.inner.(Pools); ok {
		return p.NewPool(most)
	}
	return 0, ErrUnsupported
}

// DestroyPool implements [Pools].
func (f *Forwarder) DestroyPool(pool Pool) error {
	if p, ok := f.inner.(Pools); ok {
		return p.DestroyPool(pool)
	}
	return ErrUnsupported
}

// AllocAsync implements [Pools].
func (f *Forwarder) AllocAsync(pool Pool, size Size, on Stream) (Region, error) {
	if p, ok := f.inner.(Pools); ok {
		return p.AllocAsync(pool, size, on)
	}
	return Region{}, ErrUnsupported
}

// FreeAsync implements [Pools].
func (f *Forwarder) FreeAsync(a Addr, on Stream) error {
	if p, ok := f.inner.(Pools); ok {
		return p.FreeAsync(a, on)
	}
	return ErrUnsupported
}

// TrimPool implements [Pools].
func (f *Forwarder) TrimPool(pool Pool, keep Size) error {
	if p, ok := f.inner.(Pools); ok {
		return p.TrimPool(pool, keep)
	}
	return ErrUnsupported
}

// PoolAttribute implements [Pools].
func (f *Forwarder) PoolAttribute(pool Pool, a PoolAttribute) (Size, error) {
	if p, ok := f.inner.(Pools); ok {
		return p.PoolAttribute(pool, a)
	}
	return 0, ErrUnsupported
}

// SetPoolAttribute implements [Pools].
func (f *Forwarder) SetPoolAttribute(pool Pool, a PoolAttribute, v Size) error {
	if p, ok := f.inner.(Pools); ok {
		return p.SetPoolAttribute(pool, a, v)
	}
	return ErrUnsupported
}

// MemoryInfo implements [MemoryInfo].
func (f *Forwarder) MemoryInfo() (free, total Size, err error) {
	if m, ok := f.inner.(MemoryInfo); ok {
		return m.MemoryInfo()
	}
	return 0, 0, ErrUnsupported
}

// Fill implements [Contents].
func (f *Forwarder) Fill(a Addr, n Size, pattern uint32) error {
	if c, ok := f.inner.(Contents); ok {
		return c.Fill(a, n, pattern)
	}
	return ErrUnsupported
}

// Compare implements [Contents].
func (f *Forwarder) Compare(a Addr, n Size, pattern uint32) (differs Addr, same bool, err error) {
	if c, ok := f.inner.(Contents); ok {
		return c.Compare(a, n, pattern)
	}
	return 0, false, ErrUnsupported
}

// Work implements [Timeline].
func (f *Forwarder) Work(on Stream, ns uint64) error {
	if t, ok := f.inner.(Timeline); ok {
		return t.Work(on, ns)
	}
	return ErrUnsupported
}

// Drain implements [Timeline].
func (f *Forwarder) Drain(on Stream) error {
	if t, ok := f.inner.(Timeline); ok {
		return t.Drain(on)
	}
	return ErrUnsupported
}

// Elapse implements [Timeline].
func (f *Forwarder) Elapse(ns uint64) error {
	if t, ok := f.inner.(Timeline); ok {
		return t.Elapse(ns)
	}
	return ErrUnsupported
}

// Now implements [Timeline]; without the capability it returns 0.
func (f *Forwarder) Now() uint64 {
	if t, ok := f.inner.(Timeline); ok {
		return t.Now()
	}
	return 0
}

// StreamTime implements [Timeline]; without the capability it returns 0.
func (f *Forwarder) StreamTime(on Stream) uint64 {
	if t, ok := f.inner.(Timeline); ok {
		return t.StreamTime(on)
	}
	return 0
}

// Ordered implements [Timeline].
func (f *Forwarder) Ordered(e Event, on Stream) (bool, error) {
	if t, ok := f.inner.(Timeline); ok {
		return t.Ordered(e, on)
	}
	return false, ErrUnsupported
}
