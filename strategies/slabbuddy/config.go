package slabbuddy

import (
	"cmp"
	"fmt"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/regions"
	"github.com/vramyard/vramyard/strategies/internal/blocks"
	"github.com/vramyard/vramyard/strategies/internal/cells"
)

// The values of Config fields that are zero; the comment of the package has the reasons.
const (
	defaultRegion    = 16 * device.KiB
	defaultBlock     = 512
	defaultSlabMax   = 32 * device.KiB
	defaultSlabSlots = 8
	defaultSlabWaste = 8
	defaultDirect    = device.MiB
)

// Bounds of fields.
const (
	mostSlabSlots = 1 << 12
	mostWaste     = 1 << 12
	mostEmpty     = 1 << 20
	mostRounds    = 1 << 12
	mostDepot     = 1 << 16
	mostSlabMax   = 16 * device.MiB
)

const (
	// mostQuantum is the unit of slot sizes, unless blocks are smaller: the size of a GPU's memory
	// transaction, to which every driver aligns.
	mostQuantum = 256
)

// Config describes a slab-buddy allocator. The zero value of a field means its default.
type Config struct {
	// RegionBytes is the size of the smallest region, a multiple of BlockBytes.
	RegionBytes device.Size `json:"region_bytes" doc:"smallest region" grid:"16KiB,256KiB,2MiB,20MiB"`
	// BlockBytes is the smallest block of the buddy, a power of two.
	BlockBytes device.Size `json:"block_bytes" doc:"smallest buddy block, a power of two" grid:"256,512,2KiB"`

	// SlabMaxBytes is the largest request that is served by a slot of a slab.
	SlabMaxBytes device.Size `json:"slab_max_bytes" doc:"largest request that goes to slabs" grid:"512,2KiB,16KiB,128KiB,1MiB"`
	// Classes is the family of the sizes of slots.
	Classes string `json:"classes" doc:"sizes of slots: pow2, or k2, k4, k8 with 2, 4 or 8 to a doubling" grid:"pow2,k2,k4,k8"`
	// SlabSlots is the minimum number of slots of a slab.
	SlabSlots int `json:"slab_slots" doc:"minimum slots of a slab, which is the smallest buddy block with room for them" grid:"2,4,8,16,64"`
	// SlabWaste is the reciprocal of the largest part of a slab that may be left after its last slot.
	SlabWaste int `json:"slab_waste" doc:"a slab wastes at most one part in this many behind its last slot" grid:"4,8,32"`
	// Selection is the slab that serves a request first.
	Selection string `json:"selection" doc:"slab that serves first: fullest, emptiest, lifo, fifo or lowest" grid:"fullest,lifo,lowest"`
	// EmptySlabs is the number of empty slabs that each class keeps.
	EmptySlabs int `json:"empty_slabs" doc:"empty slabs that each class keeps" grid:"0,1,8"`
	// MagazineRounds is the number of slots in a magazine; zero for no magazines.
	MagazineRounds int `json:"magazine_rounds" doc:"slots in a magazine, a stack of free slots in front of the slabs; 0 for none" grid:"0,8,32"`
	// Depot is the number of full magazines that each class keeps beside the ones in use.
	Depot int `json:"depot" doc:"full magazines that each class keeps in its depot" grid:"0,4"`

	// Family is the family of the sizes of buddy blocks.
	Family string `json:"family" doc:"sizes of buddy blocks: binary, weighted (2^k and 3*2^k), fibonacci, k4 or k8 (4 or 8 sizes to a doubling)" grid:"binary,weighted,fibonacci,k4,k8"`
	// Trim determines whether the tail of a block beyond the request is returned.
	Trim string `json:"trim" doc:"return the tail of a buddy block beyond the request: on or off" grid:"on,off"`
	// Placement selects the free block for a request.
	Placement string `json:"placement" doc:"buddy block taken: smallest (lowest of the smallest class that serves), newest (the one freed last), leftmost (lowest of any class), top-down (highest)" grid:"smallest,newest,leftmost,top-down"`
	// RegionChoice selects the region if several have such a block.
	RegionChoice string `json:"region_choice" doc:"region taken if several serve: oldest, fullest or lowest" grid:"oldest,fullest,lowest"`
	// Coalescing determines when free buddies are merged.
	Coalescing string `json:"coalescing" doc:"merge free buddies: eager (at once), lazy (not while a class has few free blocks), failure (when nothing else serves)" grid:"eager,lazy,failure"`

	// DirectBytes bounds the requests that the pool serves first.
	DirectBytes device.Size `json:"direct_bytes" doc:"larger requests get a region of their own" grid:"1MiB,16MiB,128MiB,1GiB,1EiB"`
	// DirectCacheBytes bounds the bytes of such regions that are kept when they are freed; by
	// default, with those in use, to a quarter above the most that were ever in use.
	DirectCacheBytes device.Size `json:"direct_cache_bytes" doc:"freed regions of single blocks that are kept for reuse, in bytes; 1 for none, 0 for up to a quarter above the most ever used" grid:"0,1,1GiB,1EiB"`
	// Growth is the kind of the growth policy, see kit/regions.
	Growth string `json:"growth" doc:"size of the next region: fixed, doubling, request, proportional or whole" grid:"fixed,doubling,request,proportional,whole"`
	// Limit bounds the bytes held; default none, or with growth "whole" 1 TiB.
	Limit device.Size `json:"limit" doc:"limit on the bytes held from the device; 0 for none"`
	// Release returns regions of the pool without a live block to the device.
	Release bool `json:"release" doc:"return regions without a live block to the device" grid:"false,true"`
	// KeepBytes is the number of bytes in such regions that are kept with Release.
	KeepBytes device.Size `json:"keep_bytes" doc:"with release: bytes of such regions that are kept"`
}

