package cuda

import (
	"fmt"
	"unsafe"

	"github.com/vramyard/vramyard/device"
)

// Attributes of a GPU, CUdevice_attribute.
const (
	attrMultiprocessors = 16
	attrPCIBus          = 33
	attrPCIDevice       = 34
	attrPCIDomain       = 50
	attrMajor           = 75
	attrMinor           = 76
	attrVirtualMemory   = 102
	attrMemoryPools     = 115
)

// GPU describes a GPU.
type GPU struct {
	Ordinal         int         `json:"ordinal"`         // number N of cuda:N
	Name            string      `json:"name"`            // product name
	Memory          device.Size `json:"memory"`          // memory available to CUDA, in bytes
	Capability      string      `json:"capability"`      // compute capability, such as 9.0
	Multiprocessors int         `json:"multiprocessors"` // number of multiprocessors
	PCI             string      `json:"pci"`             // bus address
	VirtualMemory   bool        `json:"virtual_memory"`  // supports virtual memory management
	Pools           bool        `json:"pools"`           // supports stream-ordered pools
}

// Inventory is a driver and its GPUs.
type Inventory struct {
	Driver string `json:"driver"` // CUDA version of the driver, such as 12.4
	GPUs   []GPU  `json:"gpus"`   // by ordinal
}

// Find returns the GPU with a number. The error is a [device.ErrInvalid] that lists all GPUs.
func (i Inventory) Find(ordinal int) (GPU, error) {
	if err := checkOrdinal(ordinal, len(i.GPUs)); err != nil {
		return GPU{}, err
	}
	return i.GPUs[ordinal], nil
}

// checkOrdinal returns an error if a driver with n GPUs has no GPU with this number.
func checkOrdinal(ordinal, n int) error {
	switch {
	case n == 0:
		return fmt.Errorf("cuda:%d: %w: the driver shows no GPU", ordinal, device.ErrInvalid)
	case ordinal < 0 || ordinal >= n || ordinal > 255:
		return fmt.Errorf("cuda:%d: %w: the driver shows cuda:0 to cuda:%d", ordinal, device.ErrInvalid, n-1)
	}
	return nil
}

// List returns the GPUs of a driver; "" is the system's driver. It makes no context.
//
// Errors: [ErrNoDriver]; an [Error] of the driver.
func List(driver string) (Inventory, error) {
	v, err := load(driver)
	if err != nil {
		return Inventory{}, err
	}
	n, err := v.count()
	if err != nil {
		return Inventory{}, err
	}
	list := Inventory{Driver: fmt.Sprintf("%d.%d", v.version/1000, v.version%1000/10), GPUs: make([]GPU, n)}
	for i := range list.GPUs {
		if list.GPUs[i], err = v.describeGPU(i); err != nil {
			return Inventory{}, err
		}
	}
	return list, nil
}

func (d *driver) describeGPU(ordinal int) (GPU, error) {
	gpu, err := d.gpu(ordinal)
	if err != nil {
		return GPU{}, err
	}
	g := GPU{Ordinal: ordinal}
	var name [256]byte
	if err := d.call(fnDeviceGetName, uintptr(unsafe.Pointer(&name[0])), uintptr(len(name)-1), uintptr(gpu)); err != nil {
		return GPU{}, err
	}
	g.Name = textAt(&name[0])
	if err := d.call(fnDeviceTotalMem, uintptr(unsafe.Pointer(&g.Memory)), uintptr(gpu)); err != nil {
		return GPU{}, err
	}
	var values [8]int32
	for i, attr := range []int{
		attrMajor, attrMinor, attrMultiprocessors, attrPCIDomain, attrPCIBus, attrPCIDevice, attrVirtualMemory,
		attrMemoryPools,
	} {
		// An old driver does not know the last two attributes, and lacks these features.
		if values[i], err = d.attribute(gpu, attr); err != nil && attr < attrVirtualMemory {
			return GPU{}, err
		}
	}
	g.Capability = fmt.Sprintf("%d.%d", values[0], values[1])
	g.Multiprocessors = int(values[2])
	g.PCI = fmt.Sprintf("%04x:%02x:%02x.0", values[3], values[4], values[5])
	g.VirtualMemory, g.Pools = d.virtual && values[6] != 0, d.pools && values[7] != 0
	return g, nil
}

func (d *driver) attribute(gpu int32, attr int) (value int32, err error) {
	err = d.call(fnDeviceGetAttribute, uintptr(unsafe.Pointer(&value)), uintptr(attr), uintptr(gpu))
	return value, err
}
