package buddy

import (
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
	TrimOn  = "on"  // what a block has beyond the request is given back
	TrimOff = "off" // blocks are granted whole
)

// The values of Config.Placement.
const (
	Leftmost       = "leftmost" // the lowest free block that serves, whatever its class
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

// The values of Config fields that are zero; the doc comment of the package says what chose
// them.
const (
	defaultRegion = 32 * device.MiB
	defaultBlock  = 512
	defaultSlack  = 16
	defaultDirect = 4 * device.MiB
)

// Config describes a buddy allocator. The zero value of a field means its default.
type Config struct {
	// RegionBytes is the size of a region, a multiple of BlockBytes; Growth says which.
	RegionBytes device.Size `json:"region_bytes" doc:"smallest region" grid:"2MiB,8MiB,32MiB,128MiB"`
	// BlockBytes is the smallest block, a power of two.
	BlockBytes device.Size `json:"block_bytes" doc:"smallest block, a power of two" grid:"256,512,2KiB,16KiB"`
	// Family says which sizes blocks have.
	Family string `json:"family" doc:"sizes of blocks: binary, weighted (2^k and 3*2^k), fibonacci, k4 or k8 (4 or 8 sizes to a doubling)" grid:"binary,weighted,fibonacci,k4,k8"`
	// Trim says whether the tail of a block beyond the request is given back.
	Trim string `json:"trim" doc:"give the tail of a block beyond the request back: on or off" grid:"off,on"`
	// TrimBytes is what requests are rounded up to, a multiple of BlockBytes; default BlockBytes.
	TrimBytes device.Size `json:"trim_bytes" doc:"what requests are rounded up to before, a multiple of block_bytes (default block_bytes)"`
	// Placement says which free block is taken.
	Placement string `json:"placement" doc:"block taken: smallest (lowest of the smallest class that serves), newest (the one freed last), leftmost (lowest of any class), top-down (highest)" grid:"smallest,newest,leftmost,top-down"`
	// RegionChoice says in which region, where several have such a block.
	RegionChoice string `json:"region_choice" doc:"region taken if several serve: oldest, fullest or lowest" grid:"oldest,fullest,lowest"`
	// Coalescing says when free buddies are merged.
	Coalescing string `json:"coalescing" doc:"merge free buddies: eager (at once), lazy (not while a class has few free blocks), failure (when nothing else serves)" grid:"eager,lazy,failure"`
	// Slack is how many free blocks of a class are few, lazy only.
	Slack int `json:"slack" doc:"lazy: free blocks of a class up to which they stay unmerged"`
	// DirectBytes bounds the requests that the pool of blocks serves first.
	DirectBytes device.Size `json:"direct_bytes" doc:"larger requests get a region of their own" grid:"1MiB,4MiB,16MiB,128MiB,1EiB"`
	// DirectCacheBytes bounds the bytes of such regions that are kept when they are freed; by
	// default, with those in use, to a quarter above the most that were ever in use.
	DirectCacheBytes device.Size `json:"direct_cache_bytes" doc:"bytes of such regions kept for reuse; 1 for none, 0 for a quarter above the most in use" grid:"0,1,1GiB,1EiB"`
	// Growth is the kind of the policy of package growth.
	Growth string `json:"growth" doc:"size of the next region: fixed, doubling, request, proportional or whole" grid:"request,fixed,doubling,proportional,whole"`
	// Limit bounds the bytes held; default none, or with growth "whole" 1 TiB, and at most
	// 2^31 blocks.
	Limit device.Size `json:"limit" doc:"most bytes to hold; 0 for no bound"`
	// Release gives regions back that have no live block any more.
	Release bool `json:"release" doc:"give regions without a live block back" grid:"false,true"`
	// KeepBytes is how many bytes of such regions stay all the same.
	KeepBytes device.Size `json:"keep_bytes" doc:"with release: bytes of such regions that stay"`
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

// choices returns the fields that are texts.
func (c *Config) choices() []choice {
	return []choice{
		{"family", &c.Family, []string{Binary, Weighted, Fibonacci, FourPerDoubling, EightPerDoubling}},
		{"trim", &c.Trim, []string{TrimOff, TrimOn}},
		{"placement", &c.Placement, []string{Smallest, SmallestNewest, Leftmost, TopDown}},
		{"region_choice", &c.RegionChoice, []string{Oldest, Fullest, Lowest}},
		{"coalescing", &c.Coalescing, []string{Eager, Lazy, OnFailure}},
		{"growth", &c.Growth, []string{regions.Request, regions.Fixed, regions.Doubling, regions.Proportional, regions.Whole}},
	}
}

// fill gives a field that is zero its default.
func fill[T comparable](field *T, value T) {
	if *field == *new(T) {
		*field = value
	}
}

// WithDefaults returns c with every default filled in. It fails with an error that names the
// first bad field.
func (c Config) WithDefaults() (Config, error) {
	for _, f := range c.choices() {
		fill(f.value, f.known[0])
		if !slices.Contains(f.known, *f.value) {
			return c, fmt.Errorf("buddy: %s %q: want one of %s", f.name, *f.value, strings.Join(f.known, ", "))
		}
	}
	fill(&c.BlockBytes, defaultBlock)
	fill(&c.RegionBytes, max(defaultRegion, c.BlockBytes))
	fill(&c.TrimBytes, c.BlockBytes)
	fill(&c.DirectBytes, defaultDirect)
	if c.Coalescing == Lazy {
		fill(&c.Slack, defaultSlack)
	}
	if c.Growth == regions.Whole {
		fill(&c.Limit, min(regions.WholeLimit, c.mostUnits()*c.BlockBytes))
	}
	return c, c.judge()
}

// judge returns an error that names the first bad field.
func (c Config) judge() error {
	switch {
	case !device.IsPowerOfTwo(c.BlockBytes) || c.BlockBytes > regionAlign:
		return fmt.Errorf("buddy: block_bytes %d: want a power of two up to %v", uint64(c.BlockBytes), regionAlign)
	case c.RegionBytes > c.mostUnits()*c.BlockBytes:
		return fmt.Errorf("buddy: region_bytes %d: want at most %d blocks", uint64(c.RegionBytes), uint64(c.mostUnits()))
	case c.TrimBytes%c.BlockBytes != 0 || c.TrimBytes > mostRequest:
		return fmt.Errorf("buddy: trim_bytes %d: want a multiple of block_bytes %d", uint64(c.TrimBytes), uint64(c.BlockBytes))
	case c.Trim == TrimOff && c.TrimBytes != c.BlockBytes:
		return fmt.Errorf("buddy: trim_bytes %d: of no meaning with trim %q", uint64(c.TrimBytes), TrimOff)
	case c.Slack < 0 || c.Slack >= 1<<31:
		return fmt.Errorf("buddy: slack %d: want 0 to 2^31-1", c.Slack)
	case c.Slack != 0 && c.Coalescing != Lazy:
		return fmt.Errorf("buddy: slack %d: of no meaning with coalescing %q", c.Slack, c.Coalescing)
	case c.DirectBytes > mostRequest:
		return fmt.Errorf("buddy: direct_bytes %d: want at most %v", uint64(c.DirectBytes), mostRequest)
	case c.DirectCacheBytes > mostRequest:
		return fmt.Errorf("buddy: direct_cache_bytes %d: want at most %v", uint64(c.DirectCacheBytes), mostRequest)
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

// ForCapacity implements [alloc.CapacityConfig]. Only a configuration with a limit gets one.
func (c Config) ForCapacity(n device.Size) Config {
	if c.Limit != 0 {
		c.Limit = max(min(n, c.mostUnits()*c.BlockBytes), c.BlockBytes)
	}
	return c
}

// Preallocates implements [alloc.PreallocatingConfig].
func (c Config) Preallocates() bool { return c.policy().Preallocates() }

// Unbound implements [alloc.UnboundConfig]: the limit is looked at to refuse, and where the whole of it is taken.
func (c Config) Unbound() bool { return !c.Preallocates() }

// log2 returns the logarithm of a power of two.
func log2(n device.Size) int { return bits.TrailingZeros64(uint64(n)) }
