package replay

import "github.com/vramyard/vramyard/device"

// layers are the devices between a strategy and the device of a replay. Each copies every call, so
// a replay has only the layers that it needs: the probes of a search have none.
type layers struct {
	top    device.Device  // the device of the strategy
	faults *device.Faults // nil if no call is failed and nothing observes the replay
	holder holder         // nil if the replay takes no figures
}

// holder is a device that returns the bytes held from it without the rest of its account. A
// simulated device is one.
type holder interface{ Held() device.Size }

// layersOver puts the layers of a replay over a device.
func (p *Prepared) layersOver(dev device.Device, o Options) (layers, error) {
	l := layers{top: dev}
	if o.Figures {
		var ok bool
		if l.holder, ok = dev.(holder); !ok {
			m := newMeter(dev)
			l.top, l.holder = m, m
		}
	}
	if !p.keep && o.Observe == nil {
		return l, nil // only counterexamples have faults
	}
	plan, err := FaultPlan(p.head.Header)
	if err != nil {
		return l, err
	}
	if l.faults, err = device.NewFaults(l.top, plan); err != nil {
		return l, err
	}
	l.top = l.faults
	return l, nil
}

// held returns the bytes held from the device. It is quick in a replay with figures.
func (l *layers) held() device.Size {
	if l.holder != nil {
		return l.holder.Held()
	}
	return l.top.Usage().Held
}

// meter is a device that tracks the held bytes, so that the replay need not query it after
// each event. Only calls change them.
type meter struct {
	device.Forwarder
	held device.Size
}

// Held implements [holder].
func (m *meter) Held() device.Size { return m.held }

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
