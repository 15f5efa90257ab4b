package vmm

import (
	"cmp"
	"fmt"

	"github.com/vramyard/vramyard/device"
)

// The values of Config fields that are zero.
const (
	defaultQuantum device.Size = 256        // the alignment of drivers
	defaultLimit   device.Size = device.TiB // above every card, for devices that do not report their capacity
)

// mostBytes bounds sizes, so that sums of a few of them cannot overflow.
const mostBytes device.Size = 1 << 60

// The values of Config.Fit.
const (
	FitBest  = "best"  // the smallest chunk that serves, the lowest among equals
	FitFirst = "first" // the lowest chunk that serves
)

// Config describes ranges of addresses that grow by mapping. The zero value maps pages of the
// device's granularity and keeps them until memory runs out.
type Config struct {
	// Quantum is the unit in bytes to which sizes are rounded up, a power of two.
	Quantum device.Size `json:"quantum" doc:"bytes that sizes are rounded up to, a power of two" grid:"256,512,4KiB"`
	// Fit says which of the free chunks that serve is taken: FitBest or FitFirst.
	Fit string `json:"fit" doc:"the free chunk that a request takes: best (the smallest that fits) or first (the lowest)" grid:"best,first"`
	// PageBytes is the size of a page; 0 for the granularity of the device.
	PageBytes device.Size `json:"page_bytes" doc:"bytes of a page, a multiple of the device's granularity; 0 for the granularity" grid:"0,20MiB,64MiB"`
	// RangeBytes is the address space that is reserved at once; 0 for nine eighths of the limit.
	RangeBytes device.Size `json:"range_bytes" doc:"address space that is reserved at once; 0 for nine eighths of the limit" grid:"0,1GiB"`
	// Limit is the maximum of the bytes held from the device; 0 for the capacity of the device.
	Limit device.Size `json:"limit" doc:"limit on the bytes held from the device; 0 for its capacity, or 1TiB if that is unknown"`
	// Release releases free pages as soon as more than KeepBytes are free.
	Release bool `json:"release" doc:"unmap free pages at once, if more than keep_bytes are free" grid:"false,true"`
	// KeepBytes is the number of free bytes that Release keeps.
	KeepBytes device.Size `json:"keep_bytes" doc:"free bytes that release leaves mapped" grid:"0,64MiB,1GiB"`
}

// WithDefaults returns c with every default filled in that does not depend on the device. It
// fails with an error that names the first bad field.
func (c Config) WithDefaults() (Config, error) {
	c.Quantum = cmp.Or(c.Quantum, defaultQuantum)
	c.Fit = cmp.Or(c.Fit, FitBest)
	switch {
	case !device.IsPowerOfTwo(c.Quantum) || c.Quantum > device.GiB:
		return c, fmt.Errorf("vmm: quantum %d: want a power of two up to %v", uint64(c.Quantum), device.GiB)
	case c.Fit != FitBest && c.Fit != FitFirst:
		return c, fmt.Errorf("vmm: fit %q: want %q or %q", c.Fit, FitBest, FitFirst)
	case c.PageBytes > mostBytes:
		return c, fmt.Errorf("vmm: page_bytes %d: want at most %v", uint64(c.PageBytes), mostBytes)
	case c.RangeBytes > mostBytes:
		return c, fmt.Errorf("vmm: range_bytes %d: want at most %v", uint64(c.RangeBytes), mostBytes)
	case c.Limit > mostBytes:
		return c, fmt.Errorf("vmm: limit %d: want at most %v", uint64(c.Limit), mostBytes)
	case c.KeepBytes != 0 && !c.Release:
		return c, fmt.Errorf("vmm: keep_bytes %d: needs release", uint64(c.KeepBytes))
	}
	return c, nil
}

// on returns the configuration over a device, with every default filled in. It fails if the
// device cannot map memory, or not in such pages.
func (c Config) on(vm device.VirtualMemory, total device.Size) (Config, error) {
	grain := vm.Granularity()
	c.PageBytes = cmp.Or(c.PageBytes, grain)
	if c.PageBytes%grain != 0 || c.PageBytes%c.Quantum != 0 {
		return c, fmt.Errorf("vmm: page_bytes %d: want a multiple of the device's granularity of %v and of the quantum of %v",
			uint64(c.PageBytes), grain, c.Quantum)
	}
	if c.Limit == 0 {
		c.Limit = defaultLimit
		if total > 0 && total <= mostBytes {
			c.Limit = total
		}
	}
	c.RangeBytes = cmp.Or(c.RangeBytes, rangeFor(c.Limit))
	c.RangeBytes = (c.RangeBytes + c.PageBytes - 1) / c.PageBytes * c.PageBytes
	return c, nil
}

// ForCapacity returns the configuration for a device of n bytes: Limit becomes n.
func (c Config) ForCapacity(n device.Size) Config {
	c.Limit = max(n, 1)
	return c
}
