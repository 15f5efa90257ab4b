package dlmalloc

import (
	"cmp"
	"fmt"
	"math/bits"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/regions"
)

// The values of Config fields that are zero.
const (
	defaultQuantum  device.Size = 256 // the alignment of drivers
	defaultMinChunk             = 1   // chunks need no room for links
	defaultRegion               = 2 * device.MiB
)

// mostMinChunk bounds Config.MinChunk; the original has 2.
const mostMinChunk = 8

// Config describes a dlmalloc. The zero value is its placement over one region of the whole device.
type Config struct {
	// Quantum is the unit in bytes to which sizes are rounded up, and the step of the small bins.
	Quantum device.Size `json:"quantum" doc:"unit to which sizes are rounded up and step of the small bins, a power of two; requests below 32 quanta are small" grid:"256,512,4KiB"`
	// MinChunk is the smallest remainder in quanta that is split off.
	MinChunk int `json:"min_chunk" doc:"smallest remainder that is split off, in quanta, 1 to 8; the original has 2, because a free chunk holds its links" grid:"1,2"`
	// DirectBytes is the size from which requests that no chunk serves get a region of their own.
	DirectBytes device.Size `json:"direct_bytes" doc:"requests from this size on that no free chunk serves get a region of their own, which goes back with the block; 0 for never, not with growth whole" grid:"32MiB,128MiB,1GiB"`
	// Growth is the kind of the growth policy, see kit/regions.
	Growth string `json:"growth" doc:"size of new regions: whole, fixed, doubling, request or proportional" grid:"whole,fixed,doubling,request,proportional"`
	// RegionBytes is the smallest region.
	RegionBytes device.Size `json:"region_bytes" doc:"smallest region; not used with growth whole" grid:"2MiB,32MiB,256MiB"`
	// Limit bounds the bytes held from the device; 0 for no bound.
	Limit device.Size `json:"limit" doc:"limit on the bytes held from the device; 0 for none, or 1TiB with growth whole"`
	// Release returns empty regions to the device.
	Release bool `json:"release" doc:"return empty regions to the device; not with growth whole" grid:"false,true"`
	// KeepBytes is the number of bytes of empty regions that are kept with Release.
	KeepBytes device.Size `json:"keep_bytes" doc:"with release: bytes of empty regions that are kept" grid:"0,64MiB,1GiB"`
}

// WithDefaults returns c with every default filled in. It fails with an error that names
// the first bad field.
func (c Config) WithDefaults() (Config, error) {
	c.Quantum = cmp.Or(c.Quantum, defaultQuantum)
	c.MinChunk = cmp.Or(c.MinChunk, defaultMinChunk)
	c.Growth = cmp.Or(c.Growth, regions.Whole)
	c.RegionBytes = cmp.Or(c.RegionBytes, max(defaultRegion, c.Quantum))
	if c.Limit == 0 && c.Growth == regions.Whole {
		c.Limit = max(regions.WholeLimit, c.Quantum)
	}
	switch {
	case !device.IsPowerOfTwo(c.Quantum) || c.Quantum > device.GiB:
		return c, fmt.Errorf("dlmalloc: quantum %d: want a power of two up to %v", uint64(c.Quantum), device.GiB)
	case c.MinChunk < 1 || c.MinChunk > mostMinChunk:
		return c, fmt.Errorf("dlmalloc: min_chunk %d: want 1 to %d", c.MinChunk, mostMinChunk)
	case c.DirectBytes != 0 && c.Growth == regions.Whole:
		return c, fmt.Errorf("dlmalloc: direct_bytes %d: not used with growth %q", uint64(c.DirectBytes), regions.Whole)
	}
	return c, c.policy().Check("dlmalloc")
}

// scale returns the sizes of the bins.
func (c Config) scale() scale { return scale{quantum: uint8(bits.TrailingZeros64(uint64(c.Quantum)))} }

func (c Config) policy() regions.Policy {
	return regions.Policy{
		Kind: c.Growth, Region: c.RegionBytes, Limit: c.Limit, Release: c.Release, Keep: c.KeepBytes, Quantum: c.Quantum,
	}
}

// ForCapacity returns the configuration for a device of n bytes: Limit becomes n.
func (c Config) ForCapacity(n device.Size) Config {
	c.Limit = max(n, c.Quantum)
	return c
}

// Preallocates reports whether the allocator reserves its whole limit with the first request, so
// that the reserved bytes are independent of the demand.
func (c Config) Preallocates() bool { return c.policy().Preallocates() }

// Unbound implements [setting.UnboundConfig]: the limit only decides which requests fail, unless
// the whole of it is reserved at once.
func (c Config) Unbound() bool { return !c.Preallocates() }
