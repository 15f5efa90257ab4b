package caching

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/forecast"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/regions"
	"github.com/vramyard/vramyard/kit/tiles"
)

// Allocator makes the decisions of PyTorch's caching allocator. Use [New]; it is not safe for
// concurrent use.
type Allocator struct {
	front.View
	table
	front front.Front // its Stats has the figures that count lacks
	cfg   Config
	set   settings // the present ones of plan
	plan  planned
	limit device.Size // most bytes to hold; noLimit without a bound
	bar   device.Size // bytes held above which old segments are collected; noLimit for never
	total device.Size // bytes of the device; 0 if it does not report them

	limits, bars, ranges device.Span // values of limitAt, barAt and rangeAt with the same decisions so far

	src      device.Source
	info     device.MemoryInfo    // nil if the device has none
	streams  device.Streams       // nil if the device has no streams: all work finishes at once
	segments regions.Set          // plain segments; the label is the first block
	mem      regions.Memory       // expandable segments
	live     index.AddrBuckets    // live blocks by address
	tags     tiles.Column[uint64] // of live and pending blocks
	born     []uint64             // by block: the lookups of its side when it became free; nil without ages
	ranks    []uint64             // by block: its rank among those of its size; nil if the address decides
	births   uint64               // number of ranks given
	stuck    device.Size          // bytes of stuck blocks

	pools        []*pool // by id; the first is the default pool
	redirections []redirection
	shelves      []*shelf // by id
	spareShelves []uint32
	recent       [kinds]*shelf // shelf of the default pool that was used last, by kind

	waits

	count   counters
	history func(power.Action) // listener of the history; nil for none
	placer  *forecast.Placer   // made at first use
	largest index.MaxTree      // of the free blocks of each shelf

	changed bool        // the settings were changed
	before  device.Span // capacities with the same decisions by thresholds of earlier settings
}

// noLimit is a bound that is never reached.
const noLimit = ^device.Size(0)

var (
	_ alloc.Strategy       = (*Allocator)(nil)
	_ power.StreamRecorder = (*Allocator)(nil)
	_ power.Poller         = (*Allocator)(nil)
	_ power.PrivatePools   = (*Allocator)(nil)
	_ power.MemPools       = (*Allocator)(nil)
	_ power.Historian      = (*Allocator)(nil)
)

// New returns an allocator over src that holds nothing yet. It fails if c is invalid, with
// [device.ErrUnsupported] for expandable segments on a source without virtual memory, and for a
// memory fraction on a device of unknown capacity.
func New(src device.Source, c Config) (*Allocator, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	plan, err := c.plan()
	if err != nil {
		return nil, err
	}
	set, err := plan.present(c.Rules)
	if err != nil {
		return nil, err
	}
	a := &Allocator{
		table: newTable(), cfg: c, set: set, plan: plan, limit: noLimit, bar: noLimit, src: src, live: index.NewAddrBuckets(),
		pools: []*pool{{}},
	}
	a.View = a.front.Init(front.Limits{Most: mostRequest, Align: quantum}, func() (largest, bytes device.Size) {
		// Bytes that the device adds to a segment count as free, although they serve no request.
		return a.LargestFree(), a.held() - device.Size(a.count.bytes.held())
	})
	a.segments = regions.NewSet(src, &a.front.Stats)
	a.info, _ = device.MemoryInfoOf(src)
	a.streams, _ = device.StreamsOf(src)
	// The capacity of the device is queried once, as PyTorch does when the fraction is set.
	if a.info != nil {
		// After an error the capacity is unknown.
		_, a.total, _ = a.info.MemoryInfo()
	}
	if err := a.bound(); err != nil {
		return nil, err
	}
	if set.grew {
		vm, err := a.virtualMemory(&set)
		if err != nil {
			return nil, fmt.Errorf("caching: expandable segments: %w", err)
		}
		a.mem = regions.NewMemory(vm, &a.front.Stats)
	}
	a.count.maxSplit = int64(set.maxSplit)
	for k := range a.recent {
		a.recent[k] = a.shelfIn(a.pools[0], uint32(k), 0)
	}
	return a, nil
}

// virtualMemory returns the virtual memory for expandable segments. It fails with
// [device.ErrUnsupported] on a device without virtual memory, and if its pages do not fit.
func (a *Allocator) virtualMemory(set *settings) (device.VirtualMemory, error) {
	vm, ok := device.VirtualMemoryOf(a.src)
	if !ok {
		return nil, fmt.Errorf("the device has no virtual memory: %w", device.ErrUnsupported)
	}
	if g := vm.Granularity(); smallSegment%g != 0 || set.largeSegment%g != 0 {
		return nil, fmt.Errorf("need pages of %v and %v, the device has pages of %v", smallSegment, set.largeSegment, g)
	}
	return vm, nil
}

