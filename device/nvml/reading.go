package nvml

import (
	"errors"

	"github.com/vramyard/vramyard/device"
)

// ErrUnavailable is the error if the management library cannot be used.
var ErrUnavailable = errors.New("nvml: not available")

// Memory is the memory of a GPU as the driver accounts for it, for all programs. Sizes are bytes.
type Memory struct {
	Total device.Size `json:"total_bytes"` // of the card
	// used by programs; includes Reserved if the driver does not report it separately
	Used     device.Size `json:"used_bytes"`
	Free     device.Size `json:"free_bytes"`     // unused
	Reserved device.Size `json:"reserved_bytes"` // reserved by the driver and the firmware; 0 if not reported
}

// Process is a process with a context on a GPU.
type Process struct {
	PID  uint32       `json:"pid"`        // process id
	Used *device.Size `json:"used_bytes"` // memory; nil if not reported, as in containers
}

// GPU describes a GPU. Fields that the driver does not report are empty.
type GPU struct {
	Index     int         `json:"index"`            // the library's index: by bus address, unlike CUDA's
	Name      string      `json:"name"`             // product name
	UUID      string      `json:"uuid"`             // permanent identity of the card
	PCI       string      `json:"pci"`              // address on the bus
	Memory    Memory      `json:"memory"`           // of the whole card
	BAR1Total device.Size `json:"bar1_total_bytes"` // size of the window through which the host can map the card's memory
	BAR1Used  device.Size `json:"bar1_used_bytes"`  // bytes mapped
	ECC       string      `json:"ecc"`              // "on" or "off"
	MIG       string      `json:"mig"`              // "on" or "off": partitioned into several instances
	Processes []Process   `json:"processes"`        // compute processes
}

// Inventory describes the GPUs of a machine.
type Inventory struct {
	Driver string `json:"driver"` // version, such as 550.54.15
	CUDA   string `json:"cuda"`   // version supported by the driver, such as 12.4
	GPUs   []GPU  `json:"gpus"`   // by index
}
