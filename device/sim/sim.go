package sim

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/internal/handle"
	"github.com/vramyard/vramyard/device/internal/mapped"
	"github.com/vramyard/vramyard/kit/index"
)

// Device is a simulated GPU. It is not safe for concurrent use.
type Device struct {
	cfg     Config
	costs   *Costs                 // never changed
	gap     device.Size            // kept free behind every region
	regions index.AddrList[extent] // and ranges; the bound of a leaf is on the rooms below them
	next    device.Addr            // lowest address that Bump may still hand out; none above was ever used
	usage   device.Usage
	now     uint64 // nanoseconds: the host's clock
	streams streams
	pools   pools

	memories handle.Table[memory]  // of handles, and of regions if more than their size is known
	mappings mapped.List           // of memory into ranges
	owners   index.AddrList[int32] // slots in memories of regions
	frames   *frames               // nil if physical memory is only counted
	serial   uint64                // memories made so far
}

// extent is the size of a region or range. The top bits, which no size has, say that it is a
// range, or a region of a pool.
type extent uint64

const (
	rangeBit extent = 1 << 63
	poolBit  extent = 1 << 62
)

func (e extent) size() device.Size { return device.Size(e &^ (rangeBit | poolBit)) }

// isRange reports whether it is a range and no region.
func (e extent) isRange() bool { return e&rangeBit != 0 }

// isRegion reports whether it is a region that a caller holds.
func (e extent) isRegion() bool { return e&(rangeBit|poolBit) == 0 }

var (
	_ device.Device        = (*Device)(nil)
	_ device.VirtualMemory = (*Device)(nil)
	_ device.MemoryInfo    = (*Device)(nil)
	_ device.Contents      = (*Device)(nil)
)

// New returns an empty simulated device. It fails if cfg has a field out of range.
func New(cfg Config) (*Device, error) {
	cfg, err := cfg.WithDefaults()
	if err != nil {
		return nil, err
	}
	d := &Device{
		cfg: cfg, costs: cfg.Costs.table(), next: Base, usage: device.Usage{Capacity: cfg.Capacity},
		streams: newStreams(cfg.Ordinal),
	}
	d.memories.Ordinal, d.pools.others.Ordinal = cfg.Ordinal, cfg.Ordinal
	if cfg.Policy == FirstFit {
		d.gap = cfg.Gap
	}
	if cfg.Memory != Counted {
		d.frames = newFrames(cfg)
	}
	return d, nil
}

// Config returns the configuration with every default filled in.
func (d *Device) Config() Config { return d.cfg }

// Usage implements [device.Device].
func (d *Device) Usage() device.Usage { return d.usage }

// Regions yields the regions held, by address, without those of pools. The device must not be
// called meanwhile.
func (d *Device) Regions(yield func(device.Region) bool) {
	for e := range d.regions.All {
		if e.Value.isRegion() && !yield(device.Region{Addr: e.Addr, Size: e.Value.size()}) {
			return
		}
	}
}

// Ranges yields the ranges held, by address. The device must not be called meanwhile.
func (d *Device) Ranges(yield func(device.Region) bool) {
	for e := range d.regions.All {
		if e.Value.isRange() && !yield(device.Region{Addr: e.Addr, Size: e.Value.size()}) {
			return
		}
	}
}

// Reserve implements [device.Source]. The package comment says what it costs. It fails with
// [device.ErrInvalid] for a size of zero or an alignment that is no power of two, and
// with [device.ErrOutOfMemory] as the package comment says.
func (d *Device) Reserve(size, align device.Size) (device.Region, error) {
	if size == 0 || align != 0 && !device.IsPowerOfTwo(align) {
		return device.Region{}, d.book(device.CallReserve, size, device.ErrInvalid)
	}
	r, ok := d.obtain(size, align, 0)
	if !ok {
		return device.Region{}, d.book(device.CallReserve, size, device.ErrOutOfMemory)
	}
	d.usage.Regions++
	return r, d.book(device.CallReserve, r.Size, nil)
}

// obtain takes a region of a kind, with its memory. It returns false if there is no room.
func (d *Device) obtain(size, align device.Size, kind extent) (device.Region, bool) {
	r, p, ok := d.place(size, max(align, d.cfg.Align))
	if ok && d.frames != nil {
		ok = d.ownMemory(r)
	}
	if !ok {
		return device.Region{}, false
	}
	d.enter(p, r, kind)
	d.hold(r.Size, device.AlignUp(r.Size, d.cfg.Charge))
	return r, true
}

// giveBack is obtain taken back, of the region at a, which stands at a place. It returns the size.
func (d *Device) giveBack(p index.AddrPos, a device.Addr) device.Size {
	size := d.leave(p)
	if d.frames != nil {
		d.disownMemory(a)
	}
	d.letGo(size, device.AlignUp(size, d.cfg.Charge))
	return size
}

// enter notes what is held at a place.
func (d *Device) enter(p index.AddrPos, r device.Region, kind extent) {
	last := p == d.regions.End()
	p = d.regions.Insert(p, index.AddrEntry[extent]{Addr: r.Addr, Value: extent(r.Size) | kind})
	if last { // else it is in a room that was there
		d.widen(p)
	}
	d.next = max(d.next, r.End())
}

// Release implements [device.Source]. The package comment says what it costs; it waits for all
// that is queued. It fails with [device.ErrInvalid] if no held region starts at a.
func (d *Device) Release(a device.Addr) error {
	p, found := d.regions.Search(a)
	if !found || !d.regions.Entry(p).Value.isRegion() {
		return d.book(device.CallRelease, 0, device.ErrInvalid)
	}
	size := d.giveBack(p, a)
	d.usage.Regions--
	d.settle(device.CallRelease)
	return d.book(device.CallRelease, size, nil)
}

