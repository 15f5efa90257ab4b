package device

import (
	"encoding/json"
	"fmt"
)

// Call is a kind of call to a device. Methods that need no driver, such as Granularity and the
// methods of [Timeline], are not calls.
type Call uint8

// The kinds of calls.
const (
	CallReserve Call = iota
	CallRelease
	CallReserveRange
	CallReleaseRange
	CallCreateHandle
	CallReleaseHandle
	CallMap
	CallSetAccess
	CallUnmap
	CallNewEvent
	CallDestroyEvent
	CallRecord
	CallDone
	CallWait
	CallSyncEvent
	CallSyncStream
	CallSyncDevice
	CallNewPool
	CallDestroyPool
	CallAllocAsync
	CallFreeAsync
	CallTrimPool
	CallPoolAttribute
	CallSetPoolAttribute
	CallMemoryInfo
	CallFill
	CallCompare
	NumCalls // number of kinds
)

var callNames = [NumCalls]string{
	"reserve", "release", "reserve-range", "release-range", "create-handle", "release-handle", "map", "set-access",
	"unmap", "new-event", "destroy-event", "record", "done", "wait", "sync-event", "sync-stream", "sync-device",
	"new-pool", "destroy-pool", "alloc-async", "free-async", "trim-pool", "pool-attribute", "set-pool-attribute",
	"memory-info", "fill", "compare",
}

// String returns the kind in lower case.
func (c Call) String() string {
	if c < NumCalls {
		return callNames[c]
	}
	return "invalid"
}

// ParseCall returns the kind of call with a name. The error lists the names.
func ParseCall(name string) (Call, error) {
	for c, n := range callNames {
		if n == name {
			return Call(c), nil
		}
	}
	return 0, fmt.Errorf("device call %q: want one of %v", name, callNames)
}

// takes reports whether calls of the kind can fail for lack of a resource.
func (c Call) takes() bool {
	switch c {
	case CallReserve, CallReserveRange, CallCreateHandle, CallMap, CallNewEvent, CallNewPool, CallAllocAsync:
		return true
	}
	return false
}

// Capability returns the capability of a kind of call, and false for the calls of [Source], which
// every device has.
func (c Call) Capability() (Capability, bool) {
	switch {
	case c <= CallRelease:
		return 0, false
	case c <= CallUnmap:
		return CapVirtualMemory, true
	case c <= CallSyncDevice:
		return CapStreams, true
	case c <= CallSetPoolAttribute:
		return CapPools, true
	case c == CallMemoryInfo:
		return CapMemoryInfo, true
	}
	return CapContents, true
}

// CallCount counts the calls of a kind.
type CallCount struct {
	Done   uint64 // successful
	Failed uint64 // failed, including injected faults
}

// Calls counts calls to a device by kind.
type Calls [NumCalls]CallCount

// Total returns the number of all calls.
func (c Calls) Total() (n uint64) {
	for _, k := range c {
		n += k.Done + k.Failed
	}
	return n
}

// Obtained returns the number of calls that took memory: regions and handles.
func (c Calls) Obtained() uint64 { return c[CallReserve].Done + c[CallCreateHandle].Done }

// Refused returns the number of failed calls that would have taken memory.
func (c Calls) Refused() uint64 { return c[CallReserve].Failed + c[CallCreateHandle].Failed }

// Returned returns the number of calls that freed memory.
func (c Calls) Returned() uint64 { return c[CallRelease].Done + c[CallReleaseHandle].Done }

// Rejected returns the number of failed calls that would have freed memory.
func (c Calls) Rejected() uint64 { return c[CallRelease].Failed + c[CallReleaseHandle].Failed }

// Times holds nanoseconds by kind of call.
type Times [NumCalls]uint64

// MarshalJSON implements [json.Marshaler]: an object with the kinds that took time.
func (t Times) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	for kind, ns := range t {
		if ns == 0 {
			continue
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = fmt.Appendf(text, `"%v":%d`, Call(kind), ns)
	}
	return append(text, '}'), nil
}

// MarshalJSON implements [json.Marshaler]: an object with the kinds that were called.
func (c Calls) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	for kind, n := range c {
		if n == (CallCount{}) {
			continue
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = fmt.Appendf(text, `"%v":{"done":%d,"failed":%d}`, Call(kind), n.Done, n.Failed)
	}
	return append(text, '}'), nil
}

// CallSet is a set of kinds of calls. In JSON it is a list of their names.
type CallSet uint32

// CallsOf returns the set of the kinds.
func CallsOf(kinds ...Call) (s CallSet) {
	for _, c := range kinds {
		s |= 1 << c
	}
	return s
}

// Has reports whether a kind is in the set.
func (s CallSet) Has(c Call) bool { return s>>c&1 != 0 }

func (s CallSet) MarshalJSON() ([]byte, error) {
	names := []string{}
	for c := range NumCalls {
		if s.Has(c) {
			names = append(names, c.String())
		}
	}
	return json.Marshal(names)
}

// UnmarshalJSON implements [json.Unmarshaler]. An unknown name is an error.
func (s *CallSet) UnmarshalJSON(text []byte) error {
	var names []string
	if err := json.Unmarshal(text, &names); err != nil {
		return fmt.Errorf("device calls: want a list of names: %w", err)
	}
	*s = 0
	for _, n := range names {
		c, err := ParseCall(n)
		if err != nil {
			return err
		}
		*s |= CallsOf(c)
	}
	return nil
}
