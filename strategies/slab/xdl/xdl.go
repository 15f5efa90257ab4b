package xdl

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/regions"
)

// Allocator is the slab allocator of X-DeepLearning. Use [New].
type Allocator struct {
	front.View
	front  front.Front
	cfg    Config
	slice  device.Size // bytes of a region that belong to one segment
	chunks int         // chunks in a slice
	align  device.Size // alignment asked for regions

	// counter counts requests. It has the original's 32 bits with a sign, see turn.
	counter int32
	regions regions.Set   // by address; a label is the number in the slices below
	bases   []device.Addr // starts of the regions, oldest first
	first   []int32       // per region and segment the slice's first chunk; none if not attached
	lines   []int32       // per segment, the number of attached slices: the ones of the oldest regions
	all     []chunk       // every chunk, slice after slice, as attached
	links   []link        // the anchors, see anchorOf, and after them one per chunk
	live    front.Ledger  // live blocks; a place is a chunk and a unit
	hole    hole          // the longest free run of a chunk
}

// Open returns the allocator that c describes: a [Locked] one with Config.Locks.
func Open(src device.Source, c Config) (alloc.Strategy, error) {
	if c.Locks {
		return NewLocked(src, c)
	}
	return New(src, c)
}

// New returns an allocator for one thread over src that holds nothing yet. It fails if c is
// invalid.
func New(src device.Source, c Config) (*Allocator, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	slice := c.RegionBytes / device.Size(c.Segments)
	a := &Allocator{
		cfg:    c,
		slice:  slice,
		chunks: int(slice / (chunkUnits * c.UnitBytes)),
		align:  regions.Align(c.RegionBytes),
		lines:  make([]int32, c.Segments),
		links:  make([]link, classes*c.Segments),
	}
	for i := range int32(len(a.links)) {
		a.links[i] = link{next: i, prev: i}
	}
	a.View = a.front.Init(front.Limits{Most: maxUnits * c.UnitBytes, Align: a.quantum()},
		func() (largest, bytes device.Size) {
			return a.LargestFree(), a.FreeBytes()
		})
	a.regions = regions.NewSet(src, &a.front.Stats)
	a.front.Stats.NextRegion = c.RegionBytes
	return a, nil
}

// Alloc implements [alloc.Allocator]. It costs O(1), and O(chunks in a slice) when a
// segment attaches one.
func (a *Allocator) Alloc(r alloc.Request) (alloc.Block, error) {
	if !a.front.Accepts(&r) {
		return alloc.Block{}, a.front.Refuse(&r)
	}
	n, g := a.unitsFor(r.Size), a.turn()
	i := a.search(g, n)
	if i == none {
		if err := a.attach(g); err != nil {
			return alloc.Block{}, a.front.OutOfMemory(&r, 0, a.cfg.RegionBytes, err)
		}
		i = a.search(g, n)
	}
	c := &a.all[i]
	b := lowest(c.free, n)
	c.take(b, n)
	a.toFront(i)
	got := alloc.Block{Addr: c.base.Add(device.Size(b) * a.cfg.UnitBytes), Size: device.Size(n) * a.cfg.UnitBytes}
	a.live.Add(got.Addr, front.LiveBlock{
		Requested: r.Size, Stream: r.Stream, Tag: r.Tag, Place: uint64(i)*chunkUnits + uint64(b),
	})
	a.front.Stats.Granted(r.Size, got.Size)
	return got, nil
}

// quantum returns the alignment of every block: slices and chunks are whole numbers of units.
func (a *Allocator) quantum() device.Size { return min(a.cfg.UnitBytes&-a.cfg.UnitBytes, a.align) }

// unitsFor returns the units for a size of 1 byte to 4 units, without a division.
func (a *Allocator) unitsFor(size device.Size) int {
	n, unit := 1, a.cfg.UnitBytes
	if size > unit {
		n++
	}
	if size > 2*unit {
		n++
	}
	if size > 3*unit {
		n++
	}
	return n
}

