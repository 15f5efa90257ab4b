package stalloc

import (
	"cmp"
	"fmt"

	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/strategies/internal/planned"
)

// The values of Config.Check.
const (
	CheckOn  = "on"  // a planned place that is not free is not used
	CheckOff = "off" // it is granted all the same
)

// Config describes an allocator by plan. The zero value checks every place.
type Config struct {
	// Check determines whether a planned place must be free: CheckOn or CheckOff.
	Check string `json:"check" doc:"on: a planned place that is not free is not used; off, the original's default: it is granted all the same, so live blocks may overlap" grid:"on"`
	// RegionBytes is the unit of the sizes of regions.
	RegionBytes device.Size `json:"region_bytes" doc:"unit of the sizes of regions" grid:"2MiB,20MiB,64MiB"`
	// Limit bounds the bytes held from the device; 0 for no bound.
	Limit device.Size `json:"limit" doc:"limit on the bytes held from the device; 0 for none"`
}

// core returns the configuration of the arena and the fallback.
func (c Config) core() planned.Config {
	return planned.Config{RegionBytes: c.RegionBytes, Limit: c.Limit}
}

// WithDefaults returns c with every default filled in. It fails with an error that names the first
// bad field.
func (c Config) WithDefaults() (Config, error) {
	c.Check = cmp.Or(c.Check, CheckOn)
	c.RegionBytes = cmp.Or(c.RegionBytes, planned.DefaultRegion)
	if c.Check != CheckOn && c.Check != CheckOff {
		return c, fmt.Errorf("stalloc: check %q: want %q or %q", c.Check, CheckOn, CheckOff)
	}
	return c, c.core().Check("stalloc")
}

// ForCapacity returns the configuration for a device of n bytes: Limit becomes n.
func (c Config) ForCapacity(n device.Size) Config {
	c.Limit = max(n, planned.Quantum)
	return c
}

// Promises implements [promise.Promiser].
func (c Config) Promises() promise.Set {
	p := c.core().Promises()
	if c.Check == CheckOff {
		p.Except = []promise.Exception{{Invariant: "I10", Reason: "the original does not check by default whether a " +
			"planned place is free; a run that deviates from the profile gets overlapping blocks"}}
	}
	return p
}
