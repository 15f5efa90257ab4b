package slab

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/regions"
	"github.com/vramyard/vramyard/strategies/internal/cells"
)

// The values of Config fields that are zero.
const (
	defaultQuantum = 256
	defaultSlab    = 8 * device.KiB
	defaultSlots   = 8

	defaultWholeSlab = 4096 * defaultQuantum // the largest, for a region as large as a device
	defaultMax       = 256 * device.KiB
	defaultWaste     = 8
)

// The values of Config.Assign.
const (
	AssignStream     = "stream"      // a stream's requests go to one segment
	AssignRoundRobin = "round-robin" // segments take turns
)

// The values of Config.Steal.
const (
	StealOn  = "on"  // a segment uses free slots of others before it reserves a region
	StealOff = "off" // it reserves a region instead
)

// The values of Config.Selection: the slab that serves a request first.
const (
	Fullest  = cells.Fullest  // the one with the fewest free slots, so that the others drain
	Emptiest = cells.Emptiest // the one with the most
	Lifo     = cells.Lifo     // most recently available slab first
	Fifo     = cells.Fifo     // least recently available slab first
	Lowest   = cells.Lowest   // the one at the lowest address
)

// The values of Config.Classes.
const (
	ClassesPow2 = cells.ClassesPow2 // powers of two: up to half of a slot is lost
	ClassesK2   = cells.ClassesK2   // two classes for each doubling: up to a third
	ClassesK4   = cells.ClassesK4   // four: up to a fifth
	ClassesK8   = cells.ClassesK8   // eight: up to a ninth
)

// Config describes a slab allocator. The zero value of a field means its default.
type Config struct {
	// RegionBytes is the size of the smallest region, a multiple of SlabBytes.
	RegionBytes device.Size `json:"region_bytes" doc:"size of the smallest region" grid:"64KiB,1MiB,16MiB"`
	// Segments is the number of segments; default 1.
	Segments int `json:"segments" doc:"number of segments, which share no slab" grid:"1,4,32"`
	// MaxClassBytes is the largest class of a family.
	MaxClassBytes device.Size `json:"max_class_bytes" doc:"largest class; larger requests get a region each" grid:"16KiB,64KiB,256KiB,1MiB"`
	// Quantum is the unit of class sizes and of blocks beside them, a power of two.
	Quantum device.Size `json:"quantum" doc:"unit of class sizes and alignment of every block, a power of two" grid:"256,512"`
	// SlabBytes is the size of the smallest slabs, a power of two of at most 4096 quanta.
	SlabBytes device.Size `json:"slab_bytes" doc:"size of the smallest slabs, a power of two of at most 4096 quanta" grid:"8KiB,64KiB,1MiB"`
	// SlabSlots is the minimum number of slots of a slab: larger classes have slabs 4, 16, ...
	// times as large, from regions of their own.
	SlabSlots int `json:"slab_slots" doc:"minimum slots of a slab; slabs of large classes are 4, 16, ... times as large" grid:"1,4,8,32"`
	// Classes is the family of class sizes.
	Classes string `json:"classes" doc:"class sizes: pow2, or k2, k4, k8 with 2, 4 or 8 classes to a doubling" grid:"pow2,k2,k4,k8"`
	// ClassSizes are class sizes instead of a family, for instance from Learn.
	ClassSizes []device.Size `json:"class_sizes" doc:"list of class sizes instead of a family, such as vramyard trace classes prints"`
	// Waste is the reciprocal of the largest part of a slab that may be unused behind its last slot.
	Waste int `json:"waste" doc:"a slab wastes at most one part in this many behind its last slot" grid:"4,8,16,64"`
	// LargeWaste is zero if the region of a request above the largest class is returned when it is
	// freed. Otherwise it is kept for a request that leaves at most one part in so many unused.
	LargeWaste int `json:"large_waste" doc:"regions of freed large blocks are kept for requests that leave at most one part in this many unused, while no more is held than was needed at once; 0 to return them at once" grid:"0,8,16,32"`
	// Selection is the slab that serves a request first, such as Fullest.
	Selection string `json:"selection" doc:"slab that serves first: fullest, emptiest, lifo, fifo or lowest (address)" grid:"fullest,emptiest,lifo,fifo,lowest"`
	// EmptySlabs is the number of empty slabs that a class keeps in each segment.
	EmptySlabs int `json:"empty_slabs" doc:"empty slabs that each class of a segment keeps" grid:"0,1,4"`
	// MagazineRounds is the number of slots in a magazine.
	MagazineRounds int `json:"magazine_rounds" doc:"slots in a magazine, a stack of free slots in front of the slabs; 0 for none" grid:"0,8,64"`
	// Depot is the number of full magazines that each class keeps beside those in use.
	Depot int `json:"depot" doc:"full magazines that each class keeps in its depot" grid:"0,4,16"`
	// Assign selects the segment of a request: AssignStream or AssignRoundRobin.
	Assign string `json:"assign" doc:"segment of a request: by stream, or round-robin" grid:"stream,round-robin"`
	// Steal determines whether a segment uses free slots of others before it reserves a region.
	Steal string `json:"steal" doc:"on: a segment uses free slots of other segments before it reserves a region; or off" grid:"on,off"`
	// Growth is the kind of the growth of regions.
	Growth string `json:"growth" doc:"size of new regions: fixed, doubling, request, proportional or whole" grid:"fixed,doubling,request,proportional"`
	// Limit bounds the bytes held from the device; 0 for no bound.
	Limit device.Size `json:"limit" doc:"limit on the bytes held from the device; 0 for none"`
	// Release returns regions without a slab to the device at once.
	Release bool `json:"release" doc:"return regions without a slab to the device at once" grid:"false,true"`
	// KeepBytes is the number of bytes in such regions that are kept with Release.
	KeepBytes device.Size `json:"keep_bytes" doc:"with release: bytes of such regions that are kept" grid:"0,16MiB"`
}

