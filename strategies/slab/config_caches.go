package slab

import (
	"fmt"
	"math/bits"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/growth"
)

// The values of Config fields of the modern mode that are zero.
const (
	defaultQuantum  = 256
	defaultSlab     = 64 * device.KiB
	defaultWaste    = 8
	defaultInterval = 4096
	defaultAlign    = 2 * device.MiB
)

// The values of Config.Assign.
const (
	AssignStream     = "stream"      // a stream's requests go to one segment
	AssignRoundRobin = "round-robin" // segments take turns
)

// The values of Config.Steal.
const (
	StealOn  = "on"  // a segment uses what others have before a region is asked for
	StealOff = "off" // it never does
)

// Bounds of fields.
const (
	mostWaste    = 1 << 12
	mostRounds   = 1 << 12
	mostDepot    = 1 << 16
	mostEmpty    = 1 << 20
	mostInterval = 1 << 30
	mostSlices   = 1 << 24 // of a region, 4 bytes of host memory each and two bits
)

// withCachesDefaults fills the zero fields of the modern mode.
func (c Config) withCachesDefaults() Config {
	set(&c.Quantum, defaultQuantum)
	set(&c.SlabBytes, defaultSlab)
	set(&c.MaxClassBytes, c.SlabBytes)
	set(&c.Waste, defaultWaste)
	set(&c.Segments, 1)
	set(&c.RegionBytes, c.SlabBytes)
	set(&c.AlignBytes, max(defaultAlign, c.Quantum))
	set(&c.Selection, Fullest)
	set(&c.Assign, AssignStream)
	set(&c.Steal, StealOn)
	set(&c.Growth, growth.Proportional)
	if len(c.ClassSizes) == 0 {
		set(&c.Classes, ClassesK4)
	}
	if c.MagazineRounds != 0 {
		set(&c.Interval, defaultInterval)
	}
	if c.Growth == growth.Whole {
		set(&c.Limit, growth.WholeLimit)
	}
	return c
}

// set gives a zero field its default.
func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// checkCaches fills the zero fields of the modern mode and returns an error that names the
// first bad one.
func (c Config) checkCaches() (Config, error) {
	c = c.withCachesDefaults()
	switch {
	case c.UnitBytes != 0:
		return c, fmt.Errorf("slab: unit_bytes %d: of no meaning without compat %q", uint64(c.UnitBytes), CompatXDL)
	case c.MinClassBytes != 0:
		return c, fmt.Errorf("slab: min_class_bytes %d: of no meaning without compat %q", uint64(c.MinClassBytes), CompatBlaze)
	case !device.IsPowerOfTwo(c.Quantum) || c.Quantum > device.GiB:
		return c, fmt.Errorf("slab: quantum %d: want a power of two of at most %v", uint64(c.Quantum), device.GiB)
	case !device.IsPowerOfTwo(c.SlabBytes) || c.SlabBytes < c.Quantum || c.SlabBytes/c.Quantum > mostSlots:
		return c, fmt.Errorf("slab: slab_bytes %d: want a power of two of 1 to %d quanta of %d", uint64(c.SlabBytes), mostSlots, uint64(c.Quantum))
	case !device.IsPowerOfTwo(c.AlignBytes) || c.AlignBytes < c.Quantum || c.AlignBytes > maxRequest:
		return c, fmt.Errorf("slab: align_bytes %d: want a power of two from %d to %d", uint64(c.AlignBytes), uint64(c.Quantum), uint64(maxRequest))
	}
	if err := c.checkClasses(); err != nil {
		return c, err
	}
	if err := c.checkCounts(); err != nil {
		return c, err
	}
	return c, c.checkGrowth()
}

// checkClasses judges the fields about classes.
func (c Config) checkClasses() error {
	switch {
	case c.MaxClassBytes > c.SlabBytes || c.MaxClassBytes < c.Quantum:
		return fmt.Errorf("slab: max_class_bytes %d: want %d to slab_bytes %d", uint64(c.MaxClassBytes), uint64(c.Quantum), uint64(c.SlabBytes))
	case c.Waste < 1 || c.Waste > mostWaste:
		return fmt.Errorf("slab: waste %d: want 1 to %d", c.Waste, mostWaste)
	case len(c.ClassSizes) > 0 && c.Classes != "":
		return fmt.Errorf("slab: classes %q: of no meaning with class_sizes", c.Classes)
	}
	for _, size := range c.ClassSizes {
		if size == 0 || size > c.MaxClassBytes {
			return fmt.Errorf("slab: class_sizes: %d: want 1 to max_class_bytes %d", uint64(size), uint64(c.MaxClassBytes))
		}
		if len(Legal([]device.Size{size}, c.SlabBytes, c.Quantum, device.Size(c.Waste))) == 0 {
			return fmt.Errorf("slab: class_sizes: %d: leaves more than one part in %d of a slab of %d", uint64(size), c.Waste, uint64(c.SlabBytes))
		}
	}
	if _, err := Family(c.Classes, c.Quantum, c.Quantum); err != nil && len(c.ClassSizes) == 0 {
		return err
	}
	if n := len(c.sizes()); n == 0 || n > maxClasses {
		return fmt.Errorf("slab: classes: %d of them are legal: want 1 to %d", n, maxClasses)
	}
	return nil
}

