package slabbuddy

import (
	"fmt"
	"math/bits"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/strategies/buddy"
	"github.com/vramyard/vramyard/strategies/slab"
)

// xdl fills the zero fields of mode "xdl" and judges them all.
func (c Config) xdl() (Config, error) {
	set(&c.RegionBytes, defaultXDLRegion)
	set(&c.BlockBytes, defaultXDLBlock)
	set(&c.Segments, defaultSegments)
	for _, f := range [...]struct {
		name string
		set  bool
	}{
		{"slab_max_bytes", c.SlabMaxBytes != 0}, {"classes", c.Classes != ""}, {"slab_slots", c.SlabSlots != 0},
		{"slab_waste", c.SlabWaste != 0}, {"selection", c.Selection != ""}, {"empty_slabs", c.EmptySlabs != 0},
		{"magazine_rounds", c.MagazineRounds != 0}, {"depot", c.Depot != 0}, {"family", c.Family != ""},
		{"trim", c.Trim != ""}, {"placement", c.Placement != ""}, {"region_choice", c.RegionChoice != ""},
		{"coalescing", c.Coalescing != ""}, {"direct_bytes", c.DirectBytes != 0},
		{"direct_cache_bytes", c.DirectCacheBytes != 0}, {"growth", c.Growth != ""}, {"limit", c.Limit != 0},
		{"release", c.Release}, {"keep_bytes", c.KeepBytes != 0},
	} {
		if f.set {
			return c, fmt.Errorf("slabbuddy: %s: of no meaning with compat %q", f.name, CompatXDL)
		}
	}
	switch {
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

// slab returns the configuration of the slab part of mode "xdl".
func (c Config) slab() slab.Config {
	return slab.Config{
		Compat: slab.CompatXDL, RegionBytes: c.RegionBytes, Segments: c.Segments, UnitBytes: c.BlockBytes / unitsPerBlock,
	}
}

// buddy returns the configuration of the buddy part of mode "xdl".
func (c Config) buddy() buddy.Config {
	return buddy.Config{Compat: buddy.CompatXDL, RegionBytes: c.RegionBytes, BlockBytes: c.BlockBytes}
}
