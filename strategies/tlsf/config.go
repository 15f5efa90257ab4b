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
	defaultQuantum device.Size = 256 // what drivers align to
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

// Config describes a two-level segregated fit. The zero value is the classic one over one
// region of the whole device, but for the tail.
type Config struct {
	// Quantum in bytes is what sizes are rounded up to, a power of two.
	Quantum device.Size `json:"quantum" doc:"what sizes are rounded up to, a power of two" grid:"256,512,4KiB"`
	// SecondLevel is the logarithm of the number of lists for each doubling of the size.
	SecondLevel int `json:"second_level" doc:"log2 of the lists for each doubling of the size, 1 to 6" grid:"2,3,4,5,6"`
	// List is the order of a list: ListLIFO, ListFIFO or ListAddress.
	List string `json:"list" doc:"which chunk of a list is taken: lifo (freed last), fifo (freed first) or address (the lowest; a free then costs the length of the list)" grid:"lifo,fifo,address"`
	// Scan is how many chunks of the request's own class are looked at before those above.
	Scan int `json:"scan" doc:"how many chunks of the request's own class, of which some may be too small, are looked at before the classes whose every chunk serves" grid:"0,1,4,16"`
	// Exhaustive looks at all chunks of the own class before a tail, a new region or a refusal.
	Exhaustive bool `json:"exhaustive" doc:"look at all chunks that may serve before a tail is used, a region is taken or the request refused" grid:"false,true"`
	// Tail says when the last chunk of a region is used: TailLast or TailHole.
	Tail string `json:"tail" doc:"the last free chunk of a region: last (used when no hole serves, however well it fits) or hole (as any other)" grid:"last,hole"`
	// Growth is the kind of the policy by which regions are taken, see kit/regions.
	Growth string `json:"growth" doc:"how regions are taken: whole, fixed, doubling, request or proportional" grid:"whole,fixed,doubling,request,proportional"`
	// RegionBytes is the smallest region.
	RegionBytes device.Size `json:"region_bytes" doc:"smallest region; not used with growth whole" grid:"2MiB,32MiB,256MiB"`
	// Limit in bytes is the most to hold of the device; 0 for no bound.
	Limit device.Size `json:"limit" doc:"most bytes to hold of the device; 0 for no bound, with growth whole 1TiB"`
	// Release gives empty regions back to the device.
	Release bool `json:"release" doc:"give empty regions back to the device; not with growth whole" grid:"false,true"`
	// KeepBytes are the bytes of empty regions that are kept all the same.
	KeepBytes device.Size `json:"keep_bytes" doc:"empty bytes that are kept although release is set" grid:"0,64MiB,1GiB"`
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

// Unbound implements [setting.UnboundConfig]: the limit is looked at to refuse, and where the whole
// of it is taken.
func (c Config) Unbound() bool { return !c.Preallocates() }
