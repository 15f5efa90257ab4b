package pgmo

import (
	"cmp"

	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/strategies/internal/planned"
)

// Config describes an allocator by plan. The zero value is usable.
type Config struct {
	// RegionBytes is the unit of the sizes of regions.
	RegionBytes device.Size `json:"region_bytes" doc:"unit of the sizes of regions" grid:"2MiB,20MiB,64MiB"`
	// Limit bounds the bytes held from the device; 0 for no bound.
	Limit device.Size `json:"limit" doc:"limit on the bytes held from the device; 0 for none"`
}

// core returns the configuration of the arena and the fallback.
func (c Config) core() planned.Config { return planned.Config(c) }

// WithDefaults returns c with every default filled in. It fails with an error that names the first
// bad field.
func (c Config) WithDefaults() (Config, error) {
	c.RegionBytes = cmp.Or(c.RegionBytes, planned.DefaultRegion)
	return c, c.core().Check("pgmo")
}

// ForCapacity returns the configuration for a device of n bytes: Limit becomes n.
func (c Config) ForCapacity(n device.Size) Config {
	c.Limit = max(n, planned.Quantum)
	return c
}

// Promises implements [promise.Promiser].
func (c Config) Promises() promise.Set { return c.core().Promises() }
