package bestfit

import (
	"cmp"
	"fmt"
	"math/bits"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/regions"
)

// The values of Config fields that are zero.
const (
	defaultQuantum device.Size = 256            // the alignment of drivers
	defaultLooks               = 2              // measured, see the package comment
	defaultSpread              = 8              // likewise
	defaultSlack               = 16             // likewise
	defaultRegion              = 2 * device.MiB // a page of drivers
)

// The bounds of fields. Each look costs a comparison, so more than a few are only for experiments.
const (
	mostLooks  = 1024
	mostSpread = 1 << 20
)

// NoSlack is the value of Config.Slack that splits off every remainder.
const NoSlack = 1 << 20

// The values of Config.Tail.
const (
	TailLast = "last" // the last chunk of a region is used when no hole serves
	TailHole = "hole" // it is a hole like any other
)

// Config describes a best fit. The zero value is one region of the whole device, in which
// the best chunk is the lower of the two smallest that serve.
type Config struct {
	// Quantum is the unit in bytes to which sizes are rounded up, a power of two.
	Quantum device.Size `json:"quantum" doc:"unit to which sizes are rounded up, a power of two" grid:"256,512,4KiB"`
	// Looks is how many of the smallest chunks that fit are compared for the lowest address.
	Looks int `json:"looks" doc:"how many of the smallest chunks that fit are compared; the lowest is taken. 1 is strict best fit" grid:"1,2,4,8,16,32"`
	// Spread bounds by how much a compared chunk may exceed the smallest: a Spread-th of the
	// request.
	Spread int `json:"spread" doc:"a compared chunk exceeds the smallest by at most the request divided by this" grid:"2,4,8,16,32"`
	// Slack bounds the remainder that stays in a block: a Slack-th of the request. NoSlack leaves
	// none.
	Slack int `json:"slack" doc:"a remainder of at most the request divided by this, a power of two, stays in the block; 1048576 for none" grid:"8,16,32,64,1048576"`
	// Tail determines when the last chunk of a region is used: TailLast or TailHole.
	Tail string `json:"tail" doc:"the last free chunk of a region: last (used only if no other fits) or hole (like any other)" grid:"last,hole"`
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
	c.Looks = cmp.Or(c.Looks, defaultLooks)
	c.Spread = cmp.Or(c.Spread, defaultSpread)
	c.Slack = cmp.Or(c.Slack, defaultSlack)
	c.Tail = cmp.Or(c.Tail, TailLast)
	c.Growth = cmp.Or(c.Growth, regions.Whole)
	c.RegionBytes = cmp.Or(c.RegionBytes, max(defaultRegion, c.Quantum))
	if c.Limit == 0 && c.Growth == regions.Whole {
		c.Limit = max(regions.WholeLimit, c.Quantum)
	}
	switch {
	case !device.IsPowerOfTwo(c.Quantum) || c.Quantum > device.GiB:
		return c, fmt.Errorf("bestfit: quantum %d: want a power of two up to %v", uint64(c.Quantum), device.GiB)
	case c.Looks < 1 || c.Looks > mostLooks:
		return c, fmt.Errorf("bestfit: looks %d: want 1 to %d", c.Looks, mostLooks)
	case c.Spread < 1 || c.Spread > mostSpread:
		return c, fmt.Errorf("bestfit: spread %d: want 1 to %d", c.Spread, mostSpread)
	case c.Slack < 1 || c.Slack > NoSlack || !device.IsPowerOfTwo(device.Size(c.Slack)):
		return c, fmt.Errorf("bestfit: slack %d: want a power of two up to %d", c.Slack, NoSlack)
	case c.Tail != TailLast && c.Tail != TailHole:
		return c, fmt.Errorf("bestfit: tail %q: want %q or %q", c.Tail, TailLast, TailHole)
	}
	return c, c.policy().Check("bestfit")
}

// slack returns the shift of Allocator.slack.
func (c Config) slack() uint8 {
	if c.Slack == NoSlack {
		return 63
	}
	return uint8(bits.TrailingZeros(uint(c.Slack)))
}

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
