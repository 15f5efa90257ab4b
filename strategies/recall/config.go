package recall

import (
	"cmp"
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/regions"
	"github.com/vramyard/vramyard/strategies/bestfit"
)

// The values of Config.Map.
const (
	Range = "range" // one region, without virtual memory
	Pages = "pages" // pages that are mapped at more than one address
	Graph = "graph" // the same in private pools, whose mappings stay
)

// The default and the bounds of Config.Memory.
const (
	defaultMemory = 1 << 18
	leastMemory   = 1 << 8
	mostMemory    = 1 << 24
)

// The default and the bound of Config.Guard.
const (
	defaultGuard = 1
	mostGuard    = 100
)

// The default and the bounds of Config.PageBytes, and of requests.
const (
	defaultPage = 2 * device.MiB // a page of drivers
	mostPage    = device.GiB     // larger than the pages of any driver
	mostPages   = 1 << 17        // of a request
)

// pageQuantum is the unit of the sizes of blocks over pages: PyTorch's smallest block.
const pageQuantum device.Size = 512

// Config describes an allocator that recalls. The zero value is one region of the whole device.
type Config struct {
	// Map is the kind of memory: Range, Pages or Graph.
	Map string `json:"map" doc:"kind of memory: range, one region; pages, mapped at more than one address while idle; or graph, the same with private pools" grid:"range,pages,graph"`
	// PageBytes is the unit in which memory is created and mapped. It is 0 for a range.
	PageBytes device.Size `json:"page_bytes" doc:"pages and graph: bytes of a page, a power of two; memory is created and mapped in multiples of it; 0 for 2MiB" grid:"0,4MiB,8MiB"`
	// Memory is how many allocations are remembered; a period that is longer is not recognized.
	Memory int `json:"memory" doc:"how many allocations are remembered; a longer period is not recognized" grid:"65536,262144,1048576"`
	// Guard bounds how far a planned place may lie above all that the fallback would have used, in
	// percent of it. It is 0 unless Map is Range.
	Guard int `json:"guard" doc:"range: a planned place ends at most this many percent above the most that the fallback would have used; 0 for 1" grid:"0,2,5"`
	// Limit bounds the bytes held from the device.
	Limit device.Size `json:"limit" doc:"limit on the bytes held from the device; 0 for 1TiB, with pages and graph for none"`
}

// WithDefaults returns c with every default filled in. It fails with an error that names the first
// bad field.
func (c Config) WithDefaults() (Config, error) {
	c.Map = cmp.Or(c.Map, Range)
	c.Memory = cmp.Or(c.Memory, defaultMemory)
	switch {
	case c.Map != Range && c.Map != Pages && c.Map != Graph:
		return c, fmt.Errorf("recall: map %q: want %q, %q or %q", c.Map, Range, Pages, Graph)
	case c.Memory < leastMemory || c.Memory > mostMemory:
		return c, fmt.Errorf("recall: memory %d: want %d to %d", c.Memory, leastMemory, mostMemory)
	case c.Map == Range && c.PageBytes != 0:
		return c, fmt.Errorf("recall: page_bytes %d: needs map %q or %q", uint64(c.PageBytes), Pages, Graph)
	case c.Map != Range && c.Guard != 0:
		return c, fmt.Errorf("recall: guard %d: needs map %q", c.Guard, Range)
	}
	if c.Map != Range {
		c.PageBytes = cmp.Or(c.PageBytes, defaultPage)
		if !device.IsPowerOfTwo(c.PageBytes) || c.PageBytes < pageQuantum || c.PageBytes > mostPage {
			return c, fmt.Errorf("recall: page_bytes %d: want a power of two from %v to %v", uint64(c.PageBytes),
				pageQuantum, mostPage)
		}
		return c, nil
	}
	c.Guard = cmp.Or(c.Guard, defaultGuard)
	c.Limit = cmp.Or(c.Limit, regions.WholeLimit)
	if c.Guard < 1 || c.Guard > mostGuard {
		return c, fmt.Errorf("recall: guard %d: want 1 to %d", c.Guard, mostGuard)
	}
	return c, c.policy().Check("recall")
}

// policy describes the region of a range.
func (c Config) policy() regions.Policy {
	return regions.Policy{Kind: regions.Whole, Region: c.fallback().RegionBytes, Limit: c.Limit, Quantum: quantum}
}

// fallback is the configuration of the best fit of a range.
func (c Config) fallback() bestfit.Config {
	f, err := bestfit.Config{Quantum: quantum, Limit: c.Limit}.WithDefaults()
	if err != nil {
		panic("recall: the fallback refuses its configuration: " + err.Error())
	}
	return f
}

// ForCapacity returns the configuration for a device of n bytes: Limit becomes n.
func (c Config) ForCapacity(n device.Size) Config {
	c.Limit = n
	if c.Map == Range {
		c.Limit = max(n, quantum)
	}
	return c
}

// Preallocates implements [setting.PreallocatingConfig]: a range reserves the whole limit with the
// first request.
func (c Config) Preallocates() bool { return c.Map == Range }

// Promises implements [promise.Promiser].
func (c Config) Promises() promise.Set {
	if c.Map != Range {
		return c.pagePromises()
	}
	p := c.fallback().Promises()
	p.ExactPlacer = false // a plan may take another free chunk
	return p
}

// pagePromises is Promises for pages.
func (c Config) pagePromises() promise.Set {
	return promise.Set{
		Quantum:   pageQuantum,
		Honours:   func(r alloc.Request) bool { return r.Align <= c.PageBytes },
		MaxGrant:  func(r alloc.Request) device.Size { return device.AlignUp(r.Size, pageQuantum) },
		MustMerge: promise.MergeAll,
		ClassOf:   func(alloc.Chunk) int32 { return alloc.NoClass },
		Serves: func(f alloc.Chunk, r alloc.Request) bool {
			return r.Align <= c.PageBytes && device.CanAlignUp(r.Size, pageQuantum) && f.Size >= needOf(r.Size, r.Align)
		},
		// Memory is released by handle. Twice the largest one contains a whole handle.
		Page:       2 * max(settledPages, mostPages/shareOfRequest) * c.PageBytes,
		Boundaries: append(promise.PowersOfTwo(pageQuantum, 8*c.PageBytes), 3*c.PageBytes),
	}
}