// WithDefaults returns c with every default filled in. It fails with an error that names the
// first bad field.
func (c Config) WithDefaults() (Config, error) {
	c.BlockBytes = cmp.Or(c.BlockBytes, defaultBlock)
	c.RegionBytes = cmp.Or(c.RegionBytes, max(defaultRegion, c.BlockBytes))
	if c.DirectBytes != 0 {
		c.SlabMaxBytes = cmp.Or(c.SlabMaxBytes, min(defaultSlabMax, c.DirectBytes))
	}
	c.SlabMaxBytes = cmp.Or(c.SlabMaxBytes, defaultSlabMax)
	c.Classes = cmp.Or(c.Classes, cells.ClassesK4)
	c.SlabSlots = cmp.Or(c.SlabSlots, defaultSlabSlots)
	c.SlabWaste = cmp.Or(c.SlabWaste, defaultSlabWaste)
	c.Selection = cmp.Or(c.Selection, cells.Fullest)
	c.DirectBytes = cmp.Or(c.DirectBytes, max(defaultDirect, c.SlabMaxBytes))
	c.Trim = cmp.Or(c.Trim, blocks.TrimOff)
	c.Growth = cmp.Or(c.Growth, regions.Proportional)
	// Checked before the fields that depend on it.
	if most := min(mostSlabMax, cells.MostQuanta*c.quantum()); c.SlabMaxBytes > most {
		return c, fmt.Errorf("slabbuddy: slab_max_bytes %d: want at most %v", uint64(c.SlabMaxBytes), most)
	}
	b, err := c.blocks().WithDefaults()
	if err != nil {
		return c, fmt.Errorf("slabbuddy: %w", err)
	}
	c.Family, c.Trim, c.Placement, c.RegionChoice, c.Coalescing = b.Family, b.Trim, b.Placement, b.RegionChoice,
		b.Coalescing
	c.Growth, c.Limit = b.Growth, b.Limit
	if err := c.checkSlabs(); err != nil {
		return c, err
	}
	if _, err := cells.New(nil, c.cells()); err != nil { // this also checks the selection
		return c, fmt.Errorf("slabbuddy: %w", err)
	}
	return c, nil
}

