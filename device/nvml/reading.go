package nvml

import (
	"errors"

	"github.com/vramyard/vramyard/device"
)

// ErrUnavailable says that the management library cannot be asked.
var ErrUnavailable = errors.New("nvml: not available")

// Memory is the memory of a GPU as the driver accounts for it, of all programs. Sizes are bytes.
type Memory struct {
	Total device.Size `json:"total_bytes"` // of the card
	// by programs; with what is reserved where the driver does not tell that apart
	Used     device.Size `json:"used_bytes"`
	Free     device.Size `json:"free_bytes"`     // by nobody
	Reserved device.Size `json:"reserved_bytes"` // by the driver and the firmware; 0 if it does not tell
}

// Process is a program that has a context on a GPU.
type Process struct {
	PID  uint32       `json:"pid"`        // number of the process
	Used *device.Size `json:"used_bytes"` // memory; nil where the driver does not tell, as in containers
}

// GPU is what the library says of a GPU. What a driver does not tell is empty.
type GPU struct {
	Index     int         `json:"index"`            // of the library, which counts by bus, not as CUDA does
	Name      string      `json:"name"`             // of the product
	UUID      string      `json:"uuid"`             // names the card for ever
	PCI       string      `json:"pci"`              // address on the bus
	Memory    Memory      `json:"memory"`           // of the whole card
	BAR1Total device.Size `json:"bar1_total_bytes"` // bytes of the card that the host can map
	BAR1Used  device.Size `json:"bar1_used_bytes"`  // bytes that it does map
	ECC       string      `json:"ecc"`              // "on" or "off"
	MIG       string      `json:"mig"`              // "on" or "off": cut into several instances
	Processes []Process   `json:"processes"`        // that compute on it
}

// Inventory is what the library says of a machine.
type Inventory struct {
	Driver string `json:"driver"` // version, such as 550.54.15
	CUDA   string `json:"cuda"`   // version that the driver is for, such as 12.4
	GPUs   []GPU  `json:"gpus"`   // by index
}
