package sim_test

import (
	"fmt"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

func ExampleParseDevice() {
	config, err := sim.ParseDevice("sim:h100-80g")
	if err != nil {
		panic(err)
	}
	gpu, err := sim.New(config)
	if err != nil {
		panic(err)
	}
	region, err := gpu.Reserve(3*device.MiB, 0)
	if err != nil {
		panic(err)
	}
	_, total, err := gpu.MemoryInfo()
	fmt.Println(region.Addr, region.Size, total, err)
	// Output:
	// 0x7f0000000000 3MiB 79.19GiB <nil>
}
