package slabbuddy

import (
	"fmt"
	"math/bits"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/strategies/buddy"
	"github.com/vramyard/vramyard/strategies/slab"
)

// The values of Config fields that are zero.
const (
	defaultRegion   = device.GiB
	defaultBlock    = 16 * device.KiB
	defaultSegments = 32
)

// unitsPerBlock is how many units of the slab make the smallest block of the buddy.
const unitsPerBlock = 4

// CompatXDL is the value of Config.Compat that selects X-DeepLearning's placement.
const CompatXDL = "xdl"

// Config describes a slab-buddy allocator. The zero value of a number means its default.
type Config struct {
	// Compat names the original whose placement is reproduced: "xdl".
	Compat string `json:"compat" doc:"the original to reproduce bit for bit: xdl (required)"`
	// RegionBytes is the size of a region of either part, a power of two; requests of that
	// size and more go to the device; default 1 GiB.
	RegionBytes device.Size `json:"region_bytes" doc:"size of a region; requests from there up go to the device (default 1GiB)"`
	// BlockBytes is the smallest block of the buddy part, a power of two; smaller requests
	// go to the slab part, whose unit is a quarter of it; default 16 KiB.
	BlockBytes device.Size `json:"block_bytes" doc:"smallest buddy block; smaller requests go to the slab (default 16KiB)"`
	// Segments is the number of segments of the slab part; default 32.
	Segments int `json:"segments" doc:"segments of the slab (default 32)"`
}

// WithDefaults returns c with every default filled in. It fails with an error that names
// the first bad field.
func (c Config) WithDefaults() (Config, error) {
	if c.RegionBytes == 0 {
		c.RegionBytes = defaultRegion
	}
	if c.BlockBytes == 0 {
		c.BlockBytes = defaultBlock
	}
	if c.Segments == 0 {
		c.Segments = defaultSegments
	}
	switch {
	case c.Compat == "":
		return c, fmt.Errorf("slabbuddy: compat is empty: the modern mode is not available yet, want %q", CompatXDL)
	case c.Compat != CompatXDL:
		return c, fmt.Errorf("slabbuddy: compat %q: want %q", c.Compat, CompatXDL)
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

// slab returns the configuration of the slab part.
func (c Config) slab() slab.Config {
	return slab.Config{
		Compat: slab.CompatXDL, RegionBytes: c.RegionBytes, Segments: c.Segments, UnitBytes: c.BlockBytes / unitsPerBlock,
	}
}

// buddy returns the configuration of the buddy part.
func (c Config) buddy() buddy.Config {
	return buddy.Config{Compat: buddy.CompatXDL, RegionBytes: c.RegionBytes, BlockBytes: c.BlockBytes}
}
