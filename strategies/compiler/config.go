package compiler

import (
	"cmp"
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/strategies/internal/planned"
)

// OwnerGraph is the owner of the chunks of segments, as they appear in alloc.Chunk.Owner.
const OwnerGraph = planned.OwnerArena + 1

// The value of Config.PageBytes that is zero, and bounds.
const (
	defaultPage = 8 * device.MiB // the original's
	mostPage    = device.GiB
	mostPages   = 1 << 13 // of a request, because each takes two device calls
)

// Config describes a memory compiler. The zero value has pages of 8 MiB.
type Config struct {
	// PageBytes is the size of a page, the unit in which memory is created and mapped.
	PageBytes device.Size `json:"page_bytes" doc:"bytes of a page, a power of two; smaller requests are not recorded" grid:"2MiB,8MiB,32MiB"`
	// RegionBytes is the unit of the sizes of the regions of the fallback.
	RegionBytes device.Size `json:"region_bytes" doc:"unit of the sizes of the regions of the fallback" grid:"2MiB,20MiB,64MiB"`
	// Limit bounds the bytes held from the device; 0 for no bound.
	Limit device.Size `json:"limit" doc:"limit on the bytes held from the device; 0 for none"`
}

// core returns the configuration of the fallback.
func (c Config) core() planned.Config {
	return planned.Config{RegionBytes: c.RegionBytes, Limit: c.Limit}
}

// WithDefaults returns c with every default filled in. It fails with an error that names the first
// bad field.
func (c Config) WithDefaults() (Config, error) {
	c.PageBytes = cmp.Or(c.PageBytes, defaultPage)
	c.RegionBytes = cmp.Or(c.RegionBytes, planned.DefaultRegion)
	if !device.IsPowerOfTwo(c.PageBytes) || c.PageBytes < planned.Quantum || c.PageBytes > mostPage {
		return c, fmt.Errorf("compiler: page_bytes %d: want a power of two from %v to %v", uint64(c.PageBytes),
			planned.Quantum, mostPage)
	}
	return c, c.core().Check("compiler")
}

// ForCapacity returns the configuration for a device of n bytes: Limit becomes n.
func (c Config) ForCapacity(n device.Size) Config {
	c.Limit = max(n, planned.Quantum)
	return c
}

// Promises implements [promise.Promiser].
func (c Config) Promises() promise.Set {
	p := c.core().Promises()
	p.MaxGrant = func(r alloc.Request) device.Size {
		if r.Size < c.PageBytes {
			return device.AlignUp(r.Size, planned.Quantum)
		}
		return device.AlignUp(r.Size, c.PageBytes)
	}
	fallback := p.SearchOrder
	p.SearchOrder = func(a, b alloc.Chunk) int {
		if a.Owner == OwnerGraph && b.Owner == OwnerGraph {
			return promise.ByAddress(a, b)
		}
		return fallback(a, b)
	}
	p.Page = c.PageBytes
	p.Boundaries = append(p.Boundaries, promise.PowersOfTwo(c.PageBytes, 8*c.PageBytes)...)
	return p
}
