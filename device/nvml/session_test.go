//go:build nvml && cgo && linux

package nvml

import (
	"errors"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"

	"github.com/vramyard/vramyard/device"
)

// put writes a text as C has it, whose characters have a sign on some machines.
func put[C int8 | uint8](to []C, text string) {
	for i := range len(text) {
		to[i] = C(text[i])
	}
}

// told fills in what the mock of a DGX does not tell.
func told(d *dgxa100.Device) {
	d.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) {
		return nvml.Memory_v2{Total: 80 << 30, Used: 3 << 30, Free: 76 << 30, Reserved: 1 << 30}, nvml.SUCCESS
	}
	d.GetBAR1MemoryInfoFunc = func() (nvml.BAR1Memory, nvml.Return) {
		return nvml.BAR1Memory{Bar1Total: 128 << 30, Bar1Used: 5 << 20}, nvml.SUCCESS
	}
	d.GetEccModeFunc = func() (nvml.EnableState, nvml.EnableState, nvml.Return) {
		return nvml.FEATURE_ENABLED, nvml.FEATURE_DISABLED, nvml.SUCCESS
	}
	d.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) {
		var p nvml.PciInfo
		put(p.BusId[:], "00000000:17:00.0")
		return p, nvml.SUCCESS
	}
	d.GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) {
		return []nvml.ProcessInfo{{Pid: 7, UsedGpuMemory: 1 << 30}, {Pid: 8, UsedGpuMemory: ^uint64(0)}}, nvml.SUCCESS
	}
}

// server returns the mock of a DGX A100 whose GPUs tell everything.
func server() *dgxa100.Server {
	s := dgxa100.New()
	for _, d := range s.Devices {
		told(d.(*dgxa100.Device))
	}
	s.ErrorStringFunc = func(r nvml.Return) string { return "error in words" }
	return s
}

// TestInventory asks a DGX A100 for everything.
func TestInventory(t *testing.T) {
	s, err := open(server())
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.Inventory()
	if err != nil || len(all.GPUs) != 8 || all.Driver == "" || all.CUDA == "" {
		t.Fatalf("%+v, %v", all, err)
	}
	g := all.GPUs[3]
	want := Memory{Total: 80 * device.GiB, Used: 3 * device.GiB, Free: 76 * device.GiB, Reserved: device.GiB}
	if g.Index != 3 || !strings.Contains(g.Name, "A100") || g.UUID == "" || g.PCI != "0000:17:00.0" || g.Memory != want ||
		g.BAR1Total != 128*device.GiB || g.BAR1Used != 5*device.MiB || g.ECC != "on" || g.MIG != "off" {
		t.Errorf("GPU 3 is %+v", g)
	}
	if len(g.Processes) != 2 || *g.Processes[0].Used != device.GiB || g.Processes[1].PID != 8 ||
		g.Processes[1].Used != nil {
		t.Errorf("its processes are %+v", g.Processes)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestOldLibrary has one without the newer functions: none of them may be called, which would end
// the program.
func TestOldLibrary(t *testing.T) {
	lib := server()
	lib.LookupSymbolFunc = func(symbol string) error {
		switch symbol {
		case "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetBAR1MemoryInfo", "nvmlDeviceGetMigMode", "nvmlDeviceGetEccMode",
			"nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetComputeRunningProcesses_v2",
			"nvmlDeviceGetComputeRunningProcesses_v3":
			return errors.New("no such symbol")
		}
		return nil
	}
	for _, d := range lib.Devices {
		d := d.(*dgxa100.Device)
		d.GetMemoryInfo_v2Func, d.GetBAR1MemoryInfoFunc, d.GetMigModeFunc = nil, nil, nil // panic if they are called
		d.GetEccModeFunc, d.GetComputeRunningProcessesFunc = nil, nil
	}
	s, err := open(lib)
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.Inventory()
	if err != nil || len(all.GPUs) != 8 || all.GPUs[0].Memory.Total == 0 || all.GPUs[0].ECC != "" ||
		all.GPUs[0].Processes != nil {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestNoFunctions has a library without any: everything is an error, nothing is called.
func TestNoFunctions(t *testing.T) {
	lib := server()
	lib.LookupSymbolFunc = func(string) error { return errors.New("no such symbol") }
	s, err := open(lib)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Inventory(); !errors.Is(err, errNoFunction) {
		t.Errorf("%v, want that there is no function", err)
	}
	if _, err := s.Memory("0000:17:00.0"); !errors.Is(err, errNoFunction) {
		t.Errorf("%v, want that there is no function", err)
	}
}

// TestNoLibrary has none: after a failed start nothing else may be called.
func TestNoLibrary(t *testing.T) {
	for _, r := range []nvml.Return{nvml.ERROR_LIBRARY_NOT_FOUND, nvml.ERROR_DRIVER_NOT_LOADED} {
		m := &mock.Interface{InitFunc: func() nvml.Return { return r }} // all else panics
		if _, err := open(m); !errors.Is(err, ErrUnavailable) {
			t.Errorf("%d: %v, want ErrUnavailable", r, err)
		}
	}
	if s, err := Open(); err != nil {
		if !errors.Is(err, ErrUnavailable) {
			t.Errorf("the library of this machine: %v", err)
		}
	} else if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestLostGPU has one that fell off the bus.
func TestLostGPU(t *testing.T) {
	lib := server()
	lost := lib.Devices[5].(*dgxa100.Device)
	lost.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) { return nvml.Memory_v2{}, nvml.ERROR_GPU_IS_LOST }
	lost.GetMemoryInfoFunc = func() (nvml.Memory, nvml.Return) { return nvml.Memory{}, nvml.ERROR_GPU_IS_LOST }
	s, err := open(lib)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Inventory(); err == nil || !strings.Contains(err.Error(), "GPU 5") ||
		!strings.Contains(err.Error(), "nvmlDeviceGetMemoryInfo") {
		t.Errorf("%v, want an error that names the GPU and the function", err)
	}
}

// TestMemoryByAddress finds a GPU as package device/cuda names it.
func TestMemoryByAddress(t *testing.T) {
	lib := server()
	asked := ""
	lib.DeviceGetHandleByPciBusIdFunc = func(id string) (nvml.Device, nvml.Return) {
		asked = id
		return lib.Devices[2], nvml.SUCCESS
	}
	s, err := open(lib)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Memory("0000:17:00.0")
	if err != nil || m.Used != 3*device.GiB || asked != "0000:17:00.0" {
		t.Errorf("%+v, %v, asked for %q", m, err, asked)
	}
}
