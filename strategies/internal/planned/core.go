package planned

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/regions"
	"github.com/vramyard/vramyard/kit/tiles"
)

// Quantum is the unit of sizes and offsets: PyTorch's smallest block.
const Quantum device.Size = 512

// MostAlign is the largest alignment of a place in the arena: the page size of drivers.
const MostAlign = 2 * device.MiB

// keepAll is more than a strategy holds: empty regions are released only if memory runs out.
const keepAll device.Size = 1 << 60

// DefaultRegion is the default of Config.RegionBytes: PyTorch's smallest segment and the page size
// of drivers.
const DefaultRegion = 2 * device.MiB

// Config is the configuration of a core.
type Config struct {
	RegionBytes device.Size // unit of the sizes of regions
	Limit       device.Size // limit of the bytes held from the device; 0 for none
}

// Check returns an error that names the strategy and the first bad field.
func (c Config) Check(strategy string) error { return c.policy().Check(strategy) }

func (c Config) policy() regions.Policy {
	return regions.Policy{
		Kind: regions.Request, Region: c.RegionBytes, Limit: c.Limit, Release: true, Keep: keepAll, Quantum: Quantum,
	}
}

// Promises returns the promises of a strategy over a core.
func (c Config) Promises() promise.Set {
	anywhere := promise.ServesAnywhere(Quantum)
	return promise.Set{
		Quantum:         Quantum,
		Honours:         func(alloc.Request) bool { return true },
		MaxGrant:        func(r alloc.Request) device.Size { return device.AlignUp(r.Size, Quantum) },
		MustMerge:       promise.MergeAll,
		ExactNeighbours: true,
		ClassOf:         func(alloc.Chunk) int32 { return alloc.NoClass },
		SearchOrder: func(a, b alloc.Chunk) int {
			if a.Owner != b.Owner {
				return int(a.Owner) - int(b.Owner)
			}
			return promise.BySizeThenAddress(a, b)
		},
		Serves: func(f alloc.Chunk, r alloc.Request) bool {
			return f.Owner == OwnerFallback && anywhere(f, r)
		},
		Boundaries: promise.PowersOfTwo(Quantum, c.RegionBytes),
	}
}

// Core serves requests from the arena and from the fallback. Use [Core.Init].
type Core struct {
	tiles.Core
	free freeIndex
}

// Init prepares the core of a strategy over src, and returns the view that the strategy embeds.
//
// Precondition: the configuration passes Check.
func (c *Core) Init(strategy string, src device.Source, cfg Config) tiles.View {
	c.free = freeIndex{core: &c.Core, loose: index.NewSizeMap(Quantum), fixed: index.NewSizeMap(Quantum),
		places: tiles.Places{Core: &c.Core},
	}
	return c.Core.Init(strategy, src, cfg.policy(), cfg.Promises(), &c.free)
}

// Open reserves an arena of n bytes unless there is one, and reports whether there is. A refusal is
// no failure: blocks then go to the fallback.
//
// Precondition: the alignment is a power of two up to MostAlign.
func (c *Core) Open(n, align device.Size) bool {
	if x := &c.free; n > 0 && !c.arena() {
		if h := c.Prepare(n, align); h != tiles.None {
			r := &c.Rows[h]
			x.base, x.end, x.first = r.Addr, r.End(), h
			x.Insert(h)
		}
	}
	return c.free.end != 0
}

// arena reports whether there is an arena. Trim, and a request that finds no memory, may have
// released it; it is forgotten then, because another region may get its addresses.
func (c *Core) arena() bool {
	x := &c.free
	if x.end != 0 && x.busy == 0 && x.places.Len() == 0 {
		x.base, x.end = 0, 0
	}
	return x.end != 0
}

// Discard releases an arena without live blocks, and reports whether no arena is left. A region
// that the device does not release joins the fallback.
func (c *Core) Discard() bool {
	x := &c.free
	if !c.arena() {
		return true
	}
	if x.busy > 0 {
		return false
	}
	h := x.places.Entry(x.places.Nth(0)).Value // one free chunk, because free neighbors are merged
	x.Remove(h)
	x.base, x.end = 0, 0
	c.Occupy(h)
	if !c.ReleaseDirect(h) {
		x.Insert(h)
	}
	return true
}

// Spot returns the address of an offset of the arena, and whether a block of n bytes for a request
// may lie there: there is an arena that contains it, and the alignment is right.
func (c *Core) Spot(r *alloc.Request, offset, n device.Size) (device.Addr, bool) {
	x := &c.free
	if size := x.end.Sub(x.base); !c.arena() || offset > size || n > size-offset || r.Align > MostAlign {
		return 0, false
	}
	at := x.base.Add(offset)
	return at, offset&(max(r.Align, 1)-1) == 0 && tiles.Pad(at, r.Align) == 0
}

// Place grants a block for a request at an offset of the arena, and reports whether it could: the
// place is a spot, and free. O(log free chunks).
func (c *Core) Place(r *alloc.Request, offset device.Size) (alloc.Block, bool) {
	x, n := &c.free, c.Round(r.Size)
	at, ok := c.Spot(r, offset, n)
	if !ok {
		return alloc.Block{}, false
	}
	h := x.places.Containing(at, n)
	if h == tiles.None {
		return alloc.Block{}, false
	}
	x.Remove(h)
	x.busy++
	return c.Cut(h, at, n, r), true
}

// Fallback grants a block for a request outside of the arena.
func (c *Core) Fallback(r *alloc.Request) (alloc.Block, error) {
	n := c.Round(r.Size)
	h := c.free.take(n, r.Align)
	if h == tiles.None {
		var err error
		if h, err = c.Grow(r, n); err != nil {
			return alloc.Block{}, err
		}
		c.arena() // Grow may have released it
	}
	at := c.Rows[h].Addr
	return c.Cut(h, at.Add(tiles.Pad(at, r.Align)), n, r), nil
}

// Free frees the block at an address.
func (c *Core) Free(at device.Addr) error {
	prev, h, next, err := c.Release(at)
	if err != nil {
		return err
	}
	x := &c.free
	if x.within(at) {
		x.busy--
	}
	if next != tiles.None {
		x.Remove(next)
	}
	if prev != tiles.None {
		x.Remove(prev)
	}
	h = c.Join(prev, h, next)
	if c.Fills(h) && c.Vacate(h) {
		return nil
	}
	x.Insert(h)
	return nil
}