// bound computes the limit, and the held bytes above which garbage collection compares ages.
func (a *Allocator) bound() error {
	if a.set.limited {
		if a.total == 0 {
			return fmt.Errorf("caching: memory_fraction %v: the capacity of the device is unknown", a.set.fraction)
		}
		a.limit = a.set.limitAt(a.total)
		a.front.Stats.Limit = a.limit
	}
	a.watchAges()
	return nil
}

// watchAges computes the held bytes above which garbage collection compares ages.
func (a *Allocator) watchAges() {
	a.bar = noLimit
	switch {
	case a.set.gcThreshold == 0:
	case a.limit == noLimit && (!a.cfg.Mended || a.total == 0):
		// Without a memory fraction the original's threshold has no effect.
	default:
		a.bar = a.set.barAt(a.total)
		if a.born == nil {
			// Blocks that became free before the first lookup that counts are as old as it.
			a.born = make([]uint64, len(a.rows))
		}
	}
}

// CapacitySpan implements [power.Spanned].
func (a *Allocator) CapacitySpan() device.Span {
	return a.ranges.Of(rangeAt).Common(a.limits.Of(a.set.limitAt)).Common(a.bars.Of(a.set.barAt)).Common(a.before)
}

// Config returns the configuration with every default filled in.
func (a *Allocator) Config() Config { return a.cfg }

// Alloc implements [alloc.Allocator]. The package comment states its cost.
func (a *Allocator) Alloc(r alloc.Request) (alloc.Block, error) {
	if !a.front.Accepts(&r) {
		return alloc.Block{}, a.front.Refuse(&r)
	}
	// Pending blocks are polled before the search, so that completed ones serve at once. Events must
	// not be queried during a graph capture.
	if a.waiting > 0 && !a.capturing(r.Stream) {
		_, _ = a.process() // errors are retried at the next poll
	}
	n := a.set.round(r.Size)
	kind := uint32(large)
	if isSmall(n) {
		kind = small
	}
	sh := a.shelfFor(kind, r.Stream)
	h := a.lookup(sh, n)
	if h == none {
		var err error
		if h, err = a.obtain(sh, n); err != nil {
			a.count.ooms++
			err = a.front.OutOfMemory(&r, n, a.set.segmentSize(n), err)
			a.reportOOM(n, sh.stream)
			return alloc.Block{}, err
		}
		sh = a.shelfOf(h) // it may be one of a pool with use_on_oom
	}
	return a.grant(h, sh, n, &r), nil
}

// lookup removes the first free block for a rounded size from a shelf and returns it, or none.
func (a *Allocator) lookup(sh *shelf, n device.Size) handle {
	if a.bar != noLimit {
		sh.pool.sides[sh.kind].calls++
	}
	at := sh.free.Ceil(n)
	if at == index.NoEntry {
		return none
	}
	e := sh.free.Entry(at)
	if a.set.grew {
		var ok bool
		if e, ok = a.candidate(sh, e); !ok {
			return none
		}
		at = a.rows[e.Handle].link
	}
	// A block that is too large is refused, and with it all larger ones.
	if n < a.set.maxSplit && e.Size >= a.set.maxSplit || n >= a.set.maxSplit && e.Size-n >= a.set.maxRounding {
		return none
	}
	return sh.free.Take(at)
}

// grant splits a block, which is in no index and at least as large as the rounded size, and makes
// it the block of a request.
func (a *Allocator) grant(h handle, sh *shelf, n device.Size, r *alloc.Request) alloc.Block {
	c, kind := &a.count, sh.kind
	b := &a.rows[h]
	shared := b.isSplit()
	rest := b.size - n
	if rest >= sh.leastTail && (n < a.set.maxSplit || a.set.expandable) {
		tail := a.split(h, n)
		if a.ranks != nil {
			a.divided(h, tail, tail)
		}
		b = &a.rows[h] // the table may have moved
		a.shelve(tail, sh)
		switch {
		case b.grows(): // unmappable memory is not fragmented
		case shared:
			c.inactiveSplitSize.sub(kind, int64(n))
		default:
			c.inactiveSplit.add(kind, 1)
			c.inactiveSplitSize.add(kind, int64(rest))
		}
	} else if shared && !b.grows() {
		c.inactiveSplit.sub(kind, 1)
		c.inactiveSplitSize.sub(kind, int64(b.size))
	}
	size := b.size
	b.asked = r.Size
	b.become(live)
	a.enter(h)
	if a.born != nil {
		a.stamp(h, sh) // no two live blocks have the same lookup, unless none are counted
	}
	a.tags.Set(h, r.Tag, len(a.rows))
	a.countGrant(kind, r.Size, size)
	return alloc.Block{Addr: b.addr, Size: size, Ref: h}
}

// countGrant counts a block that was granted.
func (a *Allocator) countGrant(kind uint32, asked, size device.Size) {
	c, s := &a.count, &a.front.Stats
	c.blocks.add(kind, 1)
	c.bytes.add(kind, int64(size))
	c.asked.add(kind, int64(asked))
	if a.waiting > 0 {
		for _, u := range []*usage{&c.blocks, &c.bytes, &c.asked} {
			u.raise(kind)
		}
	}
	if size >= a.set.maxSplit {
		c.oversizeBlocks.add(large, 1)
	}
	s.LargestAlloc = max(s.LargestAlloc, size)
}

