package props

import "github.com/vramyard/vramyard/device"

// farAway is how much higher the addresses of a shifted device are. It is a multiple of
// every alignment that any block can have: no address of the simulated device, which ends
// below 2^57, is a multiple of more.
const farAway = 1 << 57

// elsewhere is a device whose addresses are higher by farAway.
type elsewhere struct{ device.Forwarder }

// newElsewhere returns what the suite hands a strategy, which is a device, with other addresses.
func newElsewhere(src device.Source) *elsewhere {
	return &elsewhere{device.Forward(src.(device.Device))}
}

// shifted returns a region at the address that a caller sees.
func shifted(r device.Region, err error) (device.Region, error) {
	if err == nil {
		r.Addr = r.Addr.Add(farAway)
	}
	return r, err
}

// Reserve implements [device.Source].
func (e *elsewhere) Reserve(size, align device.Size) (device.Region, error) {
	return shifted(e.Forwarder.Reserve(size, align))
}

// ReserveRange implements [device.VirtualMemory].
func (e *elsewhere) ReserveRange(size, align device.Size, at device.Addr) (device.Region, error) {
	if at != 0 { // else there is no wish
		at -= farAway
	}
	return shifted(e.Forwarder.ReserveRange(size, align, at))
}

// AllocAsync implements [device.Pools].
func (e *elsewhere) AllocAsync(p device.Pool, size device.Size, s device.Stream) (device.Region, error) {
	return shifted(e.Forwarder.AllocAsync(p, size, s))
}

// Compare implements [device.Contents].
func (e *elsewhere) Compare(a device.Addr, n device.Size, pattern uint32) (device.Addr, bool, error) {
	differs, same, err := e.Forwarder.Compare(a-farAway, n, pattern)
	if err == nil && !same {
		differs = differs.Add(farAway)
	}
	return differs, same, err
}

// Release implements [device.Source].
func (e *elsewhere) Release(a device.Addr) error {
	return e.Forwarder.Release(a - farAway)
}

// ReleaseRange implements [device.VirtualMemory].
func (e *elsewhere) ReleaseRange(a device.Addr) error {
	return e.Forwarder.ReleaseRange(a - farAway)
}

// Map implements [device.VirtualMemory].
func (e *elsewhere) Map(a device.Addr, size device.Size, h device.Handle, offset device.Size) error {
	return e.Forwarder.Map(a-farAway, size, h, offset)
}

// SetAccess implements [device.VirtualMemory].
func (e *elsewhere) SetAccess(a device.Addr, size device.Size, access device.Access) error {
	return e.Forwarder.SetAccess(a-farAway, size, access)
}

// Unmap implements [device.VirtualMemory].
func (e *elsewhere) Unmap(a device.Addr, size device.Size) error {
	return e.Forwarder.Unmap(a-farAway, size)
}

// FreeAsync implements [device.Pools].
func (e *elsewhere) FreeAsync(a device.Addr, s device.Stream) error {
	return e.Forwarder.FreeAsync(a-farAway, s)
}

// Fill implements [device.Contents].
func (e *elsewhere) Fill(a device.Addr, n device.Size, pattern uint32) error {
	return e.Forwarder.Fill(a-farAway, n, pattern)
}