// checkCounts judges the fields about slabs, magazines and segments.
func (c Config) checkCounts() error {
	for _, f := range [...]struct {
		name        string
		value, most int
	}{
		{"segments", c.Segments, mostSegments}, {"empty_slabs", c.EmptySlabs, mostEmpty},
		{"magazine_rounds", c.MagazineRounds, mostRounds}, {"depot", c.Depot, mostDepot}, {"interval", c.Interval, mostInterval},
	} {
		if f.value < 0 || f.value > f.most {
			return fmt.Errorf("slab: %s %d: want 0 to %d", f.name, f.value, f.most)
		}
	}
	switch {
	case c.MagazineRounds == 0 && c.Depot != 0:
		return fmt.Errorf("slab: depot %d: of no meaning without magazine_rounds", c.Depot)
	case c.MagazineRounds == 0 && c.Interval != 0:
		return fmt.Errorf("slab: interval %d: of no meaning without magazine_rounds", c.Interval)
	case c.Assign != AssignStream && c.Assign != AssignRoundRobin:
		return fmt.Errorf("slab: assign %q: want %q or %q", c.Assign, AssignStream, AssignRoundRobin)
	case c.Steal != StealOn && c.Steal != StealOff:
		return fmt.Errorf("slab: steal %q: want %q or %q", c.Steal, StealOn, StealOff)
	}
	return c.cells().check() // which knows the selections
}

// checkGrowth judges the fields about regions.
func (c Config) checkGrowth() error {
	if err := c.policy().Check("slab"); err != nil {
		return err
	}
	if c.RegionBytes>>c.slabLog() > mostSlices || c.Growth == growth.Whole && c.Limit>>c.slabLog() > mostSlices {
		return fmt.Errorf("slab: region_bytes %d, limit %d: want at most %d slabs of %d in a region",
			uint64(c.RegionBytes), uint64(c.Limit), mostSlices, uint64(c.SlabBytes))
	}
	return nil
}

// slabLog returns the log2 of a slab.
func (c Config) slabLog() int { return bits.TrailingZeros64(uint64(c.SlabBytes)) }

// policy returns the policy of the regions that are cut into slices.
func (c Config) policy() growth.Policy {
	return growth.Policy{
		Kind: c.Growth, Region: c.RegionBytes, Limit: c.Limit, Release: c.Release, Keep: c.KeepBytes, Quantum: c.SlabBytes,
	}
}

// sizes returns the sizes of the classes of the modern mode.
func (c Config) sizes() []device.Size {
	sizes := c.ClassSizes
	if len(sizes) == 0 {
		sizes, _ = Family(c.Classes, c.Quantum, c.MaxClassBytes) // checked before
	}
	return Legal(sizes, c.SlabBytes, c.Quantum, device.Size(c.Waste))
}

// cells returns the configuration of the cells.
func (c Config) cells() CellsConfig {
	cells := CellsConfig{
		Quantum: c.Quantum, Selection: c.Selection, EmptySlabs: c.EmptySlabs,
		Segments: c.Segments, RoundRobin: c.Assign == AssignRoundRobin, Steal: c.Steal == StealOn,
		Rounds: c.MagazineRounds, Depot: c.Depot, Interval: c.Interval,
	}
	for _, size := range c.sizes() {
		cells.Classes = append(cells.Classes, Class{Slot: size, Slab: c.SlabBytes, Align: min(c.SlabBytes, c.AlignBytes)})
	}
	return cells
}

// noneOfCaches returns an error if a field is set that has a meaning in the modern mode
// only.
func (c Config) noneOfCaches(compat string) error {
	for _, f := range [...]struct {
		name string
		set  bool
	}{
		{"quantum", c.Quantum != 0}, {"slab_bytes", c.SlabBytes != 0}, {"classes", c.Classes != ""},
		{"class_sizes", len(c.ClassSizes) != 0}, {"waste", c.Waste != 0}, {"selection", c.Selection != ""},
		{"empty_slabs", c.EmptySlabs != 0}, {"magazine_rounds", c.MagazineRounds != 0}, {"depot", c.Depot != 0},
		{"interval", c.Interval != 0}, {"assign", c.Assign != ""}, {"steal", c.Steal != ""}, {"growth", c.Growth != ""},
		{"limit", c.Limit != 0}, {"release", c.Release}, {"keep_bytes", c.KeepBytes != 0}, {"align_bytes", c.AlignBytes != 0},
	} {
		if f.set {
			return fmt.Errorf("slab: %s: of no meaning with compat %q", f.name, compat)
		}
	}
	return nil
}

// ForCapacity implements [alloc.CapacityConfig]: an allocator with a limit of its own gets
// the capacity for one.
func (c Config) ForCapacity(n device.Size) Config {
	if c.Limit != 0 || c.Growth == growth.Whole {
		c.Limit = n
	}
	return c
}

// Preallocates implements [alloc.PreallocatingConfig].
func (c Config) Preallocates() bool { return c.Growth == growth.Whole }
