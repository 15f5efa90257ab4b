package xdl

import (
	"cmp"
	"fmt"
	"math/bits"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
)

// compat is the value of Config.Compat.
const compat = "xdl"

// The defaults of Config, as in the original.
const (
	defaultRegion = device.GiB
	defaultBlock  = 16 * device.KiB
)

// maxOrder bounds the order of a region. The nodes of a tree, twice its blocks, then number
// at most 2^31, and the host memory of a region's tree at most 2 GiB.
const maxOrder = 30

// mostBlocks bounds the blocks of all regions, whose trees then take about 1 GiB. It serves
// 32 TiB of device memory in blocks of 16 KiB.
const mostBlocks = 1 << 31

// Config describes the allocator. The zero value of a field means its default.
type Config struct {
	// Compat names the original; "xdl" is the default and the only value.
	Compat string `json:"compat" doc:"the original to reproduce bit for bit"`
	// RegionBytes is the size of a region, a power of two; default 1 GiB.
	RegionBytes device.Size `json:"region_bytes" doc:"size of a region, a power of two" grid:"2MiB,8MiB,32MiB,128MiB"`
	// BlockBytes is the smallest block, a power of two below RegionBytes; default 16 KiB.
	BlockBytes device.Size `json:"block_bytes" doc:"smallest block, a power of two" grid:"256,512,2KiB,16KiB"`
	// Locks makes the allocator safe for concurrent use, with the locks of the original: one for
	// the whole.
	Locks bool `json:"locks,omitzero" doc:"the original's lock, one for everything: safe for many threads"`
}

// WithDefaults returns c with every default filled in. It fails with an error that names the
// first bad field.
func (c Config) WithDefaults() (Config, error) {
	c.Compat = cmp.Or(c.Compat, compat)
	c.RegionBytes = cmp.Or(c.RegionBytes, defaultRegion)
	c.BlockBytes = cmp.Or(c.BlockBytes, defaultBlock)
	switch {
	case c.Compat != compat:
		return c, fmt.Errorf("buddy: compat %q: want %q", c.Compat, compat)
	case !device.IsPowerOfTwo(c.RegionBytes):
		return c, fmt.Errorf("buddy: region_bytes %d: want a power of two", c.RegionBytes)
	case !device.IsPowerOfTwo(c.BlockBytes):
		return c, fmt.Errorf("buddy: block_bytes %d: want a power of two", c.BlockBytes)
	case c.BlockBytes >= c.RegionBytes:
		return c, fmt.Errorf("buddy: block_bytes %d: want less than region_bytes %d", c.BlockBytes, c.RegionBytes)
	case log2(c.RegionBytes/c.BlockBytes) > maxOrder:
		return c, fmt.Errorf("buddy: block_bytes %d: want at most 2^%d blocks in region_bytes %d",
			c.BlockBytes, maxOrder, c.RegionBytes)
	}
	return c, nil
}

func (c Config) WithLocks() Config {
	c.Locks = true
	return c
}

// Unbound implements [setting.UnboundConfig]: the allocator has no limit.
func (Config) Unbound() bool { return true }

func log2(n device.Size) int { return bits.TrailingZeros64(uint64(n)) }

func (c Config) Promises() promise.Set {
	grant := func(r alloc.Request) device.Size { return promise.PowerOfTwo(r.Size, c.BlockBytes) }
	return promise.Set{
		Quantum:         c.BlockBytes,
		Honours:         func(r alloc.Request) bool { return r.Align <= min(grant(r), 2*device.MiB) },
		MaxGrant:        grant,
		MustMerge:       promise.MergeBuddies,
		ExactNeighbours: true,
		ExactPlacer:     true,
		ClassOf: func(free alloc.Chunk) int32 {
			return int32(bits.TrailingZeros64(uint64(free.Size / c.BlockBytes)))
		},
		SearchOrder: func(a, b alloc.Chunk) int {
			if a.Region != b.Region {
				return -1 // by age, which a walk does not show
			}
			return promise.ByAddress(a, b)
		},
		Serves:     func(free alloc.Chunk, r alloc.Request) bool { return free.Size >= grant(r) },
		Boundaries: promise.PowersOfTwo(c.BlockBytes, c.RegionBytes),
	}
}
