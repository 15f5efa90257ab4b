package replay

import "github.com/vramyard/vramyard/device"

// meter is a device that knows what is held from it at every moment, without the replay
// having to ask after each event.
type meter struct {
	device.Device
	held  device.Size
	sizes map[device.Addr]device.Size
}

func newMeter(dev device.Device) *meter {
	return &meter{Device: dev, sizes: map[device.Addr]device.Size{}}
}

// Reserve implements [device.Source].
func (m *meter) Reserve(size, align device.Size) (device.Region, error) {
	r, err := m.Device.Reserve(size, align)
	if err == nil {
		m.held += r.Size
		m.sizes[r.Addr] = r.Size
	}
	return r, err
}

// Release implements [device.Source].
func (m *meter) Release(a device.Addr) error {
	err := m.Device.Release(a)
	if err == nil {
		m.held -= m.sizes[a]
		delete(m.sizes, a)
	}
	return err
}
