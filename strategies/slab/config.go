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

// Config describes a slab allocator. The zero value of a field means its default, which
// depends on the mode. A field that is of no meaning in a mode must be zero there.
type Config struct {
	// Compat names the original whose placement is reproduced: "xdl" or "blaze". Without
	// it the allocator is the modern one.
	Compat string `json:"compat" doc:"the original to reproduce bit for bit, xdl or blaze; the modern allocator without"`
	// RegionBytes is the size of a region, or the smallest in the modern mode: there a
	// multiple of SlabBytes, in mode "xdl" of 64*Segments*UnitBytes, in mode "blaze" of
	// MinClassBytes.
	RegionBytes device.Size `json:"region_bytes" doc:"size of a region (xdl, blaze: default 1GiB); xdl: a multiple of 64*segments*unit_bytes" grid:"64KiB,1MiB,16MiB"`
	// Segments is the number of segments, not for "blaze"; default 1, "xdl" 32.
	Segments int `json:"segments" doc:"parts that share no slab; xdl: that requests go round (default 32)" grid:"1,4,32"`
	// UnitBytes is the smallest block, xdl only; default 4 KiB.
	UnitBytes device.Size `json:"unit_bytes" doc:"xdl: smallest block; the largest is four of it (default 4KiB)"`
	// MinClassBytes is the smallest block, blaze only, a power of two; default 2.
	MinClassBytes device.Size `json:"min_class_bytes" doc:"blaze: smallest block, a power of two (default 2B)"`
	// MaxClassBytes is the largest block, for blaze a power of two of at most RegionBytes,
	// default 256 MiB or, if the region is smaller, what fits it; in the modern mode the
	// largest class of a family. Not for "xdl".
	MaxClassBytes device.Size `json:"max_class_bytes" doc:"largest class; what is larger gets a region of its own; blaze: largest block, a power of two (default 256MiB, or what fits the region)" grid:"16KiB,64KiB,256KiB,1MiB"`

	// Quantum is the unit of class sizes and of blocks beside them, a power of two.
	Quantum device.Size `json:"quantum" doc:"unit of class sizes and alignment that every block has, a power of two" grid:"256,512"`
	// SlabBytes is the size of the smallest slabs, a power of two of at most 4096 quanta.
	SlabBytes device.Size `json:"slab_bytes" doc:"size of the smallest slabs, a power of two of at most 4096 quanta" grid:"8KiB,64KiB,1MiB"`
	// SlabSlots is how many slots a slab has at least: larger classes have slabs 4, 16, ...
	// times as large, from regions of their own.
	SlabSlots int `json:"slab_slots" doc:"slots that a slab has at least; for large classes slabs are 4, 16, ... times as large" grid:"1,4,8,32"`
	// Classes is the family of class sizes.
	Classes string `json:"classes" doc:"class sizes: pow2, or k2, k4, k8 with so many for each doubling" grid:"pow2,k2,k4,k8"`
	// ClassSizes are class sizes in place of a family, for instance those of Learn.
	ClassSizes []device.Size `json:"class_sizes" doc:"class sizes in place of a family, for instance learned ones"`
	// Waste is the part of a slab that its last slot may leave: one in so many.
	Waste int `json:"waste" doc:"most that a class may leave unused at the end of a slab: one part in so many" grid:"4,8,16,64"`
	// Selection says which slab serves first.
	Selection string `json:"selection" doc:"slab that serves first: fullest, emptiest, lifo, fifo or lowest (address)" grid:"fullest,emptiest,lifo,fifo,lowest"`
	// EmptySlabs is how many slabs without a used slot a class keeps in each segment.
	EmptySlabs int `json:"empty_slabs" doc:"slabs without a live slot that each class of a segment keeps for itself" grid:"0,1,4"`
	// MagazineRounds is the number of slots in a magazine.
	MagazineRounds int `json:"magazine_rounds" doc:"slots in a magazine, a stack of free ones before the slabs; 0 for none" grid:"0,8,64"`
	// Depot is the number of full magazines that each class keeps beside those in use.
	Depot int `json:"depot" doc:"full magazines that each class keeps in its depot" grid:"0,4,16"`
	// Interval is how many calls apart a depot gives back what it did without; default 4096
	// with magazines.
	Interval int `json:"interval" doc:"calls after which a depot gives back what it did without (default 4096 with magazines)" grid:"1024,4096,65536"`
	// Assign says which segment a request goes to.
	Assign string `json:"assign" doc:"segment of a request: stream, or round-robin" grid:"stream,round-robin"`
	// Steal says whether a segment uses what another one has before it asks for a region.
	Steal string `json:"steal" doc:"on: a segment uses free slots of others before a new region is asked for; early: before it takes another slice; off" grid:"on,early,off"`
	// Growth is the kind of the growth of regions.
	Growth string `json:"growth" doc:"size of new regions: fixed, doubling, request, proportional or whole" grid:"fixed,doubling,request,proportional"`
	// Limit is the most to hold from the device; 0 for no bound.
	Limit device.Size `json:"limit" doc:"most to hold from the device; 0 for no bound"`
	// Release gives regions without a slab back.
	Release bool `json:"release" doc:"give regions without a slab back to the device at once" grid:"false,true"`
	// KeepBytes is what is kept of such regions all the same.
	KeepBytes device.Size `json:"keep_bytes" doc:"bytes in such regions that are kept although release is set" grid:"0,16MiB"`
	// AlignBytes is the largest alignment that a request may ask for, a power of two of at
	// least Quantum; regions are asked for with it.
	AlignBytes device.Size `json:"align_bytes" doc:"largest alignment of a request, a power of two; what the device below must be able to align to"`
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
		return c.checkCaches()
	}
	return c, fmt.Errorf("slab: compat %q: want %q, %q or nothing", c.Compat, CompatXDL, CompatBlaze)
}

// checkXDL fills the zero fields of mode "xdl" and returns an error that names the first
// bad one.
func (c Config) checkXDL() (Config, error) {
	if err := c.noneOfCaches(CompatXDL); err != nil {
		return c, err
	}
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
	if err := c.noneOfCaches(CompatBlaze); err != nil {
		return c, err
	}
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
