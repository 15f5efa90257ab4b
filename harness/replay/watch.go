package replay

import (
	"errors"
	"sync"
	"time"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/nvml"
)

// Usage is the memory in use on a GPU during a run, by all programs, as the driver reports it.
// Sizes are bytes.
type Usage struct {
	Source  string      `json:"source"`            // library that was queried: "nvml" or "cuda"
	Before  device.Size `json:"used_before_bytes"` // when the run began
	Peak    device.Size `json:"used_peak_bytes"`   // most that was seen
	After   device.Size `json:"used_after_bytes"`  // when it had ended
	Samples int         `json:"samples"`           // number of queries; a peak between two is missed
}

// usageProbe queries the driver for the memory in use.
type usageProbe struct {
	source string
	used   func() (device.Size, error)
	close  func() error
}

// usageProbe returns the source of the usage: the management library, or the CUDA driver if that is
// not available.
func (p Target) usageProbe() (usageProbe, error) {
	if s, err := nvml.Open(); err == nil {
		a := usageProbe{"nvml", func() (device.Size, error) { m, err := s.Memory(p.GPU.PCI); return m.Used, err }, s.Close}
		if _, err := a.used(); err == nil {
			return a, nil
		}
		_ = s.Close() // it does not list this GPU
	}
	d, err := p.open(0)
	if err != nil {
		return usageProbe{}, err
	}
	return usageProbe{"cuda", func() (device.Size, error) { free, total, err := d.MemoryInfo(); return total - free, err },
		d.Close}, nil
}

// Watch polls the driver for the memory in use until stop is called, which returns the usage. On a
// simulated device it does nothing, and stop returns nil.
func (p Target) Watch(every time.Duration) (stop func() (*Usage, error), err error) {
	if p.GPU == nil {
		return func() (*Usage, error) { return nil, nil }, nil
	}
	a, err := p.usageProbe()
	if err != nil {
		return nil, err
	}
	u := &Usage{Source: a.source, Samples: 1}
	if u.Before, err = a.used(); err != nil {
		return nil, errors.Join(err, a.close())
	}
	u.Peak = u.Before
	end := make(chan struct{})
	var failed error
	var wg sync.WaitGroup
	wg.Go(func() { failed = u.follow(a, every, end) })
	return func() (*Usage, error) {
		close(end)
		wg.Wait()
		err := failed
		if err == nil {
			u.After, err = a.used()
			u.Peak, u.Samples = max(u.Peak, u.After), u.Samples+1
		}
		return u, errors.Join(err, a.close())
	}, nil
}

// follow polls until the end.
func (u *Usage) follow(a usageProbe, every time.Duration, end <-chan struct{}) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-end:
			return nil
		case <-tick.C:
			used, err := a.used()
			if err != nil {
				return err
			}
			u.Peak, u.Samples = max(u.Peak, used), u.Samples+1
		}
	}
}
