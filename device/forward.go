package device

// Hook observes and changes the calls of a [Forwarder]. It must not make calls through the same
// forwarder.
type Hook struct {
	// Before is called before each call and may change its arguments. If it returns an error, the call
	// fails with it, and neither the wrapped device nor After is called. Nil is a no-op.
	Before func(*Invocation) error
	// After is called after each call and may change its results. Nil is a no-op.
	After func(*Invocation)
}

// Forwarder passes every call of every capability to a wrapped device, and fails with
// [ErrUnsupported] if the device lacks the capability. Wrappers embed it, with a [Hook] for their
// additions.
type Forwarder struct {
	inner Device
	hook  Hook
	call  Invocation // the current call, if there is a hook; a field so that calls do not allocate
}

// Forward returns a forwarder to d.
func Forward(d Device) Forwarder { return Forwarder{inner: d} }

// Hooked returns a forwarder to d that calls a hook around each call of a [Call] kind.
func Hooked(d Device, h Hook) Forwarder { return Forwarder{inner: d, hook: h} }

// do makes a call with the hook around it.
func (f *Forwarder) do(v Invocation) *Invocation {
	f.call = v
	if f.hook.Before != nil {
		if err := f.hook.Before(&f.call); err != nil {
			f.call = Invocation{Err: err}
			return &f.call
		}
	}
	f.call.On(f.inner)
	if f.hook.After != nil {
		f.hook.After(&f.call)
	}
	return &f.call
}

// Has returns the capabilities of the wrapped device.
func (f *Forwarder) Has(c Capability) bool { return Has(f.inner, c) }

func (f *Forwarder) Usage() Usage { return f.inner.Usage() }

// Granularity implements [VirtualMemory]; without the capability it returns 0.
func (f *Forwarder) Granularity() Size {
	if v, ok := f.inner.(VirtualMemory); ok {
		return v.Granularity()
	}
	return 0
}

func (f *Forwarder) Reserve(size, align Size) (Region, error) {
	v := f.do(Invocation{Call: CallReserve, Size: size, Align: align})
	return v.Region, v.Err
}

func (f *Forwarder) Release(a Addr) error {
	return f.do(Invocation{Call: CallRelease, Addr: a}).Err
}

func (f *Forwarder) ReserveRange(size, align Size, at Addr) (Region, error) {
	v := f.do(Invocation{Call: CallReserveRange, Size: size, Align: align, Addr: at})
	return v.Region, v.Err
}

func (f *Forwarder) ReleaseRange(a Addr) error {
	return f.do(Invocation{Call: CallReleaseRange, Addr: a}).Err
}

func (f *Forwarder) CreateHandle(size Size) (Handle, error) {
	v := f.do(Invocation{Call: CallCreateHandle, Size: size})
	return v.Handle, v.Err
}

func (f *Forwarder) ReleaseHandle(h Handle) error {
	return f.do(Invocation{Call: CallReleaseHandle, Handle: h}).Err
}

func (f *Forwarder) Map(a Addr, size Size, h Handle, offset Size) error {
	return f.do(Invocation{Call: CallMap, Addr: a, Size: size, Handle: h, Offset: offset}).Err
}

func (f *Forwarder) SetAccess(a Addr, size Size, access Access) error {
	return f.do(Invocation{Call: CallSetAccess, Addr: a, Size: size, Access: access}).Err
}

func (f *Forwarder) Unmap(a Addr, size Size) error {
	return f.do(Invocation{Call: CallUnmap, Addr: a, Size: size}).Err
}

func (f *Forwarder) NewEvent() (Event, error) {
	v := f.do(Invocation{Call: CallNewEvent})
	return v.Event, v.Err
}

func (f *Forwarder) DestroyEvent(e Event) error {
	return f.do(Invocation{Call: CallDestroyEvent, Event: e}).Err
}

func (f *Forwarder) Record(e Event, on Stream) error {
	return f.do(Invocation{Call: CallRecord, Event: e, Stream: on}).Err
}

func (f *Forwarder) Done(e Event) (bool, error) {
	v := f.do(Invocation{Call: CallDone, Event: e})
	return v.Yes, v.Err
}

func (f *Forwarder) Wait(on Stream, e Event) error {
	return f.do(Invocation{Call: CallWait, Stream: on, Event: e}).Err
}

func (f *Forwarder) SyncEvent(e Event) error {
	return f.do(Invocation{Call: CallSyncEvent, Event: e}).Err
}

func (f *Forwarder) SyncStream(on Stream) error {
	return f.do(Invocation{Call: CallSyncStream, Stream: on}).Err
}

func (f *Forwarder) SyncDevice() error {
	return f.do(Invocation{Call: CallSyncDevice}).Err
}

func (f *Forwarder) NewPool(limit Size) (Pool, error) {
	v := f.do(Invocation{Call: CallNewPool, Size: limit})
	return v.Pool, v.Err
}

func (f *Forwarder) DestroyPool(pool Pool) error {
	return f.do(Invocation{Call: CallDestroyPool, Pool: pool}).Err
}

func (f *Forwarder) AllocAsync(pool Pool, size Size, on Stream) (Region, error) {
	v := f.do(Invocation{Call: CallAllocAsync, Pool: pool, Size: size, Stream: on})
	return v.Region, v.Err
}

func (f *Forwarder) FreeAsync(a Addr, on Stream) error {
	return f.do(Invocation{Call: CallFreeAsync, Addr: a, Stream: on}).Err
}

func (f *Forwarder) TrimPool(pool Pool, keep Size) error {
	return f.do(Invocation{Call: CallTrimPool, Pool: pool, Size: keep}).Err
}

func (f *Forwarder) PoolAttribute(pool Pool, a PoolAttribute) (Size, error) {
	v := f.do(Invocation{Call: CallPoolAttribute, Pool: pool, Attribute: a})
	return v.Value, v.Err
}

func (f *Forwarder) SetPoolAttribute(pool Pool, a PoolAttribute, value Size) error {
	return f.do(Invocation{Call: CallSetPoolAttribute, Pool: pool, Attribute: a, Value: value}).Err
}

func (f *Forwarder) MemoryInfo() (free, total Size, err error) {
	v := f.do(Invocation{Call: CallMemoryInfo})
	return v.Free, v.Total, v.Err
}

func (f *Forwarder) Fill(a Addr, n Size, pattern uint32) error {
	return f.do(Invocation{Call: CallFill, Addr: a, Size: n, Pattern: pattern}).Err
}

func (f *Forwarder) Compare(a Addr, n Size, pattern uint32) (differs Addr, same bool, err error) {
	v := f.do(Invocation{Call: CallCompare, Addr: a, Size: n, Pattern: pattern})
	return v.Differs, v.Yes, v.Err
}

func (f *Forwarder) Work(on Stream, ns uint64) error {
	if t, ok := f.inner.(Timeline); ok {
		return t.Work(on, ns)
	}
	return ErrUnsupported
}

func (f *Forwarder) Drain(on Stream) error {
	if t, ok := f.inner.(Timeline); ok {
		return t.Drain(on)
	}
	return ErrUnsupported
}

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

func (f *Forwarder) Ordered(e Event, on Stream) (bool, error) {
	if t, ok := f.inner.(Timeline); ok {
		return t.Ordered(e, on)
	}
	return false, ErrUnsupported
}
