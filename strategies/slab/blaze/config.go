package blaze

import (
	"cmp"
	"fmt"
	"math/bits"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
)

// compat is the value of Config.Compat.
const compat = "blaze"

// The defaults of Config, as in the original.
const (
	defaultRegion   = device.GiB
	defaultMinClass = 2
	defaultMaxClass = 256 * device.MiB
)

// Config describes the allocator. The zero value of a field means its default.
type Config struct {
	// Compat names the original; "blaze" is the default and the only value.
	Compat string `json:"compat" doc:"the original to reproduce bit for bit"`
	// RegionBytes is the size of a region, a multiple of MinClassBytes; default 1 GiB.
	RegionBytes device.Size `json:"region_bytes" doc:"size of a region, a multiple of min_class_bytes" grid:"16MiB,256MiB,1GiB"`
	// MinClassBytes is the smallest block, a power of two; default 2.
	MinClassBytes device.Size `json:"min_class_bytes" doc:"smallest block, a power of two"`
	// MaxClassBytes is the largest block, a power of two of at most RegionBytes; default
	// 256 MiB, or the largest power of two that fits a smaller region.
	MaxClassBytes device.Size `json:"max_class_bytes" doc:"largest block, a power of two (default 256MiB, or what fits the region)" grid:"16KiB,64KiB,256KiB,1MiB"`
}

// WithDefaults returns c with every default filled in. It fails with an error that names the
// first bad field.
func (c Config) WithDefaults() (Config, error) {
	c.Compat = cmp.Or(c.Compat, compat)
	c.RegionBytes = cmp.Or(c.RegionBytes, defaultRegion)
	c.MinClassBytes = cmp.Or(c.MinClassBytes, defaultMinClass)
	c.MaxClassBytes = cmp.Or(c.MaxClassBytes, min(defaultMaxClass, 1<<(bits.Len64(uint64(c.RegionBytes))-1)))
	switch {
	case c.Compat != compat:
		return c, fmt.Errorf("slab: compat %q: want %q", c.Compat, compat)
	case !device.IsPowerOfTwo(c.MinClassBytes):
		return c, fmt.Errorf("slab: min_class_bytes %d: want a power of two", c.MinClassBytes)
	case !device.IsPowerOfTwo(c.MaxClassBytes):
		return c, fmt.Errorf("slab: max_class_bytes %d: want a power of two", c.MaxClassBytes)
	case c.MaxClassBytes < c.MinClassBytes:
		return c, fmt.Errorf("slab: max_class_bytes %d: want at least min_class_bytes %d", c.MaxClassBytes, c.MinClassBytes)
	case c.MaxClassBytes > c.RegionBytes:
		return c, fmt.Errorf("slab: max_class_bytes %d: want at most region_bytes %d", c.MaxClassBytes, c.RegionBytes)
	case c.RegionBytes%c.MinClassBytes != 0:
		return c, fmt.Errorf("slab: region_bytes %d: want a multiple of min_class_bytes %d", c.RegionBytes, c.MinClassBytes)
	}
	return c, nil
}

// Unbound implements [setting.UnboundConfig]: the allocator has no limit.
func (Config) Unbound() bool { return true }

func (c Config) Promises() promise.Set {
	grant := func(r alloc.Request) device.Size { return promise.PowerOfTwo(r.Size, c.MinClassBytes) }
	return promise.Set{
		Quantum:         c.MinClassBytes,
		ZeroSize:        true,
		Honours:         func(r alloc.Request) bool { return r.Align <= c.MinClassBytes },
		MaxGrant:        grant,
		ExactNeighbours: true,
		ExactPlacer:     true,
		ClassOf: func(free alloc.Chunk) int32 {
			if free.Class == alloc.NoClass {
				return alloc.NoClass // not cut yet
			}
			return int32(bits.TrailingZeros64(uint64(free.Size)))
		},
		Serves: func(free alloc.Chunk, r alloc.Request) bool {
			if free.Class == alloc.NoClass {
				return free.Size >= grant(r)
			}
			return free.Size == grant(r)
		},
		Boundaries: promise.PowersOfTwo(c.MinClassBytes, c.MaxClassBytes),
	}
}
