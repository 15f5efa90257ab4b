package xdl

import (
	"cmp"
	"fmt"
	"math/bits"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
	buddy "github.com/vramyard/vramyard/strategies/buddy/xdl"
	slab "github.com/vramyard/vramyard/strategies/slab/xdl"
	"github.com/vramyard/vramyard/strategies/slabbuddy"
)

// compat is the value of Config.Compat.
const compat = "xdl"

// The defaults of Config, as in the original.
const (
	defaultRegion   = device.GiB
	defaultBlock    = 16 * device.KiB
	defaultSegments = 32
)

// unitsPerBlock is how many units of the slab make the smallest block of the buddy.
const unitsPerBlock = 4

// Config describes the allocator. The zero value of a field means its default.
type Config struct {
	// Compat names the original; "xdl" is the default and the only value.
	Compat string `json:"compat" doc:"the original to reproduce bit for bit"`
	// RegionBytes is the size of every region of either part, a power of two; default 1 GiB.
	// Requests of that size and more go to the device.
	RegionBytes device.Size `json:"region_bytes" doc:"size of a region, a power of two; requests of this size and more go to the device" grid:"2MiB,20MiB"`
	// BlockBytes is the smallest block of the buddy, a power of two; default 16 KiB. Smaller
	// requests go to the slab part, whose unit is a quarter of it.
	BlockBytes device.Size `json:"block_bytes" doc:"smallest buddy block, a power of two; smaller requests go to the slab" grid:"256,512,2KiB"`
	// Segments is the number of segments of the slab part; default 32.
	Segments int `json:"segments" doc:"number of segments of the slab"`
	// Locks makes the allocator safe for concurrent use, with the locks of the original: one for
	// each segment of the slab and one for the rest.
	Locks bool `json:"locks,omitzero" doc:"the original's locks, one for each segment of the slab and one for the rest: safe for many threads"`
}

// WithDefaults returns c with every default filled in. It fails with an error that names the
// first bad field.
func (c Config) WithDefaults() (Config, error) {
	c.Compat = cmp.Or(c.Compat, compat)
	c.RegionBytes = cmp.Or(c.RegionBytes, defaultRegion)
	c.BlockBytes = cmp.Or(c.BlockBytes, defaultBlock)
	c.Segments = cmp.Or(c.Segments, defaultSegments)
	switch {
	case c.Compat != compat:
		return c, fmt.Errorf("slabbuddy: compat %q: want %q", c.Compat, compat)
	case !device.IsPowerOfTwo(c.RegionBytes):
		return c, fmt.Errorf("slabbuddy: region_bytes %d: want a power of two", c.RegionBytes)
	case !device.IsPowerOfTwo(c.BlockBytes) || c.BlockBytes < unitsPerBlock:
		return c, fmt.Errorf("slabbuddy: block_bytes %d: want a power of two from %d", c.BlockBytes, unitsPerBlock)
	case c.BlockBytes >= c.RegionBytes:
		return c, fmt.Errorf("slabbuddy: block_bytes %d: want less than region_bytes %d", c.BlockBytes, c.RegionBytes)
	case c.Segments < 1:
		return c, fmt.Errorf("slabbuddy: segments %d: want at least 1", c.Segments)
	}
	if over, step := bits.Mul64(16*uint64(c.BlockBytes), uint64(c.Segments)); c.BlockBytes > 1<<59 ||
		over != 0 || uint64(c.RegionBytes)%step != 0 {
		return c, fmt.Errorf("slabbuddy: segments %d: want 16*segments*block_bytes to divide region_bytes %d",
			c.Segments, c.RegionBytes)
	}
	return c, nil
}

func (c Config) slab() slab.Config {
	return slab.Config{RegionBytes: c.RegionBytes, Segments: c.Segments, UnitBytes: c.BlockBytes / unitsPerBlock}
}

func (c Config) buddy() buddy.Config {
	return buddy.Config{RegionBytes: c.RegionBytes, BlockBytes: c.BlockBytes}
}

func (c Config) WithLocks() Config {
	c.Locks = true
	return c
}

// Unbound implements [setting.UnboundConfig]: the allocator has no limit.
func (Config) Unbound() bool { return true }

// Promises implements [promise.Promiser]: a request has the promises of the part that its size is
// routed to.
func (c Config) Promises() promise.Set {
	runs, blocks := c.slab().Promises(), c.buddy().Promises()
	unit := c.slab().UnitBytes
	return promise.Set{
		Quantum: unit,
		Honours: func(r alloc.Request) bool {
			switch {
			case r.Size < c.BlockBytes:
				return runs.Honours(r)
			case r.Size < c.RegionBytes:
				return blocks.Honours(r)
			}
			return true
		},
		MaxGrant: func(r alloc.Request) device.Size {
			switch {
			case r.Size < c.BlockBytes:
				return runs.MaxGrant(r)
			case r.Size < c.RegionBytes:
				return blocks.MaxGrant(r)
			}
			return r.Size
		},
		MustMerge: func(left, right alloc.Chunk) bool {
			if left.Owner == slabbuddy.OwnerSlab {
				return runs.MustMerge(left, right)
			}
			return blocks.MustMerge(left, right)
		},
		Serves: func(free alloc.Chunk, r alloc.Request) bool {
			if r.Size < c.BlockBytes {
				return runs.Serves != nil && free.Owner == slabbuddy.OwnerSlab && runs.Serves(free, r)
			}
			return r.Size < c.RegionBytes && free.Owner == slabbuddy.OwnerBuddy && blocks.Serves(free, r)
		},
		ExactNeighbours: true,
		ExactPlacer:     true,
		FreeReleases:    true,
		Boundaries: []device.Size{
			unit, 2 * unit, 3 * unit, c.BlockBytes, 2 * c.BlockBytes, c.RegionBytes / 2, c.RegionBytes, 2 * c.RegionBytes,
		},
	}
}
