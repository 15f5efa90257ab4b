package tlsf

import (
	"cmp"
	"fmt"
	"math/bits"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/regions"
)

// The values of Config fields that are zero.
const (
	defaultQuantum device.Size = 256 // the alignment of drivers
	defaultSecond              = 5   // the paper's
	defaultRegion              = 2 * device.MiB
)

// mostSecond bounds the classes of a doubling: their bits fill a word.
const mostSecond = 6

// mostScan bounds Config.Scan; with Config.Exhaustive there is no bound.
const mostScan = 1 << 20

// The values of Config.List.
const (
	ListLIFO    = "lifo"    // the chunk freed last comes first
	ListFIFO    = "fifo"    // the chunk freed first comes first
	ListAddress = "address" // the lowest chunk comes first
)

// orders are the values of Config.List. Nothing ranges over it.
var orders = map[string]order{ListLIFO: lifo, ListFIFO: fifo, ListAddress: address}

// The values of Config.Tail.
const (
	TailLast = "last" // the last chunk of a region is used when no hole serves
	TailHole = "hole" // it is a hole like any other
)

// Config describes a two-level segregated fit. The zero value is the paper's over one region of
// the whole device, except that tails come last.
type Config struct {
	// Quantum is the unit in bytes to which sizes are rounded up, a power of two.
	Quantum device.Size `json:"quantum" doc:"unit to which sizes are rounded up, a power of two" grid:"256,512,4KiB"`
	// SecondLevel is the logarithm of the number of lists for each doubling of the size.
	SecondLevel int `json:"second_level" doc:"log2 of the lists for each doubling of the size, 1 to 6" grid:"2,3,4,5,6"`
	// List is the order of a list: ListLIFO, ListFIFO or ListAddress.
	List string `json:"list" doc:"which chunk of a list is taken: lifo (freed last), fifo (freed first) or address (the lowest; a free then costs the length of the list)" grid:"lifo,fifo,address"`
	// Scan is the number of chunks of the request's own class to try first.
	Scan int `json:"scan" doc:"chunks of the request's own class to try first; some of them may be too small" grid:"0,1,4,16"`
	// Exhaustive tries all chunks of the own class before a tail, a new region or a refusal.
	Exhaustive bool `json:"exhaustive" doc:"try every chunk that may fit before a tail or a new region is used or the request fails" grid:"false,true"`
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
	c.SecondLevel = cmp.Or(c.SecondLevel, defaultSecond)
	c.List = cmp.Or(c.List, ListLIFO)
	c.Tail = cmp.Or(c.Tail, TailLast)
	c.Growth = cmp.Or(c.Growth, regions.Whole)
	c.RegionBytes = cmp.Or(c.RegionBytes, max(defaultRegion, c.Quantum))
	if c.Limit == 0 && c.Growth == regions.Whole {
		c.Limit = max(regions.WholeLimit, c.Quantum)
	}
	switch {
	case !device.IsPowerOfTwo(c.Quantum) || c.Quantum > device.GiB:
		return c, fmt.Errorf("tlsf: quantum %d: want a power of two up to %v", uint64(c.Quantum), device.GiB)
	case c.SecondLevel < 1 || c.SecondLevel > mostSecond:
		return c, fmt.Errorf("tlsf: second_level %d: want 1 to %d", c.SecondLevel, mostSecond)
	case c.List != ListLIFO && c.List != ListFIFO && c.List != ListAddress:
		return c, fmt.Errorf("tlsf: list %q: want %q, %q or %q", c.List, ListLIFO, ListFIFO, ListAddress)
	case c.Scan < 0 || c.Scan > mostScan:
		return c, fmt.Errorf("tlsf: scan %d: want 0 to %d", c.Scan, mostScan)
	case c.Tail != TailLast && c.Tail != TailHole:
		return c, fmt.Errorf("tlsf: tail %q: want %q or %q", c.Tail, TailLast, TailHole)
	}
	return c, c.policy().Check("tlsf")
}

func (c Config) scale() scale {
	return scale{quantum: uint8(bits.TrailingZeros64(uint64(c.Quantum))), second: uint8(c.SecondLevel)}
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