// Bounds of fields.
const (
	mostWaste  = 1 << 12
	mostRounds = 1 << 12
	mostDepot  = 1 << 16
	mostEmpty  = 1 << 20
	mostSlices = 1 << 24 // of a region, 4 bytes of host memory each and two bits
	mostClass  = device.TiB
)

// gradeFactor is the ratio of the slab sizes of consecutive grades. Four keeps the number of grades
// low, each of which may have slices that no other can use, and bounds the slots of a slab to four
// times the requested number.
const gradeFactor = 4

func (c Config) filled() Config {
	c.Quantum = cmp.Or(c.Quantum, defaultQuantum)
	slab := defaultSlab
	if c.Growth == regions.Whole { // one region, and so slabs of one size
		slab = defaultWholeSlab
	}
	c.SlabBytes = cmp.Or(c.SlabBytes, max(min(slab, cells.MostSlots*c.Quantum), c.Quantum))
	c.SlabSlots = cmp.Or(c.SlabSlots, defaultSlots)
	c.Waste = cmp.Or(c.Waste, defaultWaste)
	c.Segments = cmp.Or(c.Segments, 1)
	c.RegionBytes = cmp.Or(c.RegionBytes, c.SlabBytes)
	c.Selection = cmp.Or(c.Selection, Fullest)
	c.Assign = cmp.Or(c.Assign, AssignStream)
	c.Steal = cmp.Or(c.Steal, StealOn)
	c.Growth = cmp.Or(c.Growth, regions.Proportional)
	if len(c.ClassSizes) == 0 {
		c.Classes = cmp.Or(c.Classes, ClassesK4)
	}
	if c.Growth == regions.Whole {
		c.Limit = cmp.Or(c.Limit, max(min(regions.WholeLimit/c.SlabBytes, mostSlices)*c.SlabBytes, c.SlabBytes))
		c.MaxClassBytes = cmp.Or(c.MaxClassBytes, max(c.SlabBytes/device.Size(max(c.SlabSlots, 1)), c.Quantum))
	}
	c.MaxClassBytes = cmp.Or(c.MaxClassBytes, max(defaultMax, c.SlabBytes/device.Size(max(c.SlabSlots, 1)), c.Quantum))
	return c
}

