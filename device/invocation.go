package device

import "fmt"

// Invocation is a call to a device as data: kind, arguments and, after the call, results. Fields
// that the kind does not use are zero.
type Invocation struct {
	Call      Call          // the kind
	Addr      Addr          // address; ReserveRange: requested address
	Size      Size          // bytes; NewPool: maximum size, TrimPool: bytes to keep
	Align     Size          // Reserve, ReserveRange
	Handle    Handle        // argument, or result of CreateHandle
	Offset    Size          // Map: offset in the handle
	Access    Access        // SetAccess
	Stream    Stream        // argument
	Event     Event         // argument, or result of NewEvent
	Pool      Pool          // argument, or result of NewPool
	Attribute PoolAttribute // of a pool
	Value     Size          // value of the attribute: argument or result
	Pattern   uint32        // Fill, Compare

	Region      Region // result of Reserve, ReserveRange, AllocAsync
	Yes         bool   // result of Done; Compare: the bytes are equal
	Differs     Addr   // result of Compare
	Free, Total Size   // result of MemoryInfo
	Err         error  // result of every kind; nil for success
}

// String returns the kind and the arguments.
func (v Invocation) String() string {
	n := uint64(v.Size)
	var arguments string
	switch v.Call {
	case CallReserve, CallReserveRange, CallCreateHandle, CallNewPool:
		arguments = fmt.Sprintf(" %d", n)
	case CallRelease, CallReleaseRange:
		arguments = fmt.Sprintf(" %v", v.Addr)
	case CallReleaseHandle:
		arguments = fmt.Sprintf(" %#x", uint64(v.Handle))
	case CallMap:
		arguments = fmt.Sprintf(" %v+%d to %#x+%d", v.Addr, n, uint64(v.Handle), uint64(v.Offset))
	case CallSetAccess:
		arguments = fmt.Sprintf(" %v+%d %v", v.Addr, n, v.Access)
	case CallUnmap, CallFill, CallCompare:
		arguments = fmt.Sprintf(" %v+%d", v.Addr, n)
	case CallDestroyEvent, CallDone, CallSyncEvent:
		arguments = fmt.Sprintf(" %#x", uint64(v.Event))
	case CallRecord:
		arguments = fmt.Sprintf(" %#x on stream %d", uint64(v.Event), uint64(v.Stream))
	case CallWait:
		arguments = fmt.Sprintf(" on stream %d for %#x", uint64(v.Stream), uint64(v.Event))
	case CallSyncStream:
		arguments = fmt.Sprintf(" %d", uint64(v.Stream))
	case CallDestroyPool:
		arguments = fmt.Sprintf(" %#x", uint64(v.Pool))
	case CallAllocAsync:
		arguments = fmt.Sprintf(" %d on stream %d", n, uint64(v.Stream))
	case CallFreeAsync:
		arguments = fmt.Sprintf(" %v on stream %d", v.Addr, uint64(v.Stream))
	case CallTrimPool:
		arguments = fmt.Sprintf(" %#x to %d", uint64(v.Pool), n)
	case CallPoolAttribute:
		arguments = fmt.Sprintf(" %v", v.Attribute)
	case CallSetPoolAttribute:
		arguments = fmt.Sprintf(" %v to %d", v.Attribute, uint64(v.Value))
	}
	return v.Call.String() + arguments
}

// On makes the call on a device and stores the results. It fails with [ErrUnsupported] if the
// device lacks the capability.
func (v *Invocation) On(d Source) {
	v.Err = ErrUnsupported
	switch c := v.Call; {
	case c == CallReserve:
		v.Region, v.Err = d.Reserve(v.Size, v.Align)
	case c == CallRelease:
		v.Err = d.Release(v.Addr)
	case c <= CallUnmap:
		if m, ok := d.(VirtualMemory); ok {
			v.onMemory(m)
		}
	case c <= CallSyncDevice:
		if s, ok := d.(Streams); ok {
			v.onStreams(s)
		}
	case c <= CallSetPoolAttribute:
		if p, ok := d.(Pools); ok {
			v.onPools(p)
		}
	case c == CallMemoryInfo:
		if m, ok := d.(MemoryInfo); ok {
			v.Free, v.Total, v.Err = m.MemoryInfo()
		}
	default:
		if m, ok := d.(Contents); ok {
			v.onContents(m)
		}
	}
}

func (v *Invocation) onMemory(d VirtualMemory) {
	switch v.Call {
	case CallReserveRange:
		v.Region, v.Err = d.ReserveRange(v.Size, v.Align, v.Addr)
	case CallReleaseRange:
		v.Err = d.ReleaseRange(v.Addr)
	case CallCreateHandle:
		v.Handle, v.Err = d.CreateHandle(v.Size)
	case CallReleaseHandle:
		v.Err = d.ReleaseHandle(v.Handle)
	case CallMap:
		v.Err = d.Map(v.Addr, v.Size, v.Handle, v.Offset)
	case CallSetAccess:
		v.Err = d.SetAccess(v.Addr, v.Size, v.Access)
	case CallUnmap:
		v.Err = d.Unmap(v.Addr, v.Size)
	}
}

func (v *Invocation) onStreams(d Streams) {
	switch v.Call {
	case CallNewEvent:
		v.Event, v.Err = d.NewEvent()
	case CallDestroyEvent:
		v.Err = d.DestroyEvent(v.Event)
	case CallRecord:
		v.Err = d.Record(v.Event, v.Stream)
	case CallDone:
		v.Yes, v.Err = d.Done(v.Event)
	case CallWait:
		v.Err = d.Wait(v.Stream, v.Event)
	case CallSyncEvent:
		v.Err = d.SyncEvent(v.Event)
	case CallSyncStream:
		v.Err = d.SyncStream(v.Stream)
	case CallSyncDevice:
		v.Err = d.SyncDevice()
	}
}

func (v *Invocation) onPools(d Pools) {
	switch v.Call {
	case CallNewPool:
		v.Pool, v.Err = d.NewPool(v.Size)
	case CallDestroyPool:
		v.Err = d.DestroyPool(v.Pool)
	case CallAllocAsync:
		v.Region, v.Err = d.AllocAsync(v.Pool, v.Size, v.Stream)
	case CallFreeAsync:
		v.Err = d.FreeAsync(v.Addr, v.Stream)
	case CallTrimPool:
		v.Err = d.TrimPool(v.Pool, v.Size)
	case CallPoolAttribute:
		v.Value, v.Err = d.PoolAttribute(v.Pool, v.Attribute)
	case CallSetPoolAttribute:
		v.Err = d.SetPoolAttribute(v.Pool, v.Attribute, v.Value)
	}
}

func (v *Invocation) onContents(d Contents) {
	switch v.Call {
	case CallFill:
		v.Err = d.Fill(v.Addr, v.Size, v.Pattern)
	case CallCompare:
		v.Differs, v.Yes, v.Err = d.Compare(v.Addr, v.Size, v.Pattern)
	}
}
