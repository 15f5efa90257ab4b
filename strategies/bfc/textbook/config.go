package textbook

import (
	"cmp"
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
)

// compat is the value of Config.Compat.
const compat = "textbook"

// Config describes the allocator. The zero value takes its whole limit of 1 TiB at once, or what
// the device has of it.
type Config struct {
	// Compat names the structure; "textbook" is the default and the only value.
	Compat string `json:"compat" doc:"the structure to follow"`
	// Limit is the maximum of the bytes held from the device, up to 16 TiB; default 1 TiB.
	Limit device.Size `json:"limit" doc:"limit on the bytes held from the device; 0 for 1TiB, which no card has, so that the device is the limit"`
	// AllowGrowth takes regions as they are needed instead of the whole limit at once.
	AllowGrowth bool `json:"allow_growth" doc:"take regions as needed, each twice the last, instead of the whole limit at once" grid:"false,true"`
}

// mostLimit bounds the arrays of handles: 64 MiB of host memory for their lists of pages.
const mostLimit = 16 * device.TiB

// WithDefaults returns c with every default filled in. It fails with an error that names the first
// bad field.
func (c Config) WithDefaults() (Config, error) {
	c.Compat = cmp.Or(c.Compat, compat)
	c.Limit = cmp.Or(c.Limit, device.TiB)
	if c.Compat != compat {
		return c, fmt.Errorf("bfc: compat %q: want %q", c.Compat, compat)
	} else if c.Limit > mostLimit {
		return c, fmt.Errorf("bfc: limit %d: want at most %v, because of the array of handles", uint64(c.Limit), mostLimit)
	}
	return c, nil
}

// ForCapacity returns the configuration for a device of n bytes: Limit becomes n.
func (c Config) ForCapacity(n device.Size) Config {
	c.Limit = n
	return c
}

// Preallocates reports whether the allocator reserves its whole limit with the first request, so
// that the reserved bytes are independent of the demand.
func (c Config) Preallocates() bool { return !c.AllowGrowth }

func (c Config) Promises() promise.Set {
	return promise.Set{
		Quantum: minAllocationSize,
		Honours: func(r alloc.Request) bool { return r.Align <= minAllocationSize },
		MaxGrant: func(r alloc.Request) device.Size {
			n := roundedBytes(r.Size)
			return n + min(n, maxInternalFragmentation) - minAllocationSize
		},
		ClassOf:         func(free alloc.Chunk) int32 { return binNumForSize(free.Size) },
		MustMerge:       promise.MergeAll,
		ExactNeighbours: true,
		ExactPlacer:     true,
		SearchOrder:     promise.BySizeThenAddress,
		FreesNull:       true,
		Serves:          promise.ServesAnywhere(minAllocationSize),
		Boundaries:      promise.PowersOfTwo(minAllocationSize, min(c.Limit, device.TiB)),
	}
}