// WithDefaults returns c with every default filled in. It fails with an error that names the
// first bad field.
func (c Config) WithDefaults() (Config, error) {
	c = c.filled()
	switch {
	case !device.IsPowerOfTwo(c.Quantum) || c.Quantum > device.GiB:
		return c, fmt.Errorf("slab: quantum %d: want a power of two of at most %v", uint64(c.Quantum), device.GiB)
	case !device.IsPowerOfTwo(c.SlabBytes) || c.SlabBytes < c.Quantum || c.SlabBytes/c.Quantum > cells.MostSlots:
		return c, fmt.Errorf("slab: slab_bytes %d: want a power of two of 1 to %d quanta of %d", uint64(c.SlabBytes),
			cells.MostSlots, uint64(c.Quantum))
	}
	if err := c.checkClasses(); err != nil {
		return c, err
	}
	if err := c.checkCounts(); err != nil {
		return c, err
	}
	return c, c.checkGrowth()
}

func (c Config) checkClasses() error {
	most := min(mostClass, cells.MostQuanta*c.Quantum)
	switch {
	case c.SlabSlots < 1 || c.SlabSlots > cells.MostSlots/gradeFactor:
		return fmt.Errorf("slab: slab_slots %d: want 1 to %d", c.SlabSlots, cells.MostSlots/gradeFactor)
	case c.MaxClassBytes > most || c.MaxClassBytes < c.Quantum:
		return fmt.Errorf("slab: max_class_bytes %d: want %d to %d", uint64(c.MaxClassBytes), uint64(c.Quantum), uint64(most))
	case c.Waste < 1 || c.Waste > mostWaste:
		return fmt.Errorf("slab: waste %d: want 1 to %d", c.Waste, mostWaste)
	case len(c.ClassSizes) > 0 && c.Classes != "":
		return fmt.Errorf("slab: classes %q: not used with class_sizes", c.Classes)
	}
	for _, size := range c.ClassSizes {
		if size == 0 || size > device.AlignUp(c.MaxClassBytes, c.Quantum) {
			return fmt.Errorf("slab: class_sizes: %d: want 1 to max_class_bytes %d", uint64(size), uint64(c.MaxClassBytes))
		}
		if _, ok := c.classAt(size); !ok {
			return fmt.Errorf("slab: class_sizes: %d: leaves more than one part in %d of a slab of %d",
				uint64(size), c.Waste, uint64(c.slabOf(size)))
		}
	}
	if _, err := cells.Family(c.Classes, c.Quantum, c.Quantum); err != nil && len(c.ClassSizes) == 0 {
		return err
	}
	all := c.classes()
	switch n := len(all); {
	case n == 0 || n > cells.MostClasses:
		return fmt.Errorf("slab: classes: %d of them are legal: want 1 to %d", n, cells.MostClasses)
	case c.Growth == regions.Whole && all[0].Slab != all[n-1].Slab:
		return fmt.Errorf("slab: max_class_bytes %d: slabs of several sizes do not share one region, want at most %d with "+
			"growth %q",
			uint64(c.MaxClassBytes), uint64(c.SlabBytes)/uint64(c.SlabSlots), regions.Whole)
	}
	return nil
}

func (c Config) checkCounts() error {
	for _, f := range [...]struct {
		name        string
		value, most int
	}{
		{"segments", c.Segments, cells.MostSegments}, {"empty_slabs", c.EmptySlabs, mostEmpty},
		{"magazine_rounds", c.MagazineRounds, mostRounds}, {"depot", c.Depot, mostDepot},
	} {
		if f.value < 0 || f.value > f.most {
			return fmt.Errorf("slab: %s %d: want 0 to %d", f.name, f.value, f.most)
		}
	}
	switch {
	case c.LargeWaste != 0 && (c.LargeWaste < 2 || c.LargeWaste > mostWaste):
		return fmt.Errorf("slab: large_waste %d: want 0, or 2 to %d", c.LargeWaste, mostWaste)
	case c.MagazineRounds == 0 && c.Depot != 0:
		return fmt.Errorf("slab: depot %d: needs magazine_rounds", c.Depot)
	case c.Assign != AssignStream && c.Assign != AssignRoundRobin:
		return fmt.Errorf("slab: assign %q: want %q or %q", c.Assign, AssignStream, AssignRoundRobin)
	case c.Steal != StealOn && c.Steal != StealOff:
		return fmt.Errorf("slab: steal %q: want %q or %q", c.Steal, StealOn, StealOff)
	}
	return c.cells().Check() // this also checks the selection
}

