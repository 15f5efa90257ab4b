package slab

import (
	"fmt"
	"math/bits"

	"github.com/vramyard/vramyard/device"
)

// The values of Config.Compat.
const (
	CompatXDL   = "xdl"   // X-DeepLearning's slab allocator: segments of 64-unit chunks
	CompatBlaze = "blaze" // Blaze's: power-of-two free lists over bump regions
)

// The values of Config fields that are zero.
const (
	defaultRegion   = device.GiB
	defaultSegments = 32
	defaultUnit     = 4 * device.KiB
	defaultMinClass = 2
	defaultMaxClass = 256 * device.MiB
)

const (
	// maxSegments bounds the table of segments, 44 bytes each, that New makes.
	maxSegments = 1 << 20
	// maxChunks bounds the chunks of a region, 40 bytes of host memory each: 640 MiB.
	maxChunks = 1 << 24
	// mostChunks bounds the chunks of all regions: 1.25 GiB, which serves 8 TiB of device
	// memory in units of 4 KiB.
	mostChunks = 1 << 25
)

// Config describes a slab allocator. The zero value of a number means its default.
type Config struct {
	// Compat names the original whose placement is reproduced: "xdl" or "blaze".
	Compat string `json:"compat" doc:"the original to reproduce bit for bit: xdl or blaze (required)"`
	// RegionBytes is the size of a region; default 1 GiB. In mode "xdl" it is a multiple of
	// 64*Segments*UnitBytes, in mode "blaze" of MinClassBytes.
	RegionBytes device.Size `json:"region_bytes" doc:"size of a region (default 1GiB); xdl: a multiple of 64*segments*unit_bytes"`
	// Segments is the number of segments, xdl only; default 32.
	Segments int `json:"segments" doc:"xdl: segments that requests go round (default 32)"`
	// UnitBytes is the smallest block, xdl only; default 4 KiB.
	UnitBytes device.Size `json:"unit_bytes" doc:"xdl: smallest block; the largest is four of it (default 4KiB)"`
	// MinClassBytes is the smallest block, blaze only, a power of two; default 2.
	MinClassBytes device.Size `json:"min_class_bytes" doc:"blaze: smallest block, a power of two (default 2B)"`
	// MaxClassBytes is the largest block, blaze only, a power of two of at most
	// RegionBytes; default 256 MiB or, if the region is smaller, what fits it.
	MaxClassBytes device.Size `json:"max_class_bytes" doc:"blaze: largest block, a power of two (default 256MiB, or what fits the region)"`
}

// WithDefaults returns c with every default of its mode filled in. It fails with an error
// that names the first bad field.
func (c Config) WithDefaults() (Config, error) {
	switch c.Compat {
	case CompatXDL:
		return c.checkXDL()
	case CompatBlaze:
		return c.checkBlaze()
	case "":
		return c, fmt.Errorf("slab: compat is empty: the modern mode is not available yet, want %q or %q",
			CompatXDL, CompatBlaze)
	}
	return c, fmt.Errorf("slab: compat %q: want %q or %q", c.Compat, CompatXDL, CompatBlaze)
}

// checkXDL fills the zero fields of mode "xdl" and returns an error that names the first
// bad one.
func (c Config) checkXDL() (Config, error) {
	if c.RegionBytes == 0 {
		c.RegionBytes = defaultRegion
	}
	if c.Segments == 0 {
		c.Segments = defaultSegments
	}
	if c.UnitBytes == 0 {
		c.UnitBytes = defaultUnit
	}
	switch {
	case c.MinClassBytes != 0:
		return c, fmt.Errorf("slab: min_class_bytes %d: of no meaning with compat %q", c.MinClassBytes, CompatXDL)
	case c.MaxClassBytes != 0:
		return c, fmt.Errorf("slab: max_class_bytes %d: of no meaning with compat %q", c.MaxClassBytes, CompatXDL)
	case c.Segments < 1 || c.Segments > maxSegments:
		return c, fmt.Errorf("slab: segments %d: want 1 to %d", c.Segments, maxSegments)
	}
	over, step := bits.Mul64(chunkUnits*uint64(c.Segments), uint64(c.UnitBytes))
	switch {
	case over != 0 || step > uint64(c.RegionBytes):
		return c, fmt.Errorf("slab: unit_bytes %d: want 64*segments*unit_bytes of at most region_bytes %d",
			c.UnitBytes, c.RegionBytes)
	case uint64(c.RegionBytes)%step != 0:
		return c, fmt.Errorf("slab: region_bytes %d: want a multiple of 64*segments*unit_bytes, %d", c.RegionBytes, step)
	case c.RegionBytes/(chunkUnits*c.UnitBytes) > maxChunks:
		return c, fmt.Errorf("slab: unit_bytes %d: want at most 64*2^24 units in region_bytes %d", c.UnitBytes, c.RegionBytes)
	}
	return c, nil
}

// checkBlaze fills the zero fields of mode "blaze" and returns an error that names the
// first bad one.
func (c Config) checkBlaze() (Config, error) {
	if c.RegionBytes == 0 {
		c.RegionBytes = defaultRegion
	}
	if c.MinClassBytes == 0 {
		c.MinClassBytes = defaultMinClass
	}
	if c.MaxClassBytes == 0 {
		c.MaxClassBytes = min(defaultMaxClass, 1<<(bits.Len64(uint64(c.RegionBytes))-1))
	}
	switch {
	case c.Segments != 0:
		return c, fmt.Errorf("slab: segments %d: of no meaning with compat %q", c.Segments, CompatBlaze)
	case c.UnitBytes != 0:
		return c, fmt.Errorf("slab: unit_bytes %d: of no meaning with compat %q", c.UnitBytes, CompatBlaze)
	case !device.IsPowerOfTwo(c.MinClassBytes):
		return c, fmt.Errorf("slab: min_class_bytes %d: want a power of two", c.MinClassBytes)
	case !device.IsPowerOfTwo(c.MaxClassBytes):
		return c, fmt.Errorf("slab: max_class_bytes %d: want a power of two", c.MaxClassBytes)
	case c.MaxClassBytes < c.MinClassBytes:
		return c, fmt.Errorf("slab: max_class_bytes %d: want at least min_class_bytes %d", c.MaxClassBytes, c.MinClassBytes)
	case c.MaxClassBytes > c.RegionBytes:
		return c, fmt.Errorf("slab: max_class_bytes %d: want at most region_bytes %d", c.MaxClassBytes, c.RegionBytes)
	case c.RegionBytes%c.MinClassBytes != 0:
		return c, fmt.Errorf("slab: region_bytes %d: want a multiple of min_class_bytes %d", c.RegionBytes, c.MinClassBytes)
	}
	return c, nil
}
