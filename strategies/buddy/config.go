package buddy

import (
	"fmt"
	"math/bits"

	"github.com/vramyard/vramyard/device"
)

// The values of Config fields that are zero.
const (
	defaultRegion = device.GiB
	defaultBlock  = 16 * device.KiB
)

// maxOrder bounds the order of a region. The nodes of a tree, twice its blocks, then
// number at most 2^31, and the host memory of a region's tree at most 2 GiB.
const maxOrder = 30

// mostBlocks bounds the blocks of all regions, whose trees then take about 1 GiB. It serves
// 32 TiB of device memory in blocks of 16 KiB.
const mostBlocks = 1 << 31

// CompatXDL is the value of Config.Compat that selects X-DeepLearning's placement.
const CompatXDL = "xdl"

// Config describes a buddy allocator. The zero value of a size means its default.
type Config struct {
	// Compat names the original whose placement is reproduced: "xdl".
	Compat string `json:"compat" doc:"the original to reproduce bit for bit: xdl (required)"`
	// RegionBytes is the size of a region, a power of two; default 1 GiB.
	RegionBytes device.Size `json:"region_bytes" doc:"size of a region, a power of two (default 1GiB)"`
	// BlockBytes is the smallest block, a power of two below RegionBytes; default 16 KiB.
	BlockBytes device.Size `json:"block_bytes" doc:"smallest block, a power of two below region_bytes (default 16KiB)"`
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
	switch {
	case c.Compat == "":
		return c, fmt.Errorf("buddy: compat is empty: the modern mode is not available yet, want %q", CompatXDL)
	case c.Compat != CompatXDL:
		return c, fmt.Errorf("buddy: compat %q: want %q", c.Compat, CompatXDL)
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

// log2 returns the logarithm of a power of two.
func log2(n device.Size) int { return bits.TrailingZeros64(uint64(n)) }
