package compiler

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/regions"
)

// state is the state of a segment.
type state uint8

const (
	gone   state = iota // the row is unused, or only its range is held
	idle                // its addresses wait for the next request of its size
	live                // granted
	broken              // mapped in part or without access: the device refused
)

// none is the index of no segment.
const none int32 = -1

// segment is a range of addresses with pages mapped in it.
type segment struct {
	region device.Region // zero for an unused row
	pages  []int32       // mapped pages, in order
	state  state

	// blocker is the index of a page that was used when usable last looked: a segment whose pages are
	// in use often is mostly refused by one look.
	blocker int
}

// page is a piece of physical memory.
type page struct {
	handle device.Handle // 0 for an unused row
	in     []int32       // segments that map it
	home   int32         // the one of them in which a walk shows it while it is free; none without mappings
	used   bool          // one of them is live
}

// graph holds the pages and the segments.
type graph struct {
	vm    device.VirtualMemory
	size  device.Size // of a page
	limit device.Size
	span  device.Span // limits with which every decision so far would have been the same

	segments []segment
	spare    []int32                 // unused rows
	order    index.AddrList[int32]   // segments with a range, by address
	sized    map[device.Size][]int32 // idle and live segments by size, oldest first
	pages    []page
	vacant   []int32      // unused rows of pages
	ledger   front.Ledger // live blocks; Place is the segment

	total *alloc.Stats // counters of the strategy
	own   alloc.Stats  // the part of the graph in the current values
}

// held adds bytes that a walk shows to the counters, and removes them from the forgotten ones.
func (g *graph) held(n device.Size) {
	g.total.Reserved += n
	g.own.Reserved += n
	g.total.Forgotten -= n
}

// usable reports whether a segment can be granted: it is idle, and its pages are free.
func (g *graph) usable(i int32) bool {
	s := &g.segments[i]
	used := func(p int32) bool { return g.pages[p].used }
	if s.state != idle || used(s.pages[s.blocker]) {
		return false
	}
	s.blocker = max(slices.IndexFunc(s.pages, used), 0)
	return !used(s.pages[s.blocker])
}

// take returns a segment of n bytes whose pages are free: the oldest of that size, or a new one.
func (g *graph) take(n device.Size) (int32, error) {
	for _, i := range g.sized[n] {
		if g.usable(i) {
			return i, nil
		}
	}
	return g.build(n)
}

// build maps a new segment from free pages, and creates the missing ones. On error the pages stay
// for the next one.
func (g *graph) build(n device.Size) (int32, error) {
	pages, err := g.gather(int(n / g.size))
	if err != nil {
		return none, err
	}
	r, err := g.vm.ReserveRange(n, g.size, 0)
	if err != nil {
		return none, err
	}
	i := g.enter(r)
	s := &g.segments[i]
	for _, p := range pages {
		if err = g.vm.Map(r.Addr.Add(device.Size(len(s.pages))*g.size), g.size, g.pages[p].handle, 0); err != nil {
			break
		}
		s.pages = append(s.pages, p)
		if g.pages[p].in = append(g.pages[p].in, i); g.pages[p].home == none {
			g.pages[p].home = i
			g.held(g.size)
		}
	}
	if err == nil {
		err = g.vm.SetAccess(r.Addr, n, device.AccessReadWrite)
	}
	if err != nil {
		s.state = broken
		_ = g.undo(i) // if the device refuses, it is retried whenever memory is released
		return none, err
	}
	s.state = idle
	g.sized[n] = append(g.sized[n], i)
	return i, nil
}

// enter adds a segment without pages.
func (g *graph) enter(r device.Region) int32 {
	if len(g.spare) == 0 {
		g.spare = append(g.spare, int32(len(g.segments)))
		g.segments = append(g.segments, segment{})
	}
	i := g.spare[len(g.spare)-1]
	g.spare = g.spare[:len(g.spare)-1]
	g.segments[i] = segment{region: r}
	at, _ := g.order.Search(r.Addr)
	g.order.Insert(at, index.AddrEntry[int32]{Addr: r.Addr, Value: i})
	g.total.Regions++
	g.own.Regions++
	return i
}

// free reports whether a page can be mapped in a new segment.
func (g *graph) free(p *page) bool {
	return p.handle != 0 && !p.used && (p.home == none || g.segments[p.home].state != broken)
}

