package sim

import "github.com/vramyard/vramyard/device"

// Has implements [device.Has]. The device has contents only at level [Filled].
func (d *Device) Has(c device.Capability) bool {
	if c == device.CapContents {
		return d.cfg.Memory == Filled
	}
	return device.Implements(d, c)
}

func (d *Device) MemoryInfo() (free, total device.Size, err error) {
	d.asked = true
	if d.cfg.Capacity != 0 {
		free, total = d.usage.Free(), d.cfg.Capacity
	}
	return free, total, d.count(device.CallMemoryInfo, 0, nil)
}
