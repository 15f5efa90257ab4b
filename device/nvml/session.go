//go:build nvml && cgo && linux

package nvml

import (
	"errors"
	"fmt"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/vramyard/vramyard/device"
)

// Session is an initialized library. It is not safe for concurrent use.
type Session struct {
	lib nvml.Interface
}

// Open initializes the library. The caller closes the session.
//
// Errors: [ErrUnavailable], with the reason.
func Open() (*Session, error) { return open(nvml.New()) }

func open(lib nvml.Interface) (*Session, error) {
	if r := lib.Init(); r != nvml.SUCCESS {
		// nvml.ErrorString would call the library, which is missing.
		if r == nvml.ERROR_LIBRARY_NOT_FOUND {
			return nil, fmt.Errorf("%w: libnvidia-ml.so.1 is not there", ErrUnavailable)
		}
		return nil, fmt.Errorf("%w: the library does not start: error %d", ErrUnavailable, int32(r))
	}
	return &Session{lib: lib}, nil
}

// Close shuts the library down.
func (s *Session) Close() error { return s.callError("nvmlShutdown", s.lib.Shutdown()) }

func (s *Session) has(function string) bool { return s.lib.Extensions().LookupSymbol(function) == nil }

// errNoFunction is the error for a library that is too old.
var errNoFunction = errors.New("the library has no such function")

// callError returns the result of a function as an error, nil for success.
func (s *Session) callError(function string, r nvml.Return) error {
	if r == nvml.SUCCESS {
		return nil
	}
	if !s.has("nvmlErrorString") {
		return fmt.Errorf("nvml: %s: error %d", function, int32(r))
	}
	return fmt.Errorf("nvml: %s: %s (%d)", function, s.lib.ErrorString(r), int32(r))
}

// query calls a function of the library if the library exports it, and fails otherwise.
func query[T any](s *Session, function string, call func() (T, nvml.Return)) (T, error) {
	if !s.has(function) {
		var none T
		return none, fmt.Errorf("nvml: %s: %w", function, errNoFunction)
	}
	v, r := call()
	return v, s.callError(function, r)
}

// optional is query for optional data: on any error it returns the zero value.
func optional[T any](s *Session, function string, call func() (T, nvml.Return)) T {
	v, err := query(s, function, call)
	if err != nil {
		var none T
		return none
	}
	return v
}

// Inventory returns the GPUs of the machine. A GPU that does not respond, for instance after
// falling off the bus, is an error.
func (s *Session) Inventory() (Inventory, error) {
	var all Inventory
	all.Driver = optional(s, "nvmlSystemGetDriverVersion", s.lib.SystemGetDriverVersion)
	if v := optional(s, "nvmlSystemGetCudaDriverVersion", s.lib.SystemGetCudaDriverVersion); v != 0 {
		all.CUDA = fmt.Sprintf("%d.%d", v/1000, v%1000/10)
	}
	n, err := query(s, "nvmlDeviceGetCount_v2", s.lib.DeviceGetCount)
	if err != nil {
		return all, err
	}
	for i := range n {
		g, err := s.gpu(i)
		if err != nil {
			return all, fmt.Errorf("GPU %d: %w", i, err)
		}
		all.GPUs = append(all.GPUs, g)
	}
	return all, nil
}

// gpu returns the data of a GPU.
func (s *Session) gpu(index int) (g GPU, err error) {
	d, err := query(s, "nvmlDeviceGetHandleByIndex_v2", func() (nvml.Device, nvml.Return) {
		return s.lib.DeviceGetHandleByIndex(index)
	})
	if err != nil {
		return g, err
	}
	g.Index = index
	if g.Name, err = query(s, "nvmlDeviceGetName", d.GetName); err != nil {
		return g, err
	}
	if g.Memory, err = s.memory(d); err != nil {
		return g, err
	}
	g.UUID = optional(s, "nvmlDeviceGetUUID", d.GetUUID)
	g.PCI = address(optional(s, "nvmlDeviceGetPciInfo_v3", d.GetPciInfo))
	bar1 := optional(s, "nvmlDeviceGetBAR1MemoryInfo", d.GetBAR1MemoryInfo)
	g.BAR1Total, g.BAR1Used = device.Size(bar1.Bar1Total), device.Size(bar1.Bar1Used)
	g.ECC = optional(s, "nvmlDeviceGetEccMode", func() (string, nvml.Return) {
		now, _, r := d.GetEccMode()
		return onOff(now == nvml.FEATURE_ENABLED), r
	})
	g.MIG = optional(s, "nvmlDeviceGetMigMode", func() (string, nvml.Return) {
		now, _, r := d.GetMigMode()
		return onOff(now == nvml.DEVICE_MIG_ENABLE), r
	})
	for _, p := range s.processes(d) {
		g.Processes = append(g.Processes, process(p))
	}
	return g, nil
}

// processes calls the newest version of the function that the library exports. go-nvml would only
// call the version that it was built for.
func (s *Session) processes(d nvml.Device) []nvml.ProcessInfo {
	for _, function := range []string{"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2",
		"nvmlDeviceGetComputeRunningProcesses"} {
		if s.has(function) {
			return optional(s, function, d.GetComputeRunningProcesses)
		}
	}
	return nil
}

// process converts the data of a process. The maximum memory value means "not reported".
func process(p nvml.ProcessInfo) Process {
	q := Process{PID: p.Pid}
	if p.UsedGpuMemory != ^uint64(0) {
		used := device.Size(p.UsedGpuMemory)
		q.Used = &used
	}
	return q
}

// memory calls the function that reports reserved memory or, if it is missing, the older one.
func (s *Session) memory(d nvml.Device) (Memory, error) {
	if s.has("nvmlDeviceGetMemoryInfo_v2") {
		m, err := query(s, "nvmlDeviceGetMemoryInfo_v2", d.GetMemoryInfo_v2)
		if err == nil {
			return Memory{Total: device.Size(m.Total), Used: device.Size(m.Used), Free: device.Size(m.Free),
				Reserved: device.Size(m.Reserved)}, nil
		}
	}
	m, err := query(s, "nvmlDeviceGetMemoryInfo", d.GetMemoryInfo)
	return Memory{Total: device.Size(m.Total), Used: device.Size(m.Used), Free: device.Size(m.Free)}, err
}

// Memory returns the memory of the GPU with a bus address in the format of package device/cuda.
func (s *Session) Memory(pci string) (Memory, error) {
	d, err := query(s, "nvmlDeviceGetHandleByPciBusId_v2", func() (nvml.Device, nvml.Return) {
		return s.lib.DeviceGetHandleByPciBusId(pci)
	})
	if err != nil {
		return Memory{}, err
	}
	return s.memory(d)
}

// address returns a bus address in the format of package device/cuda. The library writes eight
// digits of the domain.
func address(p nvml.PciInfo) string {
	text := make([]byte, 0, len(p.BusId))
	for _, c := range p.BusId {
		if c == 0 {
			break
		}
		text = append(text, byte(c))
	}
	return strings.TrimPrefix(strings.ToLower(string(text)), "0000")
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
