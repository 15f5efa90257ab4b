package replay

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/cuda"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/internal/nearest"
)

// Target is the device of a run. The zero value is the default simulated device. In JSON it is the
// configuration of the simulated device, or an object with the field "gpu".
type Target struct {
	// Config is the configuration of the simulated device. For a GPU only Capacity is used: the
	// limit of the bytes held.
	sim.Config
	// Card is the name of the simulated card, as in [sim.ParseDevice]. Only
	// [Target.Used] sets it.
	Card string `json:"card,omitempty"`
	// GPU is nil for a simulated device.
	GPU *GPU `json:"gpu,omitempty"`
}

// Used returns the target as a result records it: with the capacity that was used, 0 if each run
// has its own, with the defaults of a simulated device filled in, and with the name of its card.
// Equivalent devices give equal targets.
func (p Target) Used(capacity device.Size) Target {
	p.Capacity = capacity
	if p.GPU != nil {
		return p
	}
	if c, err := p.WithDefaults(); err == nil { // a bad device is an error where it is opened
		p.Config = c
	}
	if card, ok := sim.CardOf(p.Config); ok {
		p.Card = card.Name
	}
	return p
}

// GPU is a real device.
type GPU struct {
	cuda.GPU
	Driver string `json:"driver"` // newest version of CUDA that the driver supports
	// Library is the path of the driver's library; "" means the system's library.
	Library string `json:"library,omitempty"`
}

// String names the GPU and its driver.
func (g *GPU) String() string {
	return fmt.Sprintf("cuda:%d, %s of %v, driver for CUDA %s", g.Ordinal, g.Name, g.Memory, g.Driver)
}

// Device is a device for the exclusive use of one run.
type Device interface {
	device.Device
	// Close releases everything held.
	Close() error
}

// SimTarget returns the target for a simulated device.
func SimTarget(c sim.Config) Target { return Target{Config: c} }

// errKind lists the kinds of devices.
var errKind = errors.New(
	`want "sim", or "sim:24GiB" and the like, for a simulated device, or "cuda:0", or "cuda:0:24GiB", for a GPU`)

// cardNames returns the device names that an error may suggest.
func cardNames() []string {
	all := []string{"sim", "cuda:0"}
	for _, c := range sim.Cards() {
		all = append(all, "sim:"+c.Name)
	}
	return all
}

// ParseTarget reads a device of the command line: what [sim.ParseDevice] reads, or what
// [cuda.ParseDevice] does.
//
// Errors: [cuda.ErrNoDriver], or an error that lists the GPUs.
func ParseTarget(text string) (Target, error) {
	if !cuda.IsDevice(text) {
		if kind, _, _ := strings.Cut(text, ":"); kind != "sim" {
			return Target{}, fmt.Errorf("device %q: %s%w", text, nearest.Hint(text, cardNames()), errKind)
		}
		c, err := sim.ParseDevice(text)
		return SimTarget(c), err
	}
	c, err := cuda.ParseDevice(text)
	if err != nil {
		return Target{}, err
	}
	list, err := cuda.List(c.Driver)
	if err != nil {
		return Target{}, err
	}
	g, err := list.Find(c.Ordinal)
	if err != nil {
		return Target{}, fmt.Errorf("device %q: %w", text, err)
	}
	if c.Limit > g.Memory {
		return Target{}, fmt.Errorf("device %q: %w: cuda:%d has %v", text, device.ErrInvalid, c.Ordinal, g.Memory)
	}
	return Target{Config: sim.Config{Capacity: c.Limit}, GPU: &GPU{GPU: g, Driver: list.Driver}}, nil
}

// Ample returns a capacity for a run that should not run out of memory: n, or the free memory of a
// GPU if that is less. If the GPU does not report it, opening the GPU does.
func (p Target) Ample(n device.Size) device.Size {
	if p.GPU == nil {
		return n
	}
	d, err := p.open(0)
	if err != nil {
		return n
	}
	free, _, err := d.MemoryInfo()
	if err = errors.Join(err, d.Close()); err != nil {
		return n
	}
	return min(n, device.AlignDown(free, 2*device.MiB))
}

// AtOnce returns the number of concurrent runs for a number of workers, 0 meaning one per core. On
// a GPU it is one.
func (p Target) AtOnce(workers int) int {
	if p.GPU != nil {
		return 1
	}
	return workers
}

// Open returns a fresh device with the capacity of the target. The caller closes it.
func (p Target) Open() (Device, error) {
	if p.GPU == nil {
		d, err := sim.New(p.Config)
		return simulated{d}, err
	}
	return p.open(p.Capacity)
}

// open returns the GPU with a limit.
func (p Target) open(limit device.Size) (*cuda.Device, error) {
	return cuda.Open(cuda.Config{Driver: p.GPU.Library, Ordinal: p.GPU.Ordinal, Limit: limit})
}

// simulated is a simulated device, which needs no release.
type simulated struct{ *sim.Device }

func (simulated) Close() error { return nil }