// enter adds a live block to the table of addresses, unless the table was dropped.
func (a *Allocator) enter(h handle) {
	// The table of addresses does not grow by itself, because its chains run through these rows.
	if a.live.Full() {
		if a.live.Dropped() {
			return
		}
		for _, h := range a.live.Double() {
			for h != none {
				b := &a.rows[h]
				after := b.link
				b.link = a.live.Enter(b.addr, h)
				h = after
			}
		}
	}
	b := &a.rows[h]
	b.link = a.live.Enter(b.addr, h)
}

// shelve enters a free block into the index of its shelf.
func (a *Allocator) shelve(h handle, sh *shelf) {
	b := &a.rows[h]
	b.home = b.home&growsBit | sh.id<<shelfBit
	b.link = sh.free.Insert(b.size, a.key(h), h)
	if b.size > sh.most {
		sh.most = b.size
		a.largest.Raise(sh.id, b.size)
	}
	if a.born != nil {
		a.stamp(h, sh)
	}
}

// restore adds the live blocks to the table of addresses after it was dropped.
func (a *Allocator) restore() {
	a.live.Restore(int(a.count.blocks.all()))
	for h := range a.rows {
		if a.is(handle(h), live) {
			a.enter(handle(h))
		}
	}
}

// find returns the link to the live block that starts at an address.
func (a *Allocator) find(at device.Addr) (link *uint32, err error) {
	if a.front.Closed() {
		return nil, alloc.ErrClosed
	}
	if a.live.Dropped() {
		a.restore()
	}
	link = a.live.Of(at)
	for *link != none && a.rows[*link].addr != at {
		link = &a.rows[*link].link
	}
	if *link == none {
		return nil, alloc.ErrInvalidFree
	}
	return link, nil
}

// Free implements [alloc.Allocator]. A block that other streams use is pending until they have
// finished the work queued on them now. The package comment states its cost.
func (a *Allocator) Free(at device.Addr) error {
	link, err := a.find(at)
	if err != nil {
		return err
	}
	h := *link
	*link = a.rows[h].link
	a.live.Left()
	a.release(h)
	return nil
}

// FreeRef implements [power.Referenced]. It costs the same as Free without the search.
func (a *Allocator) FreeRef(b alloc.Block) error {
	h := b.Ref
	switch {
	case h == none:
		return a.Free(b.Addr)
	case a.front.Closed():
		return alloc.ErrClosed
	case int(h) >= len(a.rows) || a.rows[h].addr != b.Addr || a.rows[h].state() != live:
		return alloc.ErrInvalidFree
	}
	if !a.live.Dropped() && !a.live.Drop() {
		link := a.live.Of(b.Addr)
		for *link != h {
			link = &a.rows[*link].link
		}
		*link = a.rows[h].link
		a.live.Left()
	}
	a.release(h)
	return nil
}

// release frees a live block that was removed from the table of addresses.
func (a *Allocator) release(h handle) {
	b, sh, c := &a.rows[h], a.shelfOf(h), &a.count
	if b.size >= a.set.maxSplit {
		c.oversizeBlocks.sub(large, 1)
	}
	if b.home&usedBit != 0 {
		a.postpone(h, sh.kind)
		return
	}
	c.blocks.sub(sh.kind, 1)
	c.bytes.sub(sh.kind, int64(b.size))
	c.asked.sub(sh.kind, int64(b.asked))
	a.finish(h, sh)
}

// finish makes an unused block, which is no longer counted, free and coalesces it.
func (a *Allocator) finish(h handle, sh *shelf) {
	b := &a.rows[h]
	c, kind := &a.count, sh.kind
	// Both states are read before either branch, which are unpredictable, so that the CPU can overlap
	// the misses.
	after, before := a.is(b.next, free), a.is(b.prev, free)
	// Merging and freeing count as one change: the sums of increases and decreases get the net result.
	var blocks, bytes int64 // change of inactive split blocks
	if after {
		next := &a.rows[b.next]
		blocks--
		bytes -= int64(next.size)
		sh.free.Take(next.link)
		a.absorb(h)
	}
	if before {
		asked, p := b.asked, b.prev
		prev := &a.rows[p]
		blocks--
		bytes -= int64(prev.size)
		sh.free.Take(prev.link)
		a.merged(p, h)
		a.absorb(p)
		h, b = p, prev
		b.asked = asked // PyTorch keeps the record of the block freed last
	}
	a.shelve(h, sh)
	if b.grows() {
		return
	}
	if b.isSplit() {
		blocks++
		bytes += int64(b.size)
	}
	c.inactiveSplit.change(kind, blocks)
	c.inactiveSplitSize.change(kind, bytes)
}