func (c Config) checkSlabs() error {
	if c.DirectBytes < c.SlabMaxBytes {
		return fmt.Errorf("slabbuddy: direct_bytes %d: want at least slab_max_bytes %d", uint64(c.DirectBytes),
			uint64(c.SlabMaxBytes))
	}
	for _, f := range [...]struct {
		name               string
		value, least, most int
	}{
		{"slab_slots", c.SlabSlots, 1, mostSlabSlots}, {"slab_waste", c.SlabWaste, 1, mostWaste},
		{"empty_slabs", c.EmptySlabs, 0, mostEmpty}, {"magazine_rounds", c.MagazineRounds, 0, mostRounds},
		{"depot", c.Depot, 0, mostDepot},
	} {
		if f.value < f.least || f.value > f.most {
			return fmt.Errorf("slabbuddy: %s %d: want %d to %d", f.name, f.value, f.least, f.most)
		}
	}
	if c.Depot != 0 && c.MagazineRounds == 0 {
		return fmt.Errorf("slabbuddy: depot %d: needs magazine_rounds", c.Depot)
	}
	if _, err := cells.Family(c.Classes, c.quantum(), c.quantum()); err != nil {
		return fmt.Errorf("slabbuddy: %w", err)
	}
	if len(c.cells().Classes) == 0 {
		return fmt.Errorf("slabbuddy: slab_max_bytes %d: no block is a slab of %d slots within slab_waste %d",
			uint64(c.SlabMaxBytes), c.SlabSlots, c.SlabWaste)
	}
	return nil
}

// quantum returns the unit of the sizes of slots.
func (c Config) quantum() device.Size { return min(mostQuantum, c.BlockBytes) }

func (c Config) blocks() blocks.Config {
	return blocks.Config{
		RegionBytes: c.RegionBytes, BlockBytes: c.BlockBytes, Family: c.Family, Trim: c.Trim, Placement: c.Placement,
		RegionChoice: c.RegionChoice, Coalescing: c.Coalescing, DirectBytes: c.DirectBytes,
		DirectCacheBytes: c.DirectCacheBytes, Growth: c.Growth, Limit: c.Limit, Release: c.Release, KeepBytes: c.KeepBytes,
	}
}

// cells returns the configuration of the slabs.
//
// Precondition: defaults are filled in.
func (c Config) cells() cells.Config {
	config := cells.Config{
		Quantum: c.quantum(), Selection: c.Selection, EmptySlabs: c.EmptySlabs, Segments: 1, Rounds: c.MagazineRounds,
		Depot: c.Depot,
	}
	largest := device.AlignUp(c.SlabMaxBytes, c.quantum())
	sizes, _ := cells.Family(c.Classes, c.quantum(), largest) // checked before
	if n := len(sizes); n == 0 || sizes[n-1] != largest {
		sizes = append(sizes, largest)
	}
	blockFor := c.blocks().BlockFor()
	for _, size := range sizes {
		if bytes, ok := c.slabFor(size, blockFor); ok {
			config.Classes = append(config.Classes, cells.Class{Slot: size, Slab: bytes, Align: c.slabAlign(bytes)})
		}
	}
	return config
}

// slabFor returns the size of the slabs for slots of a size: the smallest block of the buddy with
// enough slots and little waste behind the last, if there is one.
func (c Config) slabFor(slot device.Size, blockFor func(device.Size) (device.Size, bool)) (size device.Size, ok bool) {
	for n := slot * device.Size(c.SlabSlots); ; n = size + 1 {
		if size, ok = blockFor(n); !ok || size/slot > mostSlabSlots {
			return 0, false
		}
		if size%slot <= size/device.Size(c.SlabWaste) {
			return size, true
		}
	}
}

// slabAlign returns the alignment of slabs. A binary block starts at a multiple of its size in its
// region.
func (c Config) slabAlign(size device.Size) device.Size {
	if c.Family == blocks.Binary {
		return min(size, 2*device.MiB)
	}
	return c.BlockBytes
}

func (c Config) policy() regions.Policy { return regions.Policy{Kind: c.Growth} }

// ForCapacity implements [setting.CapacityConfig]. Only a configuration with a limit gets one.
func (c Config) ForCapacity(n device.Size) Config {
	c.Limit = c.blocks().ForCapacity(n).Limit
	return c
}

func (c Config) Preallocates() bool { return c.policy().Preallocates() }

// Unbound implements [setting.UnboundConfig]: the limit only decides which requests fail, unless
// the whole of it is reserved at once.
func (c Config) Unbound() bool { return !c.Preallocates() }
