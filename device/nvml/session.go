//go:build nvml && cgo && linux

package nvml

import (
	"errors"
	"fmt"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/vramyard/vramyard/device"
)

// Session is a started library. It is not safe for concurrent use.
type Session struct {
	lib nvml.Interface
}

// Open starts the library. The caller closes the session.
//
// Errors: [ErrUnavailable], with the reason.
func Open() (*Session, error) { return open(nvml.New()) }

// open starts a library.
func open(lib nvml.Interface) (*Session, error) {
	if r := lib.Init(); r != nvml.SUCCESS {
		// nvml.ErrorString asks the library, which is not there.
		if r == nvml.ERROR_LIBRARY_NOT_FOUND {
			return nil, fmt.Errorf("%w: libnvidia-ml.so.1 is not there", ErrUnavailable)
		}
		return nil, fmt.Errorf("%w: the library does not start: error %d", ErrUnavailable, int32(r))
	}
	return &Session{lib: lib}, nil
}

// Close stops the library.
func (s *Session) Close() error { return s.refused("nvmlShutdown", s.lib.Shutdown()) }

func (s *Session) has(function string) bool { return s.lib.Extensions().LookupSymbol(function) == nil }

// errNoFunction says that the library is too old.
var errNoFunction = errors.New("the library has no such function")

// refused returns what a function answered as an error, nil for success.
func (s *Session) refused(function string, r nvml.Return) error {
	if r == nvml.SUCCESS {
		return nil
	}
	if !s.has("nvmlErrorString") {
		return fmt.Errorf("nvml: %s: error %d", function, int32(r))
	}
	return fmt.Errorf("nvml: %s: %s (%d)", function, s.lib.ErrorString(r), int32(r))
}

// ask calls a function of the library if it has it. A missing one is an error.
func ask[T any](s *Session, function string, call func() (T, nvml.Return)) (T, error) {
	if !s.has(function) {
		var none T
		return none, fmt.Errorf("nvml: %s: %w", function, errNoFunction)
	}
	v, r := call()
	return v, s.refused(function, r)
}

// tell is ask for what may be left out: what the library or the card does not tell is zero.
func tell[T any](s *Session, function string, call func() (T, nvml.Return)) T {
	v, err := ask(s, function, call)
	if err != nil {
		var none T
		return none
	}
	return v
}

// Inventory returns what there is. A GPU that does not answer, as one that fell off the bus, is an
// error.
func (s *Session) Inventory() (Inventory, error) {
	var all Inventory
	all.Driver = tell(s, "nvmlSystemGetDriverVersion", s.lib.SystemGetDriverVersion)
	if v := tell(s, "nvmlSystemGetCudaDriverVersion", s.lib.SystemGetCudaDriverVersion); v != 0 {
		all.CUDA = fmt.Sprintf("%d.%d", v/1000, v%1000/10)
	}
	n, err := ask(s, "nvmlDeviceGetCount_v2", s.lib.DeviceGetCount)
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

// gpu returns what is told of one GPU.
func (s *Session) gpu(index int) (g GPU, err error) {
	d, err := ask(s, "nvmlDeviceGetHandleByIndex_v2", func() (nvml.Device, nvml.Return) {
		return s.lib.DeviceGetHandleByIndex(index)
	})
	if err != nil {
		return g, err
	}
	g.Index = index
	if g.Name, err = ask(s, "nvmlDeviceGetName", d.GetName); err != nil {
		return g, err
	}
	if g.Memory, err = s.memory(d); err != nil {
		return g, err
	}
	g.UUID = tell(s, "nvmlDeviceGetUUID", d.GetUUID)
	g.PCI = address(tell(s, "nvmlDeviceGetPciInfo_v3", d.GetPciInfo))
	bar1 := tell(s, "nvmlDeviceGetBAR1MemoryInfo", d.GetBAR1MemoryInfo)
	g.BAR1Total, g.BAR1Used = device.Size(bar1.Bar1Total), device.Size(bar1.Bar1Used)
	g.ECC = tell(s, "nvmlDeviceGetEccMode", func() (string, nvml.Return) {
		now, _, r := d.GetEccMode()
		return onOff(now == nvml.FEATURE_ENABLED), r
	})
	g.MIG = tell(s, "nvmlDeviceGetMigMode", func() (string, nvml.Return) {
		now, _, r := d.GetMigMode()
		return onOff(now == nvml.DEVICE_MIG_ENABLE), r
	})
	for _, p := range s.processes(d) {
		g.Processes = append(g.Processes, process(p))
	}
	return g, nil
}

// processes asks by the newest function that the library has: go-nvml calls the one it was made
// for.
func (s *Session) processes(d nvml.Device) []nvml.ProcessInfo {
	for _, function := range []string{"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2",
		"nvmlDeviceGetComputeRunningProcesses"} {
		if s.has(function) {
			return tell(s, function, d.GetComputeRunningProcesses)
		}
	}
	return nil
}

// process returns what is told of a program. The largest number stands for memory that is not told.
func process(p nvml.ProcessInfo) Process {
	q := Process{PID: p.Pid}
	if p.UsedGpuMemory != ^uint64(0) {
		used := device.Size(p.UsedGpuMemory)
		q.Used = &used
	}
	return q
}

// memory asks by the function that tells what is reserved, or by the older one.
func (s *Session) memory(d nvml.Device) (Memory, error) {
	if s.has("nvmlDeviceGetMemoryInfo_v2") {
		m, err := ask(s, "nvmlDeviceGetMemoryInfo_v2", d.GetMemoryInfo_v2)
		if err == nil {
			return Memory{Total: device.Size(m.Total), Used: device.Size(m.Used), Free: device.Size(m.Free),
				Reserved: device.Size(m.Reserved)}, nil
		}
	}
	m, err := ask(s, "nvmlDeviceGetMemoryInfo", d.GetMemoryInfo)
	return Memory{Total: device.Size(m.Total), Used: device.Size(m.Used), Free: device.Size(m.Free)}, err
}

// Memory returns the memory of the GPU at an address on the bus, as package device/cuda writes it.
func (s *Session) Memory(pci string) (Memory, error) {
	d, err := ask(s, "nvmlDeviceGetHandleByPciBusId_v2", func() (nvml.Device, nvml.Return) {
		return s.lib.DeviceGetHandleByPciBusId(pci)
	})
	if err != nil {
		return Memory{}, err
	}
	return s.memory(d)
}

// address returns an address on the bus as package device/cuda writes it; the library writes eight
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
