package nvml_test

import (
	"fmt"

	"github.com/vramyard/vramyard/device/nvml"
)

// The output depends on the machine. Without the build tag nvml, Open returns ErrUnavailable.
func ExampleOpen() {
	session, err := nvml.Open()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()
	all, err := session.Inventory()
	if err != nil {
		panic(err)
	}
	for _, gpu := range all.GPUs {
		fmt.Println(gpu.Index, gpu.Name, gpu.Memory.Total)
	}
}
