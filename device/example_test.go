package device_test

import (
	"fmt"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

// A hook sees every call of the driver, and may refuse it.
func ExampleHooked() {
	gpu, err := sim.New(sim.Config{Capacity: 64 * device.MiB})
	if err != nil {
		panic(err)
	}
	d := device.Hooked(gpu, device.Hook{
		Before: func(v *device.Invocation) error {
			if v.Size > 8*device.MiB {
				return device.ErrOutOfMemory
			}
			return nil
		},
		After: func(v *device.Invocation) { fmt.Println(v.Call, v.Size, v.Region.Addr) },
	})
	_, err = d.Reserve(2*device.MiB, 0)
	fmt.Println(err)
	_, err = d.Reserve(16*device.MiB, 0)
	fmt.Println(err)
	// Output:
	// reserve 2MiB 0x7f0000000000
	// <nil>
	// device: out of memory
}