func (c Config) checkGrowth() error {
	p := c.policy(c.SlabBytes)
	p.Region = c.RegionBytes
	if err := p.Check("slab"); err != nil {
		return err
	}
	if c.RegionBytes/c.SlabBytes > mostSlices || c.Growth == regions.Whole && c.Limit/c.SlabBytes > mostSlices {
		return fmt.Errorf("slab: region_bytes %d, limit %d: want at most %d slabs of %d in a region",
			uint64(c.RegionBytes), uint64(c.Limit), mostSlices, uint64(c.SlabBytes))
	}
	return nil
}

// align returns the alignment of regions, which is the largest that a request may have.
func (c Config) align() device.Size { return max(2*device.MiB, c.Quantum) }

// policy returns the policy of the regions of slabs of a size.
func (c Config) policy(slab device.Size) regions.Policy {
	return regions.Policy{
		Kind: c.Growth, Region: device.AlignUp(c.RegionBytes, slab), Limit: c.Limit, Release: c.Release, Keep: c.KeepBytes,
		Quantum: slab,
	}
}

// slabOf returns the size of the smallest slabs with at least SlabSlots slots of a class.
func (c Config) slabOf(size device.Size) device.Size {
	slab := c.SlabBytes
	for slab/device.AlignUp(size, c.Quantum) < device.Size(c.SlabSlots) {
		slab *= gradeFactor
	}
	return slab
}

// ClassOf returns the smallest legal class for a size, if there is one: whole quanta, at most
// MaxClassBytes rounded up, and leaving no more of a slab than Waste says.
//
// Precondition: defaults are filled in.
func (c Config) ClassOf(size device.Size) (k cells.Class, ok bool) {
	most := device.AlignUp(c.MaxClassBytes, c.Quantum)
	for size = max(size, 1); size <= most; {
		if k, ok = c.classAt(size); ok {
			return k, k.Slot <= most
		}
		// Every size with as many slots in a slab wastes too much. The next size has fewer slots,
		// or larger slabs.
		slab := c.slabOf(size)
		size = device.AlignDown(slab/(slab/device.AlignUp(size, c.Quantum)), c.Quantum) + c.Quantum
	}
	return cells.Class{}, false
}

// classAt returns the class for a chosen size, and whether it is legal: the size in whole quanta
// or, if that leaves too much of a slab, a larger one with as many slots.
func (c Config) classAt(size device.Size) (k cells.Class, legal bool) {
	slab := c.slabOf(size)
	slots := Legal([]device.Size{size}, slab, c.Quantum, device.Size(c.Waste))
	if len(slots) == 0 {
		return cells.Class{}, false
	}
	return cells.Class{Slot: slots[0], Slab: slab, Align: min(slab, c.align())}, true
}

func (c Config) classes() (all []cells.Class) {
	sizes := slices.Clone(c.ClassSizes)
	if len(sizes) == 0 {
		sizes, _ = cells.Family(c.Classes, c.Quantum, c.MaxClassBytes) // checked before
	}
	slices.Sort(sizes)
	for _, size := range sizes {
		if k, ok := c.classAt(size); ok && (len(all) == 0 || k.Slot > all[len(all)-1].Slot) {
			all = append(all, k)
		}
	}
	return all
}

func (c Config) cells() cells.Config {
	return cells.Config{
		Quantum: c.Quantum, Classes: c.classes(), Selection: c.Selection, EmptySlabs: c.EmptySlabs,
		Segments: c.Segments, RoundRobin: c.Assign == AssignRoundRobin,
		Steal: c.Steal == StealOn, Rounds: c.MagazineRounds, Depot: c.Depot,
	}
}

// ForCapacity implements [setting.CapacityConfig]: an allocator with a limit of its own gets
// the capacity for one.
func (c Config) ForCapacity(n device.Size) Config {
	if c.Limit != 0 || c.Growth == regions.Whole {
		c.Limit = n
	}
	return c
}

func (c Config) Preallocates() bool { return c.Growth == regions.Whole }

// Unbound implements [setting.UnboundConfig]: the limit only decides which requests fail, unless
// the whole of it is reserved at once.
func (c Config) Unbound() bool { return !c.Preallocates() }
