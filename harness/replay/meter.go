package replay

import "github.com/vramyard/vramyard/device"

// meter is a device that knows what is held from it at every moment, without the replay
// having to ask after each event: only calls change it.
type meter struct {
	device.Forwarder
	held device.Size
}

func newMeter(dev device.Device) *meter { return &meter{Forwarder: device.Forward(dev)} }

// weigh notes what is held after a call.
func (m *meter) weigh() { m.held = m.Usage().Held }

// Reserve implements [device.Source].
func (m *meter) Reserve(size, align device.Size) (device.Region, error) {
	defer m.weigh()
	return m.Forwarder.Reserve(size, align)
}

// Release implements [device.Source].
func (m *meter) Release(a device.Addr) error {
	defer m.weigh()
	return m.Forwarder.Release(a)
}

// CreateHandle implements [device.VirtualMemory].
func (m *meter) CreateHandle(size device.Size) (device.Handle, error) {
	defer m.weigh()
	return m.Forwarder.CreateHandle(size)
}

// ReleaseHandle implements [device.VirtualMemory].
func (m *meter) ReleaseHandle(h device.Handle) error {
	defer m.weigh()
	return m.Forwarder.ReleaseHandle(h)
}

// Unmap implements [device.VirtualMemory].
func (m *meter) Unmap(a device.Addr, size device.Size) error {
	defer m.weigh() // of a handle that was released before
	return m.Forwarder.Unmap(a, size)
}

// AllocAsync implements [device.Pools].
func (m *meter) AllocAsync(p device.Pool, size device.Size, s device.Stream) (device.Region, error) {
	defer m.weigh()
	return m.Forwarder.AllocAsync(p, size, s)
}

// FreeAsync implements [device.Pools].
func (m *meter) FreeAsync(a device.Addr, s device.Stream) error {
	defer m.weigh()
	return m.Forwarder.FreeAsync(a, s)
}

// TrimPool implements [device.Pools].
func (m *meter) TrimPool(p device.Pool, keep device.Size) error {
	defer m.weigh()
	return m.Forwarder.TrimPool(p, keep)
}

// DestroyPool implements [device.Pools].
func (m *meter) DestroyPool(p device.Pool) error {
	defer m.weigh()
	return m.Forwarder.DestroyPool(p)
}

// SyncEvent implements [device.Streams]. Pools give memory back on synchronising.
func (m *meter) SyncEvent(e device.Event) error {
	defer m.weigh()
	return m.Forwarder.SyncEvent(e)
}

// SyncStream implements [device.Streams].
func (m *meter) SyncStream(s device.Stream) error {
	defer m.weigh()
	return m.Forwarder.SyncStream(s)
}

// SyncDevice implements [device.Streams].
func (m *meter) SyncDevice() error {
	defer m.weigh()
	return m.Forwarder.SyncDevice()
}
