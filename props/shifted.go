package props

import "github.com/vramyard/vramyard/device"

// farAway is the shift of the addresses of a shifted device. It is a multiple of every
// alignment that any block can have: no address of the simulated device, which ends below 2^57,
// is a multiple of more.
const farAway = 1 << 57

// shiftedDevice returns the device that the suite hands a strategy, with addresses that are
// higher by farAway.
func shiftedDevice(src device.Source) device.Device {
	f := device.Hooked(src.(device.Device), device.Hook{
		Before: func(v *device.Invocation) error {
			if v.Call != device.CallReserveRange || v.Addr != 0 { // else any address will do
				v.Addr -= farAway
			}
			return nil
		},
		After: func(v *device.Invocation) {
			if v.Err == nil {
				v.Region.Addr, v.Differs = v.Region.Addr.Add(farAway), v.Differs.Add(farAway)
			}
		},
	})
	return &f
}