// leave forgets what is held at a place and returns its size.
func (d *Device) leave(p index.AddrPos) device.Size {
	size := d.regions.Entry(p).Value.size()
	if p = d.regions.Delete(p); d.regions.Holds(p) {
		d.widen(p)
	}
	return size
}

// book counts a call and its time, and returns err, with which it fails.
func (d *Device) book(c device.Call, size device.Size, err error) error {
	if err != nil {
		d.usage.Calls[c].Failed++
		d.spend(c, 0) // what was asked for was not done
		return err
	}
	d.usage.Calls[c].Done++
	d.spend(c, size)
	return nil
}

// waitUntil lets a call wait for the host's clock to be at least at a time.
func (d *Device) waitUntil(at uint64, c device.Call) {
	if at > d.now {
		d.take(c, at-d.now)
	}
}

// plus adds times. The largest one stays the largest.
func plus(a, b uint64) uint64 {
	if a+b < a {
		return ^uint64(0)
	}
	return a + b
}

// place chooses the region for a request, and its place among the held ones.
func (d *Device) place(size, align device.Size) (r device.Region, p index.AddrPos, ok bool) {
	// Above the address space nothing fits, and below it no sum here can overflow.
	if size > device.Size(End-Base) || align > device.Size(End-Base) {
		return r, p, false
	}
	if d.cfg.FailAbove != 0 && size > d.cfg.FailAbove {
		return r, p, false
	}
	size = device.AlignUp(size, d.cfg.Round)
	if d.cfg.Capacity != 0 && device.AlignUp(size, d.cfg.Charge) > d.usage.Free() {
		return r, p, false
	}
	return d.choose(size, align)
}

// choose returns the addresses that the policy gives to size bytes.
//
// Precondition: size and align are at most the address space.
func (d *Device) choose(size, align device.Size) (r device.Region, p index.AddrPos, ok bool) {
	var at device.Addr
	switch d.cfg.Policy {
	case Bump:
		at, p = device.AlignUp(d.next, align), d.regions.End()
		ok = at <= End && size <= End.Sub(at)
	case TopDown:
		at, p, ok = d.highest(size, align)
	default:
		at, p, ok = d.lowest(size, align)
	}
	return device.Region{Addr: at, Size: size}, p, ok
}

// lowest returns the lowest aligned address at which size bytes and the gap fit.
func (d *Device) lowest(size, align device.Size) (at device.Addr, p index.AddrPos, ok bool) {
	l, gap, need, page := &d.regions, d.gap, size+d.gap, d.cfg.Align
	for j := l.NextLeaf(0, need); j < l.Leaves(); j = l.NextLeaf(j+1, need) {
		floor, most := d.floor(index.AddrPos{Leaf: j}), device.Size(0)
		leaf := l.Leaf(j)
		for i := range leaf {
			e := &leaf[i]
			n := room(floor, e.Addr, page)
			if n >= need { // enough, unless the alignment is larger than the device's
				if at = device.AlignUp(floor, align); at.Add(need) <= e.Addr {
					return at, index.AddrPos{Leaf: j, At: i}, true
				}
			}
			most = max(most, n)
			floor = e.Addr.Add(e.Value.size() + gap)
		}
		l.Lower(j, most)
	}
	p = l.End()
	at = device.AlignUp(d.floor(p), align)
	return at, p, at <= End && size <= End.Sub(at)
}

// highest returns the highest aligned address below topDownEnd at which size bytes fit.
func (d *Device) highest(size, align device.Size) (at device.Addr, p index.AddrPos, ok bool) {
	l, page := &d.regions, d.cfg.Align
	p = l.End()
	if at, ok = fitBelow(topDownEnd, d.floor(p), size, align); ok {
		return at, p, true
	}
	for j := l.PrevLeaf(l.Leaves()-1, size); j >= 0; j = l.PrevLeaf(j-1, size) {
		most := device.Size(0)
		leaf := l.Leaf(j)
		for i := len(leaf) - 1; i >= 0; i-- {
			var floor device.Addr
			if i > 0 {
				floor = leaf[i-1].Addr.Add(leaf[i-1].Value.size())
			} else {
				floor = d.floor(index.AddrPos{Leaf: j})
			}
			n := room(floor, leaf[i].Addr, page)
			if n >= size {
				if at, ok = fitBelow(leaf[i].Addr, floor, size, align); ok {
					return at, index.AddrPos{Leaf: j, At: i}, true
				}
			}
			most = max(most, n)
		}
		l.Lower(j, most)
	}
	return 0, p, false
}

// fitBelow returns the highest aligned address at which size bytes fit between floor and end.
func fitBelow(end, floor device.Addr, size, align device.Size) (at device.Addr, ok bool) {
	if end < floor || end.Sub(floor) < size {
		return 0, false
	}
	at = device.AlignDown(end-device.Addr(size), align)
	return at, at >= floor
}

// floor returns the lowest address that a region at place p could have.
func (d *Device) floor(p index.AddrPos) device.Addr {
	if e, ok := d.regions.Below(p); ok {
		return e.Addr.Add(e.Value.size() + d.gap)
	}
	return Base
}

// room returns the bytes between floor and the region at a that a region whose start is a
// multiple of align could have, with the gap behind it.
func room(floor, a device.Addr, align device.Size) device.Size {
	if floor = device.AlignUp(floor, align); floor < a {
		return a.Sub(floor)
	}
	return 0
}

// widen raises the bound of the leaf of p to the room below the region there.
func (d *Device) widen(p index.AddrPos) {
	d.regions.Raise(p.Leaf, room(d.floor(p), d.regions.Entry(p).Addr, d.cfg.Align))
}
