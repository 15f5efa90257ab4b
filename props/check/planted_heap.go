package check

import (
	"runtime"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
)

const (
	warmUps = 64   // rounds before the heap is measured
	weighed = 4096 // measured rounds
)

// weigh measures the heap allocations of the warm path: many frees, allocations and walks of a warm
// strategy. A list may still grow once or twice, but not with every hundredth round.
func (v *Verdict) weigh(s props.Subject) error {
	dev, err := sim.New(s.Device)
	if err != nil {
		return err
	}
	a, err := s.New(dev)
	if err != nil {
		return err
	}
	defer a.Close() // the device is thrown away with it
	b, err := a.Alloc(alloc.Request{Size: 1})
	if err != nil {
		return err
	}
	var before, after runtime.MemStats
	for range warmUps {
		if b.Addr, err = rounds(a, b.Addr, 1); err != nil {
			return err
		}
	}
	runtime.ReadMemStats(&before)
	if _, err = rounds(a, b.Addr, weighed); err != nil {
		return err
	}
	runtime.ReadMemStats(&after)
	if after.TotalAlloc-before.TotalAlloc > weighed {
		v.Broken, v.Sequences, v.Caught = props.IWarm.String(), 1, true
	}
	return nil
}

// rounds frees and allocates a block, walks, and repeats.
func rounds(a alloc.Strategy, at device.Addr, n int) (device.Addr, error) {
	chunks := 0
	look := func(alloc.Chunk) bool { chunks++; return true }
	for range n {
		if err := a.Free(at); err != nil {
			return 0, err
		}
		b, err := a.Alloc(alloc.Request{Size: 1})
		if err != nil {
			return 0, err
		}
		at = b.Addr
		a.Walk(look)
	}
	return at, nil
}
