package check

import (
	"fmt"

	"github.com/vramyard/vramyard/device"
)

// newWitness returns the device of a strategy, whose calls are recorded on a page.
func newWitness(src device.Source, p *page) device.Device {
	f := device.Hooked(src.(device.Device), device.Hook{After: func(v *device.Invocation) {
		if !witnessed.Has(v.Call) {
			return
		}
		answer := "done"
		switch v.Call {
		case device.CallReserve, device.CallReserveRange:
			answer = fmt.Sprintf("%v+%d", v.Region.Addr, uint64(v.Region.Size))
		case device.CallCreateHandle:
			answer = fmt.Sprintf("handle %#x", uint64(v.Handle))
		case device.CallDone:
			answer = fmt.Sprint(v.Yes)
		}
		if v.Err != nil {
			answer = v.Err.Error()
		}
		step := p.step()
		step.Device = append(step.Device, v.String()+": "+answer)
	}})
	return &f
}

// witnessed are the calls about memory and about the order of work.
var witnessed = device.CallsOf(
	device.CallReserve, device.CallRelease, device.CallReserveRange, device.CallReleaseRange, device.CallCreateHandle,
	device.CallReleaseHandle, device.CallMap, device.CallSetAccess, device.CallUnmap, device.CallRecord, device.CallDone,
	device.CallWait, device.CallSyncEvent, device.CallSyncStream, device.CallSyncDevice,
)
