package replay

import "github.com/vramyard/vramyard/device"

// meter is a device that tracks the held bytes, so that the replay need not query it after
// each event. Only calls change them.
type meter struct {
	device.Forwarder
	held device.Size
}

func newMeter(dev device.Device) *meter {
	m := &meter{}
	m.Forwarder = device.Hooked(dev, device.Hook{After: m.update})
	return m
}

// heldChanges are the calls that may change the held bytes. Unmapping frees the memory of a handle
// that was released before, and pools release memory when they are synchronised.
var heldChanges = device.CallsOf(
	device.CallReserve, device.CallRelease, device.CallCreateHandle, device.CallReleaseHandle, device.CallUnmap,
	device.CallAllocAsync, device.CallFreeAsync, device.CallTrimPool, device.CallDestroyPool,
	device.CallSyncEvent, device.CallSyncStream, device.CallSyncDevice,
)

// update updates the held bytes after a call.
func (m *meter) update(v *device.Invocation) {
	if heldChanges.Has(v.Call) {
		m.held = m.Usage().Held
	}
}