// turn returns the segment whose turn it is, and passes the turn on. The original counts in signed
// 32 bits: after 2^31 requests the rotation jumps unless the number of segments is a power of two.
func (a *Allocator) turn() int {
	g := uint64(a.counter) % uint64(len(a.lines))
	a.counter++
	return int(g)
}

func anchorOf(g, class int32) int32 { return classes*g + class }

func (a *Allocator) linkOf(i int32) int32 { return i + classes*int32(len(a.lines)) }

// search returns the most recently touched chunk of the smallest class that serves n units in
// segment g, or none.
func (a *Allocator) search(g, n int) int32 {
	for k := int32(n); k <= maxUnits; k++ {
		anchor := anchorOf(int32(g), k)
		if i := a.links[anchor].next; i != anchor {
			return i - classes*int32(len(a.lines))
		}
	}
	return none
}

// toFront puts chunk i in front of the list of its class, even if it was in that list.
func (a *Allocator) toFront(i int32) {
	c := &a.all[i]
	c.class = class(c.free)
	unlink(a.links, a.linkOf(i))
	push(a.links, anchorOf(c.segment, c.class), a.linkOf(i))
}

// attach gives segment g its slice of the next region, or of a new one. On error nothing has
// changed.
func (a *Allocator) attach(g int) error {
	if len(a.all) > mostChunks-a.chunks {
		return regions.ErrTooMany
	}
	region := int(a.lines[g])
	if region == len(a.bases) {
		if err := a.grow(); err != nil {
			return err
		}
	}
	base := a.bases[region].Add(device.Size(g) * a.slice)
	from := int32(len(a.all))
	a.first[region*len(a.lines)+g] = from
	a.lines[g]++
	for k := range a.chunks {
		at := base.Add(device.Size(k) * chunkUnits * a.cfg.UnitBytes)
		a.all = append(a.all, chunk{free: ^uint64(0), base: at, segment: int32(g), class: maxUnits})
	}
	a.links = append(a.links, make([]link, a.chunks)...)
	for i := int32(len(a.all)) - 1; i >= from; i-- {
		push(a.links, anchorOf(int32(g), maxUnits), a.linkOf(i)) // from the top: the lowest ends up in front
	}
	a.hole.raise(chunkUnits, from)
	return nil
}

// grow reserves a region, of which nothing is attached. On error nothing has changed.
func (a *Allocator) grow() error {
	r, err := a.regions.Reserve(a.cfg.RegionBytes, a.align, int32(len(a.bases)))
	if err != nil {
		return err
	}
	a.bases = append(a.bases, r.Addr)
	for range a.lines {
		a.first = append(a.first, none)
	}
	return nil
}

// Free implements [alloc.Allocator]. It costs O(1).
func (a *Allocator) Free(p device.Addr) error {
	_, _, err := a.Take(p)
	return err
}

// Take is Free that also returns the requested and the granted bytes, for a strategy composed of
// this one.
func (a *Allocator) Take(p device.Addr) (requested, granted device.Size, err error) {
	b, ok := a.live.Take(p)
	if !ok {
		return 0, 0, a.front.NoBlock()
	}
	i, unit := int32(b.Place/chunkUnits), int(b.Place%chunkUnits)
	c := &a.all[i]
	n := c.give(unit)
	a.toFront(i)
	a.hole.raise(runAt(c.free, unit), i)
	granted = device.Size(n) * a.cfg.UnitBytes
	a.front.Stats.Freed(b.Requested, granted)
	return b.Requested, granted, nil
}

// Close implements [alloc.Strategy]. Regions are released oldest first. Walk yields a region that
// the device refuses as one chunk of slack.
func (a *Allocator) Close() error {
	a.front.Close()
	a.bases, a.first, a.lines, a.all, a.links = nil, nil, nil, nil, nil
	a.live, a.hole = front.Ledger{}, hole{}
	return a.regions.ReleaseAll()
}
