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
	costs   *Costs                 // immutable
	gap     device.Size            // kept free after every region
	regions index.AddrList[extent] // and ranges; the bound of a leaf limits the space below each entry
	next    device.Addr            // lowest address that Bump may return; addresses above are unused
	usage   device.Usage
	short   device.Size // least capacity that would have granted a refused request; 0: none was refused
	asked   bool        // MemoryInfo has returned the capacity
	now     uint64      // nanoseconds: the host's clock
	streams streams
	pools   pools

	memories handle.Table[memory]  // of handles, and of regions at levels above [Counted]
	mappings mapped.List           // of memory in ranges
	owners   index.AddrList[int32] // slots in memories, by region
	frames   *frames               // nil at level [Counted]
	contents []contents            // by slot in memories; nil at levels below [Filled]
	serial   uint64                // number of contents made so far
}

// extent is the size of a region or range. The two top bits, which no size uses, mark a range and a
// region of a pool.
type extent uint64

const (
	rangeBit extent = 1 << 63
	poolBit  extent = 1 << 62
)

func (e extent) size() device.Size { return device.Size(e &^ (rangeBit | poolBit)) }

// isRange reports whether the extent is a range.
func (e extent) isRange() bool { return e&rangeBit != 0 }

// isRegion reports whether the extent is a region held by a caller, not by a pool.
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

func (d *Device) Usage() device.Usage { return d.usage }

// Held returns the bytes held, as Usage does.
func (d *Device) Held() device.Size { return d.usage.Held }

// Regions yields the regions held, by address, except regions of pools. The device must not be
// called during the iteration.
func (d *Device) Regions(yield func(device.Region) bool) {
	for e := range d.regions.All {
		if e.Value.isRegion() && !yield(device.Region{Addr: e.Addr, Size: e.Value.size()}) {
			return
		}
	}
}

// Ranges yields the ranges held, by address. The device must not be called during the iteration.
func (d *Device) Ranges(yield func(device.Region) bool) {
	for e := range d.regions.All {
		if e.Value.isRange() && !yield(device.Region{Addr: e.Addr, Size: e.Value.size()}) {
			return
		}
	}
}

// Reserve implements [device.Source]. It fails with [device.ErrInvalid] for a size of zero or an
// alignment that is not a power of two, and with [device.ErrOutOfMemory] if there is no room; see
// Capacity in the package comment. Cost describes the time.
func (d *Device) Reserve(size, align device.Size) (device.Region, error) {
	if size == 0 || align != 0 && !device.IsPowerOfTwo(align) {
		return device.Region{}, d.count(device.CallReserve, size, device.ErrInvalid)
	}
	r, ok := d.obtain(size, align, 0)
	if !ok {
		return device.Region{}, d.count(device.CallReserve, size, device.ErrOutOfMemory)
	}
	d.usage.Regions++
	return r, d.count(device.CallReserve, r.Size, nil)
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
	d.insert(p, r, kind)
	d.charge(r.Size, device.AlignUp(r.Size, d.cfg.Charge))
	return r, true
}

// returnRegion reverts obtain for the region at a, whose position is p. It returns the size.
func (d *Device) returnRegion(p index.AddrPos, a device.Addr) device.Size {
	size := d.remove(p)
	if d.frames != nil {
		d.disownMemory(a)
	}
	d.uncharge(size, device.AlignUp(size, d.cfg.Charge))
	return size
}

// insert inserts a region or range at a position.
func (d *Device) insert(p index.AddrPos, r device.Region, kind extent) {
	last := p == d.regions.End()
	p = d.regions.Insert(p, index.AddrEntry[extent]{Addr: r.Addr, Value: extent(r.Size) | kind})
	if last { // otherwise the bound of the leaf is high enough
		d.raiseBound(p)
	}
	d.next = max(d.next, r.End())
}

// Release implements [device.Source]. It waits for all queued work. It fails with
// [device.ErrInvalid] if no held region starts at a.
func (d *Device) Release(a device.Addr) error {
	p, found := d.regions.Search(a)
	if !found || !d.regions.Entry(p).Value.isRegion() {
		return d.count(device.CallRelease, 0, device.ErrInvalid)
	}
	size := d.returnRegion(p, a)
	d.usage.Regions--
	d.waitForAll(device.CallRelease)
	return d.count(device.CallRelease, size, nil)
}

// remove removes the region or range at a position and returns its size.
func (d *Device) remove(p index.AddrPos) device.Size {
	size := d.regions.Entry(p).Value.size()
	if p = d.regions.Delete(p); d.regions.Holds(p) {
		d.raiseBound(p)
	}
	return size
}

// count counts a call and its time, and returns err, the result of the call.
func (d *Device) count(c device.Call, size device.Size, err error) error {
	if err != nil {
		d.usage.Calls[c].Failed++
		d.chargeCall(c, 0) // a failed call processes no bytes
		return err
	}
	d.usage.Calls[c].Done++
	d.chargeCall(c, size)
	return nil
}

// waitUntil advances the host's clock to a time, on behalf of a call.
func (d *Device) waitUntil(at uint64, c device.Call) {
	if at > d.now {
		d.addTime(c, at-d.now)
	}
}

// addTimes adds times, saturating at the maximum.
func addTimes(a, b uint64) uint64 {
	if a+b < a {
		return ^uint64(0)
	}
	return a + b
}

// place chooses the addresses for a request, and their position in the list.
func (d *Device) place(size, align device.Size) (r device.Region, p index.AddrPos, ok bool) {
	// Larger requests never fit; below this limit no sum overflows.
	if size > device.Size(End-Base) || align > device.Size(End-Base) {
		return r, p, false
	}
	if d.cfg.FailAbove != 0 && size > d.cfg.FailAbove {
		return r, p, false
	}
	size = device.AlignUp(size, d.cfg.Round)
	if !d.hasRoom(device.AlignUp(size, d.cfg.Charge)) {
		return r, p, false
	}
	return d.choose(size, align)
}

// choose returns the addresses that the policy selects for size bytes.
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
		floor, largest := d.floor(index.AddrPos{Leaf: j}), device.Size(0)
		leaf := l.Leaf(j)
		for i := range leaf {
			e := &leaf[i]
			n := room(floor, e.Addr, page)
			if n >= need { // enough, unless the alignment exceeds the device's
				if at = device.AlignUp(floor, align); at.Add(need) <= e.Addr {
					return at, index.AddrPos{Leaf: j, At: i}, true
				}
			}
			largest = max(largest, n)
			floor = e.Addr.Add(e.Value.size() + gap)
		}
		l.Lower(j, largest)
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
		largest := device.Size(0)
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
			largest = max(largest, n)
		}
		l.Lower(j, largest)
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

// floor returns the lowest possible address of a region at position p.
func (d *Device) floor(p index.AddrPos) device.Addr {
	if e, ok := d.regions.Below(p); ok {
		return e.Addr.Add(e.Value.size() + d.gap)
	}
	return Base
}

// room returns the bytes available to a region between floor and the region at a, if it starts at a
// multiple of align and the gap follows it.
func room(floor, a device.Addr, align device.Size) device.Size {
	if floor = device.AlignUp(floor, align); floor < a {
		return a.Sub(floor)
	}
	return 0
}

// raiseBound raises the bound of the leaf of p to the free space below the region at p.
func (d *Device) raiseBound(p index.AddrPos) {
	d.regions.Raise(p.Leaf, room(d.floor(p), d.regions.Entry(p).Addr, d.cfg.Align))
}
