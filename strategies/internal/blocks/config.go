package blocks

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/regions"
)

// The values of Config.Family.
const (
	Binary           = "binary"    // powers of two
	Weighted         = "weighted"  // powers of two, and three times these
	Fibonacci        = "fibonacci" // Fibonacci numbers
	FourPerDoubling  = "k4"        // four sizes to a doubling
	EightPerDoubling = "k8"        // eight sizes to a doubling
)

// The values of Config.Trim.
const (
	TrimOn  = "on"  // release the part of a block beyond the request
	TrimOff = "off" // blocks are granted whole
)

// The values of Config.Placement.
const (
	Leftmost       = "leftmost" // lowest free block that fits, of any class
	Smallest       = "smallest" // of the smallest class that serves the lowest
	SmallestNewest = "newest"   // of the smallest class that serves the one freed last
	TopDown        = "top-down" // the highest free block that serves
)

// The values of Config.RegionChoice.
const (
	Oldest  = "oldest"  // the region held longest
	Fullest = "fullest" // the one with the smallest part free, in sixteen steps
	Lowest  = "lowest"  // the one at the lowest address
)

// The values of Config.Coalescing.
const (
	Eager     = "eager"   // a freed block is merged at once
	Lazy      = "lazy"    // it is not while its class has few free blocks
	OnFailure = "failure" // blocks are merged when a request finds nothing
)

// The defaults of Config fields; docs/strategies/buddy.md has the measurements behind them.
const (
	defaultRegion = 32 * device.MiB
	defaultBlock  = 512
	defaultSlack  = 16
	defaultDirect = 4 * device.MiB
)

// Config is the configuration of the buddy strategy, whose package says what the fields mean. A
// field is a string or a number as in JSON; the zero value of a field means its default.
type Config struct {
	RegionBytes      device.Size // smallest region
	BlockBytes       device.Size // smallest block, a power of two
	Family           string      // sizes of blocks
	Trim             string      // whether the tail of a block is given back
	TrimBytes        device.Size // multiple to which requests are rounded up
	Placement        string      // free block that is taken
	RegionChoice     string      // region that is taken
	Coalescing       string      // when free buddies are merged
	Slack            int         // lazy: free blocks of a class that stay unmerged
	DirectBytes      device.Size // larger requests get a region of their own
	DirectCacheBytes device.Size // bytes of such regions kept for reuse
	Growth           string      // kind of the policy of regions
	Limit            device.Size // most bytes to hold
	Release          bool        // give empty regions back
	KeepBytes        device.Size // bytes of empty regions that stay
}

// policy returns the growth policy of c.
func (c Config) policy() regions.Policy {
	return regions.Policy{
		Kind: c.Growth, Region: c.RegionBytes, Limit: c.Limit, Release: c.Release, Keep: c.KeepBytes, Quantum: c.BlockBytes,
	}
}

// choice is a field with a few known values, the default first.
type choice struct {
	name  string
	value *string
	known []string
}

// choices returns the string fields.
func (c *Config) choices() []choice {
	return []choice{
		{"family", &c.Family, []string{Binary, Weighted, Fibonacci, FourPerDoubling, EightPerDoubling}},
		{"trim", &c.Trim, []string{TrimOff, TrimOn}},
		{"placement", &c.Placement, []string{Smallest, SmallestNewest, Leftmost, TopDown}},
		{"region_choice", &c.RegionChoice, []string{Oldest, Fullest, Lowest}},
		{"coalescing", &c.Coalescing, []string{Eager, Lazy, OnFailure}},
		{"growth", &c.Growth, []string{regions.Request, regions.Fixed, regions.Doubling, regions.Proportional,
			regions.Whole}},
	}
}

// WithDefaults returns c with every default filled in. It fails with an error that names the
// first bad field.
func (c Config) WithDefaults() (Config, error) {
	for _, f := range c.choices() {
		*f.value = cmp.Or(*f.value, f.known[0])
		if !slices.Contains(f.known, *f.value) {
			return c, fmt.Errorf("buddy: %s %q: want one of %s", f.name, *f.value, strings.Join(f.known, ", "))
		}
	}
	c.BlockBytes = cmp.Or(c.BlockBytes, defaultBlock)
	c.RegionBytes = cmp.Or(c.RegionBytes, max(defaultRegion, c.BlockBytes))
	c.TrimBytes = cmp.Or(c.TrimBytes, c.BlockBytes)
	c.DirectBytes = cmp.Or(c.DirectBytes, defaultDirect)
	if c.Coalescing == Lazy {
		c.Slack = cmp.Or(c.Slack, defaultSlack)
	}
	if c.Growth == regions.Whole {
		c.Limit = cmp.Or(c.Limit, min(regions.WholeLimit, c.mostUnits()*c.BlockBytes))
	}
	return c, c.judge()
}

// judge returns an error that names the first bad field.
func (c Config) judge() error {
	switch {
	case !device.IsPowerOfTwo(c.BlockBytes) || c.BlockBytes > MostAlign:
		return fmt.Errorf("buddy: block_bytes %d: want a power of two up to %v", uint64(c.BlockBytes), MostAlign)
	case c.RegionBytes > c.mostUnits()*c.BlockBytes:
		return fmt.Errorf("buddy: region_bytes %d: want at most %d blocks", uint64(c.RegionBytes), uint64(c.mostUnits()))
	case c.TrimBytes%c.BlockBytes != 0 || c.TrimBytes > MostRequest:
		return fmt.Errorf("buddy: trim_bytes %d: want a multiple of block_bytes %d", uint64(c.TrimBytes),
			uint64(c.BlockBytes))
	case c.Trim == TrimOff && c.TrimBytes != c.BlockBytes:
		return fmt.Errorf("buddy: trim_bytes %d: not used with trim %q", uint64(c.TrimBytes), TrimOff)
	case c.Slack < 0 || c.Slack >= 1<<31:
		return fmt.Errorf("buddy: slack %d: want 0 to 2^31-1", c.Slack)
	case c.Slack != 0 && c.Coalescing != Lazy:
		return fmt.Errorf("buddy: slack %d: not used with coalescing %q", c.Slack, c.Coalescing)
	case c.DirectBytes > MostRequest:
		return fmt.Errorf("buddy: direct_bytes %d: want at most %v", uint64(c.DirectBytes), MostRequest)
	case c.DirectCacheBytes > MostRequest:
		return fmt.Errorf("buddy: direct_cache_bytes %d: want at most %v", uint64(c.DirectCacheBytes), MostRequest)
	case c.Growth == regions.Whole && c.Limit > c.mostUnits()*c.BlockBytes:
		return fmt.Errorf("buddy: limit %d: want at most %d blocks with growth %q",
			uint64(c.Limit), uint64(c.mostUnits()), regions.Whole)
	}
	return c.policy().Check("buddy")
}

// mostUnits returns the bound for the blocks of a region.
func (c Config) mostUnits() device.Size {
	switch {
	case c.Family == Fibonacci || c.Placement == SmallestNewest:
		return mostListed
	case c.Family != Binary:
		return mostUneven
	}
	return mostUnits
}

// ForCapacity returns c for a device of n bytes: a limit becomes the capacity.
func (c Config) ForCapacity(n device.Size) Config {
	if c.Limit != 0 {
		c.Limit = max(min(n, c.mostUnits()*c.BlockBytes), c.BlockBytes)
	}
	return c
}

// Preallocates reports whether the engine takes its whole limit at once.
func (c Config) Preallocates() bool { return c.policy().Preallocates() }

func log2(n device.Size) int { return bits.TrailingZeros64(uint64(n)) }
