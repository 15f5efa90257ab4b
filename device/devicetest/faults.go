package devicetest

import (
	"errors"

	"github.com/vramyard/vramyard/device"
)

var faultPromises = []promise{
	{name: "EveryCallCanBeRefusedOnce", run: everyCallRefused},
	{name: "EveryKindCanBeRefused", run: everyKindRefused},
}

// allocating are the calls that obtain a limited resource.
var allocating = device.CallsOf(device.CallReserve, device.CallReserveRange, device.CallCreateHandle, device.CallMap,
	device.CallNewEvent, device.CallNewPool, device.CallAllocAsync)

// everyCallRefused runs a script with calls of every kind once for each of its calls, and injects a
// fault into that call. The refused call must change nothing, and its repetition must succeed.
func everyCallRefused(r *rig) {
	for nth := uint64(1); ; nth++ {
		faulty := r.withFaults(device.FaultPlan{Nth: nth})
		script(faulty)
		if faulty.injected() == 0 {
			if want := faulty.kinds(); faulty.called != want {
				r.Errorf("the script makes calls of the kinds %s, want %s", names(faulty.called), names(want))
			}
			return
		}
	}
}

// everyKindRefused refuses each call of one kind in turn, and no other.
func everyKindRefused(r *rig) {
	all := r.kinds()
	for c := range device.NumCalls {
		if !all.Has(c) {
			continue
		}
		for nth := uint64(1); ; nth++ {
			faulty := r.withFaults(device.FaultPlan{Nth: nth, Calls: device.CallsOf(c)})
			script(faulty)
			if faulty.injected() == 0 {
				break
			}
			if faulty.refused != device.CallsOf(c) {
				r.Errorf("a plan for %v refused %s", c, names(faulty.refused))
			}
		}
	}
}

// withFaults returns a rig around the device with injected faults.
func (r *rig) withFaults(plan device.FaultPlan) *rig {
	r.Helper()
	f, err := device.NewFaults(r.d, plan)
	if err != nil {
		r.Fatal(err)
	}
	faulty := newRig(r.TB, f)
	faulty.open, faulty.injected = r.open, f.Injected
	return faulty
}

// kinds returns the calls of the device's capabilities.
func (r *rig) kinds() (s device.CallSet) {
	for c := range device.NumCalls {
		var have bool
		switch {
		case c <= device.CallRelease:
			have = true
		case c <= device.CallUnmap:
			have = r.vm != nil
		case c <= device.CallSyncDevice:
			have = r.str != nil
		case c <= device.CallSetPoolAttribute:
			have = r.pool != nil
		case c == device.CallMemoryInfo:
			have = r.info != nil
		default:
			have = r.mem != nil
		}
		if have {
			s |= device.CallsOf(c)
		}
	}
	return s
}

func names(s device.CallSet) string {
	b, err := s.MarshalJSON()
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// checkInjected checks a call that a fault refused: it must not have reached the device.
func (r *rig) checkInjected(err error, c device.Call, was device.Usage, args []any) {
	r.Helper()
	if !errors.Is(err, device.ErrInjected) || errors.Is(err, device.ErrOutOfMemory) != allocating.Has(c) {
		r.Fatalf("a fault refused %v%v and the call returned %q", c, args, text(err))
	}
	want := was.Calls
	want[c].Failed++
	if now := r.d.Usage(); now.Calls != want {
		r.Errorf("a fault refused %v%v and the calls went from %s to %s", c, args, callCounts(was.Calls),
			callCounts(now.Calls))
	}
	r.unchanged(was, "a fault refused %v%v", c, args)
}

// script makes calls of every kind that the device supports, including mistakes, and releases
// everything.
func script(r *rig) {
	r.Helper()
	a := r.reserve(nil, device.MiB, 0)
	r.reserve(device.ErrInvalid, 0, 0)
	if r.mem != nil {
		r.fill(nil, a.Addr, a.Size, 42)
		r.requireFilled(a.Addr, a.Size, 42)
	}
	if r.info != nil {
		r.memoryInfo()
	}
	if r.vm != nil && r.vm.Granularity() <= 4*device.MiB {
		r.scriptVirtual()
	}
	if r.str != nil {
		r.scriptStreams()
	}
	if r.pool != nil {
		r.scriptPools()
	}
	if r.mem != nil {
		r.requireFilled(a.Addr, a.Size, 42)
	}
	r.release(device.ErrInvalid, a.Addr+1)
	r.release(nil, a.Addr)
	r.finish()
}

func (r *rig) scriptVirtual() {
	r.Helper()
	g, a, h := r.rangeAndHandle(4)
	r.mapAt(nil, a.Addr, 2*g, h, 0)
	r.mapAt(nil, a.Addr.Add(2*g), 2*g, h, 0)
	r.setAccess(nil, a.Addr, 4*g, device.AccessReadWrite)
	if r.mem != nil {
		r.fill(nil, a.Addr, 2*g, 7)
		r.requireFilled(a.Addr.Add(2*g), 2*g, 7)
	}
	r.releaseRange(device.ErrMapped, a.Addr)
	r.releaseHandle(nil, h)
	r.unmap(device.ErrInvalid, a.Addr, g)
	r.unmap(nil, a.Addr, 2*g)
	r.unmap(nil, a.Addr.Add(2*g), 2*g)
	r.releaseRange(nil, a.Addr)
}

func (r *rig) scriptStreams() {
	r.Helper()
	e := r.newEvent()
	r.record(nil, e, 1)
	r.wait(nil, 2, e)
	r.done(nil, e)
	r.syncEvent(nil, e)
	r.syncStream(nil, 2)
	r.syncDevice(nil)
	if !r.done(nil, e) {
		r.Errorf("the device was synchronized and an event is not done")
	}
	r.destroyEvent(nil, e)
	r.destroyEvent(device.ErrEvent, e)
}

func (r *rig) scriptPools() {
	r.Helper()
	p := r.newPool(0)
	r.setAttribute(nil, p, device.ReleaseThreshold, device.GiB)
	a := r.allocAsync(nil, p, device.MiB, 1)
	if used := r.attribute(nil, p, device.UsedNow); used != a.Size {
		r.Errorf("a pool granted %v and reports %v as used", a.Size, used)
	}
	r.destroyPool(device.ErrBusy, p)
	r.freeAsync(nil, a.Addr, 1)
	r.freeAsync(device.ErrInvalid, a.Addr, 1)
	r.syncDevice(nil)
	r.trimPool(nil, p, 0)
	r.destroyPool(nil, p)
}