// gather returns n free pages, and creates the missing ones within the limit.
func (g *graph) gather(n int) (pages []int32, err error) {
	for p := range g.pages {
		if len(pages) < n && g.free(&g.pages[p]) {
			pages = append(pages, int32(p))
		}
	}
	for len(pages) < n {
		if g.limit != 0 && !g.span.Fits(g.total.Reserved+g.total.Forgotten+g.size, g.limit) {
			return nil, regions.ErrLimit
		}
		h, err := g.vm.CreateHandle(g.size)
		if err != nil {
			g.total.ReserveFailures++
			return nil, err
		}
		if len(g.vacant) == 0 {
			g.vacant = append(g.vacant, int32(len(g.pages)))
			g.pages = append(g.pages, page{})
		}
		p := g.vacant[len(g.vacant)-1]
		g.vacant = g.vacant[:len(g.vacant)-1]
		g.pages[p] = page{handle: h, in: g.pages[p].in[:0], home: none}
		g.total.Reserves++
		g.total.Forgotten += g.size
		g.total.PeakReserved = max(g.total.PeakReserved, g.total.Reserved+g.total.Forgotten)
		pages = append(pages, p)
	}
	return pages, nil
}

// grant makes a usable segment the block of a request.
func (g *graph) grant(i int32, r *alloc.Request) alloc.Block {
	s := &g.segments[i]
	s.state = live
	g.use(s, true)
	g.ledger.Add(s.region.Addr, front.LiveBlock{Requested: r.Size, Stream: r.Stream, Tag: r.Tag, Place: uint64(i)})
	n := g.sizeOf(s)
	g.total.Granted(r.Size, n)
	g.own.Granted(r.Size, n)
	return alloc.Block{Addr: s.region.Addr, Size: n}
}

// release frees the block at an address, and reports whether there is one.
func (g *graph) release(at device.Addr) bool {
	b, ok := g.ledger.Take(at)
	if ok {
		s := &g.segments[b.Place]
		s.state = idle
		g.use(s, false)
		g.total.Freed(b.Requested, g.sizeOf(s))
		g.own.Freed(b.Requested, g.sizeOf(s))
	}
	return ok
}

// use marks the pages of a segment as used or free.
func (g *graph) use(s *segment, used bool) {
	for _, p := range s.pages {
		g.pages[p].used = used
	}
}

// sizeOf returns the mapped bytes of a segment.
func (g *graph) sizeOf(s *segment) device.Size { return device.Size(len(s.pages)) * g.size }

// undo unmaps and releases the range of a segment without a live block. If the device refuses to
// unmap it, the segment stays as it is.
func (g *graph) undo(i int32) error {
	s := &g.segments[i]
	if len(s.pages) > 0 {
		n := g.sizeOf(s)
		if err := g.vm.Unmap(s.region.Addr, n); err != nil {
			return err
		}
		if at := slices.Index(g.sized[n], i); at >= 0 {
			g.sized[n] = slices.Delete(g.sized[n], at, at+1)
		}
		for _, p := range s.pages {
			g.leave(p, i)
		}
		s.pages = s.pages[:0]
	}
	s.state = gone
	if err := g.vm.ReleaseRange(s.region.Addr); err != nil {
		return err
	}
	at, _ := g.order.Search(s.region.Addr)
	g.order.Delete(at)
	*s = segment{}
	g.spare = append(g.spare, i)
	g.total.Regions--
	g.own.Regions--
	return nil
}

// leave records that a page is not mapped in a segment any more. If that was its home, another
// segment becomes it.
func (g *graph) leave(p, i int32) {
	at := &g.pages[p]
	at.in = slices.DeleteFunc(at.in, func(j int32) bool { return j == i })
	if at.home != i {
		return
	}
	at.home = none
	for _, j := range at.in {
		if at.home == none || g.segments[at.home].state == broken {
			at.home = j
		}
	}
	if at.home == none {
		g.held(-g.size)
	}
}

// trim undoes the segments without a live block and releases the pages without a mapping. It
// returns the first error.
func (g *graph) trim() (first error) {
	for i := range g.segments {
		if s := &g.segments[i]; s.region.Size > 0 && s.state != live {
			first = cmp.Or(first, g.undo(int32(i)))
		}
	}
	for p := range g.pages {
		at := &g.pages[p]
		if at.handle == 0 || len(at.in) > 0 {
			continue
		}
		if err := g.vm.ReleaseHandle(at.handle); err != nil {
			first = cmp.Or(first, err)
			continue
		}
		at.handle = 0
		g.vacant = append(g.vacant, int32(p))
		g.total.Releases++
		g.total.Forgotten -= g.size
	}
	return first
}
