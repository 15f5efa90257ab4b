package vmm

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/forecast"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/regions"
)

// MaxRequest is the largest request in bytes. No device has more, and the sum of a size and an
// alignment cannot overflow.
const MaxRequest = mostBytes

// Allocator grants blocks in ranges of addresses that grow by mapping. Use [New]; it is not
// safe for concurrent use.
type Allocator struct {
	front.View
	table
	front   front.Front // Forgotten counts unmapped pages that the device refused to take back
	cfg     Config
	vmAlign device.Size // alignment of every range

	free  freeIndex
	gaps  gapList
	live  index.AddrMap // live chunks by address
	at    index.AddrOf
	mem   regions.Memory
	stuck device.Size // bytes of stuck chunks

	span, ranges device.Span // limits, and values of rangeFor, with the same decisions so far

	placer *forecast.Placer // made at first use
}

// gapList is the unmapped chunks, by address.
type gapList struct{ index.AddrList[handle] }

func (l *gapList) add(a device.Addr, h handle) {
	p, _ := l.Search(a)
	l.Insert(p, index.AddrEntry[handle]{Addr: a, Value: h})
}

func (l *gapList) remove(a device.Addr) {
	p, ok := l.Search(a)
	if !ok {
		panic("vmm: invariant V6 (the unmapped chunks are listed): the chunk at " + a.String() + " is not")
	}
	l.Delete(p)
}

var _ alloc.Strategy = (*Allocator)(nil)

// New returns an allocator over src that holds nothing yet. It fails if c is invalid, and with
// [device.ErrUnsupported] if src has no virtual memory.
func New(src device.Source, c Config) (*Allocator, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	vm, ok := device.VirtualMemoryOf(src)
	if !ok {
		return nil, fmt.Errorf("vmm: the device has no virtual memory: %w", device.ErrUnsupported)
	}
	if c, err = c.on(vm, total(src)); err != nil {
		return nil, err
	}
	a := &Allocator{
		table: table{rows: make([]chunk, 1)}, cfg: c, vmAlign: vm.Granularity(), live: index.NewAddrMap(),
	}
	a.at = func(h uint32) device.Addr { return a.rows[h].addr }
	a.free = freeIndex{table: &a.table, quantum: c.Quantum, first: c.Fit == FitFirst, bySize: index.NewSizeMap(c.Quantum)}
	a.View = a.front.Init(front.Limits{Most: MaxRequest}, func() (largest, bytes device.Size) {
		return a.free.largest(), a.front.Stats.Reserved - a.front.Stats.Active - a.stuck
	})
	a.mem = regions.NewMemory(vm, &a.front.Stats)
	a.front.Stats.Limit = c.Limit
	return a, nil
}

// total returns the capacity of the device, 0 if it is unknown.
func total(src device.Source) (n device.Size) {
	if info, ok := device.MemoryInfoOf(src); ok {
		if _, n, err := info.MemoryInfo(); err == nil {
			return n
		}
	}
	return 0
}

// Config returns the configuration with every default filled in.
func (a *Allocator) Config() Config { return a.cfg }

// Alloc implements [alloc.Allocator]. The package comment states its cost.
func (a *Allocator) Alloc(r alloc.Request) (alloc.Block, error) {
	if !a.front.Accepts(&r) {
		return alloc.Block{}, a.front.Refuse(&r)
	}
	n := device.AlignUp(r.Size, a.cfg.Quantum)
	h := a.free.take(n, r.Align)
	if h == none {
		var err error
		if h, err = a.grow(&r, n); err != nil {
			return alloc.Block{}, err
		}
	}
	if lead := pad(a.rows[h].addr, r.Align); lead != 0 {
		rest := a.split(h, lead)
		a.free.insert(h)
		h = rest
	}
	if a.rows[h].size > n {
		a.free.insert(a.split(h, n))
	}
	return a.grant(h, &r), nil
}

// grant makes a free chunk the block of a request. The chunk is cut to size and in no index.
func (a *Allocator) grant(h handle, r *alloc.Request) alloc.Block {
	c := &a.rows[h]
	c.state, c.requested, c.tag, c.stream = live, r.Size, r.Tag, r.Stream
	a.live.Put(c.addr, h, a.at)
	a.front.Stats.Granted(r.Size, c.size)
	return alloc.Block{Addr: c.addr, Size: c.size, Ref: h}
}

// Free implements [alloc.Allocator]. The package comment states its cost.
func (a *Allocator) Free(at device.Addr) error {
	h := a.find(at)
	if h == none {
		return a.front.NoBlock()
	}
	a.live.Unlink(at, h)
	a.release(h)
	return nil
}

func (a *Allocator) FreeRef(b alloc.Block) error {
	switch h := b.Ref; {
	case h == none:
		return a.Free(b.Addr)
	case int(h) >= len(a.rows) || a.rows[h].addr != b.Addr || a.rows[h].state != live:
		return a.front.NoBlock()
	}
	a.live.UnlinkRef(b.Addr, b.Ref)
	a.release(b.Ref)
	return nil
}

// find returns the live chunk that starts at an address, or none.
func (a *Allocator) find(at device.Addr) handle {
	if a.live.Dropped() {
		a.live.Restore(a.front.Stats.Live, func(yield func(handle) bool) {
			for h := range a.rows {
				if a.is(handle(h), live) && !yield(handle(h)) {
					return
				}
			}
		}, a.at)
	}
	return a.live.Get(at, a.at)
}

// release frees a live chunk that was removed from the map of live chunks.
func (a *Allocator) release(h handle) {
	c := &a.rows[h]
	a.front.Stats.Freed(c.requested, c.size)
	c.state, c.requested, c.tag, c.stream = free, 0, 0, 0
	h = a.settle(h)
	if a.cfg.Release && a.front.Stats.Reserved-a.front.Stats.Active > a.cfg.KeepBytes {
		// Memory that cannot be released stays free or idle until the next trim.
		if n, _, _ := a.empty(h); n > 0 {
			_ = a.mem.DropIdle()
		}
	}
}

// settle merges a free chunk that is not in the index with its free neighbours, enters it, and
// returns it.
func (a *Allocator) settle(h handle) handle {
	if n := a.rows[h].next; a.is(n, free) {
		a.free.remove(n)
		a.absorb(h)
	}
	if p := a.rows[h].prev; a.is(p, free) {
		a.free.remove(p)
		a.absorb(p)
		h = p
	}
	a.free.insert(h)
	return h
}
