package buddy

import (
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/strategies/internal/blocks"
)

// The values of Config.Family.
const (
	Binary           = blocks.Binary           // powers of two
	Weighted         = blocks.Weighted         // powers of two, and three times these
	Fibonacci        = blocks.Fibonacci        // Fibonacci numbers
	FourPerDoubling  = blocks.FourPerDoubling  // four sizes to a doubling
	EightPerDoubling = blocks.EightPerDoubling // eight sizes to a doubling
)

// The values of Config.Trim.
const (
	TrimOn  = blocks.TrimOn  // release the part of a block beyond the request
	TrimOff = blocks.TrimOff // blocks are granted whole
)

// The values of Config.Placement.
const (
	Leftmost       = blocks.Leftmost       // lowest free block that serves, of any class
	Smallest       = blocks.Smallest       // of the smallest class that serves the lowest
	SmallestNewest = blocks.SmallestNewest // of the smallest class that serves the one freed last
	TopDown        = blocks.TopDown        // the highest free block that serves
)

// The values of Config.RegionChoice.
const (
	Oldest  = blocks.Oldest  // the region held longest
	Fullest = blocks.Fullest // the one with the smallest part free, in sixteen steps
	Lowest  = blocks.Lowest  // the one at the lowest address
)

// The values of Config.Coalescing.
const (
	Eager     = blocks.Eager     // a freed block is merged at once
	Lazy      = blocks.Lazy      // it stays unmerged while its class has few free blocks
	OnFailure = blocks.OnFailure // blocks are merged when no free block serves a request
)

// Config describes a buddy allocator. The zero value of a field means its default.
type Config struct {
	// RegionBytes is the size of the smallest region, a multiple of BlockBytes.
	RegionBytes device.Size `json:"region_bytes" doc:"smallest region" grid:"2MiB,8MiB,32MiB,128MiB"`
	// BlockBytes is the smallest block, a power of two.
	BlockBytes device.Size `json:"block_bytes" doc:"smallest block, a power of two" grid:"256,512,2KiB,16KiB"`
	// Family is the family of block sizes, such as Binary.
	Family string `json:"family" doc:"sizes of blocks: binary, weighted (2^k and 3*2^k), fibonacci, k4 or k8 (4 or 8 sizes to a doubling)" grid:"binary,weighted,fibonacci,k4,k8"`
	// Trim determines whether the tail of a block beyond the request is returned.
	Trim string `json:"trim" doc:"return the tail of a block beyond the request: on or off" grid:"off,on"`
	// TrimBytes is the unit to which requests are rounded up with Trim, a multiple of BlockBytes;
	// default BlockBytes.
	TrimBytes device.Size `json:"trim_bytes" doc:"with trim: unit to which requests are rounded up, a multiple of block_bytes (default block_bytes)"`
	// Placement selects the free block for a request, such as Smallest.
	Placement string `json:"placement" doc:"block taken: smallest (lowest of the smallest class that serves), newest (the one freed last), leftmost (lowest of any class), top-down (highest)" grid:"smallest,newest,leftmost,top-down"`
	// RegionChoice selects the region if several have such a block.
	RegionChoice string `json:"region_choice" doc:"region taken if several serve: oldest, fullest or lowest" grid:"oldest,fullest,lowest"`
	// Coalescing determines when free buddies are merged.
	Coalescing string `json:"coalescing" doc:"merge free buddies: eager (at once), lazy (not while a class has few free blocks), failure (when nothing else serves)" grid:"eager,lazy,failure"`
	// Slack is the number of free blocks of a class that stay unmerged with Lazy.
	Slack int `json:"slack" doc:"lazy: free blocks of a class that stay unmerged (default 16)"`
	// DirectBytes bounds the requests that the pool of blocks serves first.
	DirectBytes device.Size `json:"direct_bytes" doc:"larger requests get a region of their own" grid:"1MiB,4MiB,16MiB,128MiB,1EiB"`
	// DirectCacheBytes bounds the bytes of such regions that are kept when they are freed; by
	// default, with those in use, to a quarter above the most that were ever in use.
	DirectCacheBytes device.Size `json:"direct_cache_bytes" doc:"freed regions of single blocks that are kept for reuse, in bytes; 1 for none, 0 for up to a quarter above the most ever used" grid:"0,1,1GiB,1EiB"`
	// Growth is the kind of the growth policy, see kit/regions.
	Growth string `json:"growth" doc:"size of the next region: fixed, doubling, request, proportional or whole" grid:"request,fixed,doubling,proportional,whole"`
	// Limit bounds the bytes held; default none, or with growth "whole" 1 TiB, and at most
	// 2^31 blocks.
	Limit device.Size `json:"limit" doc:"limit on the bytes held from the device; 0 for none"`
	// Release returns regions without a live block to the device.
	Release bool `json:"release" doc:"return regions without a live block to the device" grid:"false,true"`
	// KeepBytes is the number of bytes in such regions that are kept with Release.
	KeepBytes device.Size `json:"keep_bytes" doc:"with release: bytes of such regions that are kept"`
}

// WithDefaults returns c with every default filled in. It fails with an error that names the
// first bad field.
func (c Config) WithDefaults() (Config, error) {
	filled, err := blocks.Config(c).WithDefaults()
	return Config(filled), err
}

// ForCapacity implements [setting.CapacityConfig]. Only a configuration with a limit gets one.
func (c Config) ForCapacity(n device.Size) Config { return Config(blocks.Config(c).ForCapacity(n)) }

func (c Config) Preallocates() bool { return blocks.Config(c).Preallocates() }

// Unbound implements [setting.UnboundConfig]: the limit only decides which requests fail, unless
// the whole of it is reserved at once.
func (c Config) Unbound() bool { return !c.Preallocates() }

func (c Config) Promises() promise.Set { return blocks.Config(c).Promises() }
