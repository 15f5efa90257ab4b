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
	defaultRegion   = device.GiB
	defaultSegments = 32
	defaultUnit     = 4 * device.KiB
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

// Config describes the allocator. The zero value of a field means its default.
type Config struct {
	// Compat names the original; "xdl" is the default and the only value.
	Compat string `json:"compat" doc:"the original to reproduce bit for bit"`
	// RegionBytes is the size of a region, a multiple of 64*Segments*UnitBytes; default 1 GiB.
	RegionBytes device.Size `json:"region_bytes" doc:"size of a region, a multiple of 64*segments*unit_bytes" grid:"8MiB,64MiB,1GiB"`
	// Segments is the number of segments, which serve requests in turn. Default 32.
	Segments int `json:"segments" doc:"number of segments, which share no chunk and serve requests in turn" grid:"1,4,32"`
	// UnitBytes is the size of a unit; a block has one to four units. Default 4 KiB.
	UnitBytes device.Size `json:"unit_bytes" doc:"bytes of a unit; a block has one to four units"`
	// Locks makes the allocator safe for concurrent use, with the locks of the original: one for
	// each segment.
	Locks bool `json:"locks,omitzero" doc:"the original's locks, one for each segment: safe for many threads"`
}

// WithDefaults returns c with every default filled in. It fails with an error that names the
// first bad field.
func (c Config) WithDefaults() (Config, error) {
	c.Compat = cmp.Or(c.Compat, compat)
	c.RegionBytes = cmp.Or(c.RegionBytes, defaultRegion)
	c.Segments = cmp.Or(c.Segments, defaultSegments)
	c.UnitBytes = cmp.Or(c.UnitBytes, defaultUnit)
	switch {
	case c.Compat != compat:
		return c, fmt.Errorf("slab: compat %q: want %q", c.Compat, compat)
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

func (c Config) WithLocks() Config {
	c.Locks = true
	return c
}

// Unbound implements [setting.UnboundConfig]: the allocator has no limit.
func (Config) Unbound() bool { return true }

func (c Config) Promises() promise.Set {
	p := promise.Set{
		Quantum:         c.UnitBytes,
		Honours:         func(r alloc.Request) bool { return r.Align <= c.UnitBytes&-c.UnitBytes },
		MaxGrant:        func(r alloc.Request) device.Size { return (r.Size + c.UnitBytes - 1) / c.UnitBytes * c.UnitBytes },
		MustMerge:       promise.MergeWithin(chunkUnits * c.UnitBytes),
		ExactNeighbours: true,
		ExactPlacer:     true,
	}
	for n := range device.Size(maxUnits + 1) {
		p.Boundaries = append(p.Boundaries, n*c.UnitBytes)
	}
	if c.Segments == 1 { // with more, a free run may belong to a segment whose turn it was not
		p.Serves = func(free alloc.Chunk, r alloc.Request) bool { return free.Size >= p.MaxGrant(r) }
	}
	return p
}
