package xdl

import (
	"math/bits"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/forecast"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/regions"
)

// unitsLog is log2 of the units of the atlas in a large region. They fill 32 of its areas, so the
// atlas takes 128 bytes a region.
const unitsLog = 25

// Allocator is the buddy allocator of X-DeepLearning. Use [New].
type Allocator struct {
	front.View
	front front.Front
	cfg   Config
	shift int         // log2 of the bytes of a block of order 0
	top   int         // order of a region
	align device.Size // alignment asked for regions

	regions regions.Set   // by address; a label is the number in the slices below
	where   index.Atlas   // numbers of the regions by address, plus one
	coarse  int           // log2 of the bytes that are one unit of the atlas
	bases   []device.Addr // starts of the regions, oldest first
	trees   []tree        // trees of the regions
	roots   []byte        // roots of the trees
	live    front.Ledger  // live blocks; a place is not used

	placer *forecast.Placer // made when it is asked for
}

// Open returns the allocator that c describes. With Config.Locks one mutex guards everything, as in
// the original.
func Open(src device.Source, c Config) (alloc.Strategy, error) {
	a, err := New(src, c)
	if err != nil || !c.Locks {
		return a, err
	}
	return wrap.Locked(a)
}

// New returns an allocator for one thread over src that holds nothing yet. It fails if c is
// invalid.
func New(src device.Source, c Config) (*Allocator, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	a := &Allocator{
		cfg:   c,
		shift: log2(c.BlockBytes),
		top:   log2(c.RegionBytes / c.BlockBytes),
		align: regions.Align(c.RegionBytes),
	}
	a.View = a.front.Init(front.Limits{Most: c.RegionBytes}, func() (largest, bytes device.Size) {
		return a.LargestFree(), a.FreeBytes()
	})
	a.regions = regions.NewSet(src, &a.front.Stats)
	a.coarse = max(0, min(log2(c.RegionBytes)-unitsLog, log2(a.align)))
	a.where = index.NewAtlas(func(label uint32) (device.Addr, device.Size) { return a.mapped(int(label) - 1) })
	a.front.Stats.NextRegion = c.RegionBytes
	return a, nil
}

// Alloc implements [alloc.Allocator]. It costs O(regions + order of a region).
func (a *Allocator) Alloc(r alloc.Request) (alloc.Block, error) {
	if !a.front.Accepts(&r) || r.Align != 0 && !a.honours(r) {
		return alloc.Block{}, a.front.Refuse(&r)
	}
	order := a.orderFor(r.Size)
	region, ok := a.oldestWith(order)
	if !ok {
		if err := a.grow(); err != nil {
			return alloc.Block{}, a.front.OutOfMemory(&r, 0, a.cfg.RegionBytes, err)
		}
		region = len(a.roots) - 1
	}
	t := &a.trees[region]
	at := t.lowest(order)
	t.grant(at, order)
	a.roots[region] = t.longest[1]
	b := alloc.Block{Addr: a.addrOf(region, at), Size: a.bytesOf(order)}
	a.live.Add(b.Addr, front.LiveBlock{Requested: r.Size, Stream: r.Stream, Tag: r.Tag})
	a.front.Stats.Granted(r.Size, b.Size)
	return b, nil
}

// Free implements [alloc.Allocator]. It costs O(order of a region).
func (a *Allocator) Free(p device.Addr) error {
	_, _, err := a.Take(p)
	return err
}

// Take is Free that also returns the requested and the granted bytes, for a strategy composed of
// this one.
func (a *Allocator) Take(p device.Addr) (requested, granted device.Size, err error) {
	region := a.regionAt(p) // independent of the lookup in the table, so that the CPU can overlap both
	if region < 0 {
		return 0, 0, a.front.NoBlock()
	}
	b, ok := a.live.Take(p)
	if !ok {
		return 0, 0, a.front.NoBlock()
	}
	order := a.orderFor(b.Requested)
	t := &a.trees[region]
	t.release(uint32(p.Sub(a.bases[region])>>a.shift), order)
	a.roots[region] = t.longest[1]
	granted = a.bytesOf(order)
	a.front.Stats.Freed(b.Requested, granted)
	return b.Requested, granted, nil
}

// Close implements [alloc.Strategy]. Regions are released oldest first. Walk yields a region that
// the device refuses as one chunk of slack.
func (a *Allocator) Close() error {
	a.front.Close()
	a.bases, a.trees, a.roots, a.live, a.where = nil, nil, nil, front.Ledger{}, index.Atlas{}
	return a.regions.ReleaseAll()
}

// regionAt returns the number of the region at an address, or -1.
func (a *Allocator) regionAt(p device.Addr) int { return int(a.where.Get(p>>(a.coarse&63))) - 1 }

// mapped returns the extent of a region in units of the atlas.
func (a *Allocator) mapped(region int) (device.Addr, device.Size) {
	return a.bases[region] >> a.coarse, a.cfg.RegionBytes >> a.coarse
}

// honours reports whether an alignment is always kept: a block starts at a multiple of its size in
// an aligned region.
func (a *Allocator) honours(r alloc.Request) bool {
	return device.IsPowerOfTwo(r.Align) && r.Align <= min(a.align, a.bytesOf(a.orderFor(r.Size)))
}

// orderFor returns the order of the block for n bytes, 1 to RegionBytes.
func (a *Allocator) orderFor(n device.Size) int {
	return max(0, bits.Len64(uint64(n-1))-a.shift)
}

func (a *Allocator) bytesOf(order int) device.Size { return 1 << (a.shift + order) }

func (a *Allocator) addrOf(region int, at uint32) device.Addr {
	return a.bases[region].Add(device.Size(at) << a.shift)
}

// grow reserves a region, wholly free. On error nothing has changed.
func (a *Allocator) grow() error {
	if (len(a.trees)+1)<<a.top > mostBlocks {
		return regions.ErrTooMany
	}
	r, err := a.regions.Reserve(a.cfg.RegionBytes, a.align, int32(len(a.bases)))
	if err != nil {
		return err
	}
	t := newTree(a.top)
	a.bases = append(a.bases, r.Addr)
	a.trees = append(a.trees, t)
	a.roots = append(a.roots, t.longest[1])
	at, n := a.mapped(len(a.bases) - 1)
	a.where.Set(at, n, uint32(len(a.bases)))
	return nil
}
