package streampool

import (
	"errors"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// Quantum in bytes is what sizes are rounded up to and blocks start at multiples of, as CUDA's do.
const Quantum device.Size = 512

// Page in bytes is what large regions are rounded up to: a page of drivers.
const Page = 2 * device.MiB

// DefaultRegion in bytes is the smallest region unless Config says otherwise, as that of CUDA's
// pools.
const DefaultRegion = 32 * device.MiB

// MaxRequest in bytes is the largest request: no device has more, and no sum overflows.
const MaxRequest device.Size = 1 << 60

// ErrLimit says that Config.Limit leaves no room.
var ErrLimit = errors.New("streampool: the limit leaves no room")

// Config says how a pool works.
type Config struct {
	Region        device.Size // smallest region, in bytes, a multiple of Quantum
	Limit         device.Size // most to hold of the source; 0 for no bound
	Threshold     device.Size // regions without a block go back above this when the pool is polled
	FollowEvents  bool        // reuse what a wait made safe
	ReuseFinished bool        // reuse what is found to be finished
	InsertWaits   bool        // make a stream wait to reuse what another freed
}

// Request is what a block is for.
type Request struct {
	Size   device.Size   // bytes wanted: at least 1, at most MaxRequest
	Align  device.Size   // power of two of at most MaxRequest, or zero
	Stream device.Stream // that will use it
	Tag    uint64        // carried
}

// Stats are the figures of a pool. Sizes are bytes.
type Stats struct {
	Reserved, ReservedHigh device.Size // of regions: now, and at most
	Used, UsedHigh         device.Size // of live blocks: now, and at most
	Pending                device.Size // of freed blocks that other streams still use
	Slack                  device.Size // at the ends of regions, too small for a chunk
	Regions                int         // regions held
	Live                   int         // live blocks
	Reserves               uint64      // regions that the source granted
	ReserveFailures        uint64      // regions that it refused
	Releases               uint64      // regions that went back
	Waits                  uint64      // waits that were inserted
	Syncs                  uint64      // times that the device was synchronised to find memory
}

// Free returns the bytes of free chunks.
func (s *Stats) Free() device.Size { return s.Reserved - s.Used - s.Pending - s.Slack }

// region is what is kept of one beside its address.
type region struct {
	size  device.Size
	first Handle
}

// Pool is a stream-ordered pool. Use [New]; it is not safe for concurrent use.
type Pool struct {
	// Config may be changed between calls.
	Config Config

	src      device.Source
	streams  device.Streams // nil: all is done at once
	timeline device.Timeline

	table
	live    index.AddrBuckets // of the starts of live chunks
	regions index.AddrList[region]
	groups  []group       // groups[0] is nobody
	busy    index.BitSet  // groups of streams that have a free chunk or a mark that a pending chunk waits for
	largest index.MaxTree // of the free chunks of each group
	index   index.AddrMap
	marks   marks
	uses    uses
	stats   Stats
	asked   device.Size
}

// group is a stream with what belongs to it.
type group struct {
	stream         device.Stream
	free           index.SizeMap
	oldest, newest Handle // queue of the free chunks
	firstUse       use    // queue of the marks that pending chunks have on the stream
	lastUse        use
}

// nobody is the group of what is finished.
const nobody = 0

// New returns an empty pool over src. What streams and timeline src has is used.
func New(src device.Source, c Config) *Pool {
	p := &Pool{
		Config: c, src: src, table: newTable(), live: index.NewAddrBuckets(), index: index.NewAddrMap(),
		groups: []group{{free: index.NewSizeMap(Quantum)}}, marks: newMarks(), uses: newUses(),
	}
	p.streams, _ = device.StreamsOf(src)
	p.timeline, _ = device.TimelineOf(src)
	return p
}

// Stats returns the figures. O(1).
func (p *Pool) Stats() Stats { return p.stats }

// ResetHighs brings the high-water marks of the bytes reserved, or of those used, down to the
// present values.
func (p *Pool) ResetHighs(reserved, used bool) {
	if reserved {
		p.stats.ReservedHigh = p.stats.Reserved
	}
	if used {
		p.stats.UsedHigh = p.stats.Used
	}
}

// Asked returns the bytes of the last region that Alloc tried to take, 0 if it tried none.
func (p *Pool) Asked() device.Size { return p.asked }

// LargestFree returns the size of the largest free chunk. O(log streams), amortized.
func (p *Pool) LargestFree() device.Size {
	if p.groups == nil { // closed
		return 0
	}
	return p.largest.Max(func(g uint32) device.Size { return p.groups[g].free.Largest() })
}

func (p *Pool) groupOf(s device.Stream) uint32 {
	first := p.index.First(device.Addr(s))
	for g := first; g != index.NoHandle; g = p.index.Next(g) {
		if p.groups[g].stream == s {
			return g
		}
	}
	g := uint32(len(p.groups))
	p.groups = append(p.groups, group{stream: s, free: index.NewSizeMap(Quantum)})
	p.busy.Grow(len(p.groups))
	p.index.Put(device.Addr(s), g, func(h uint32) device.Addr { return device.Addr(p.groups[h].stream) })
	return g
}

// Alloc grants a block. The error is [ErrLimit] or the source's; then no block has changed, but
// chunks may have been finished and merged and regions may have gone back.
//
// Precondition: the request is within its bounds.
func (p *Pool) Alloc(r Request) (Handle, error) {
	n, g := device.AlignUp(r.Size, Quantum), p.groupOf(r.Stream)
	p.asked = 0
	h := p.reuse(n, r.Align, g)
	if h == None {
		var err error
		if h, err = p.grow(n, r.Align, g); err != nil {
			return None, err
		}
	}
	return p.grant(h, n, g, &r), nil
}

// grant cuts a free chunk, in no map and no queue, to size and makes it live.
func (p *Pool) grant(h Handle, n device.Size, g uint32, r *Request) Handle {
	if pad := padOf(p.rows[h].addr, r.Align); pad != 0 {
		rest := p.split(h, pad)
		p.shelve(h)
		h = rest
	}
	if p.rows[h].size > n {
		p.shelve(p.split(h, n))
	}
	p.release(h)
	if p.live.Full() {
		p.rehash()
	}
	w := &p.rows[h]
	w.state, w.group, w.requested, w.tag, w.chain = Live, g, r.Size, r.Tag, p.live.Enter(w.addr, h)
	p.stats.Live++
	p.stats.Used += w.size
	p.stats.UsedHigh = max(p.stats.UsedHigh, p.stats.Used)
	return h
}

func (p *Pool) release(h Handle) {
	p.marks.drop(p.rows[h].mark)
	p.rows[h].mark = noMark
}

// padOf returns the bytes from an address to the next multiple of align, which may be 0.
func padOf(a device.Addr, align device.Size) device.Size {
	return device.Size(-a) & (max(align, 1) - 1)
}

// Find returns the live chunk that starts at an address, [None] if there is none. O(1).
func (p *Pool) Find(a device.Addr) Handle {
	h := *p.live.Of(a)
	for h != None && p.rows[h].addr != a {
		h = p.rows[h].chain
	}
	return h
}

func (p *Pool) unlist(h Handle) {
	link := p.live.Of(p.rows[h].addr)
	for *link != h {
		link = &p.rows[*link].chain
	}
	*link = p.rows[h].chain
	p.live.Left()
}

func (p *Pool) rehash() {
	for _, h := range p.live.Double() {
		for h != None {
			next := p.rows[h].chain
			p.rows[h].chain = p.live.Enter(p.rows[h].addr, h)
			h = next
		}
	}
}

// Free gives a live block back once the work queued on a stream has finished, and that on
// the streams that [Pool.Use] told of.
func (p *Pool) Free(h Handle, s device.Stream) {
	p.unlist(h)
	g := p.groupOf(s)
	w := &p.rows[h]
	size := w.size
	p.stats.Live--
	p.stats.Used -= size
	if p.streams == nil {
		p.forgetUses(h)
		p.finish(h)
		return
	}
	w.group, w.mark = g, p.newMark(g)
	if p.await(h) {
		p.rows[h].state = Pending
		p.stats.Pending += size
		return
	}
	p.settle(h)
}

// settle makes a chunk, in no map and no queue, that of its stream, with the neighbours that it
// takes along.
func (p *Pool) settle(h Handle) {
	g := p.rows[h].group
	p.vacate(h)
	h = p.gather(h, func(n *row) bool { return n.group == g || n.group == nobody })
	p.shelve(h)
}

// finish makes a chunk, in no map and no queue, that of nobody, with the neighbours that are.
func (p *Pool) finish(h Handle) {
	p.release(h)
	p.vacate(h)
	p.rows[h].group = nobody
	p.shelve(p.gather(h, func(n *row) bool { return n.group == nobody }))
}

// vacate makes a chunk a free one that nothing was asked of.
func (p *Pool) vacate(h Handle) {
	w := &p.rows[h]
	w.state, w.requested, w.tag = Free, 0, 0
}

// gather joins a chunk, in no map and no queue, with the free neighbours that are wanted. The
// later mark holds.
func (p *Pool) gather(h Handle, wanted func(*row) bool) Handle {
	for {
		b := p.rows[h].prev
		if b == None || p.rows[b].state != Free || !wanted(&p.rows[b]) {
			break
		}
		p.unshelve(b)
		p.takeAlong(b, h)
		h = b
	}
	for {
		b := p.rows[h].next
		if b == None || p.rows[b].state != Free || !wanted(&p.rows[b]) {
			return h
		}
		p.unshelve(b)
		p.takeAlong(h, b)
	}
}

// takeAlong joins two neighbours. The whole belongs to whom the one with the later mark does.
func (p *Pool) takeAlong(left, right Handle) {
	l, r := &p.rows[left], &p.rows[right]
	if l.mark == noMark || r.mark != noMark && p.marks.later(r.mark, l.mark) {
		l.mark, r.mark = r.mark, l.mark
	}
	l.group = max(l.group, r.group) // they are equal, or one is nobody's
	p.release(right)
	p.join(left, right)
}

// shelve enters a free chunk into the map, and the queue, of whom it belongs to.
func (p *Pool) shelve(h Handle) {
	w := &p.rows[h]
	g := &p.groups[w.group]
	if w.group != nobody {
		p.enqueue(g, h)
		if w.older == None {
			p.busy.Add(w.group)
		}
	}
	w.at = g.free.Insert(w.size, w.addr, h)
	p.largest.Raise(w.group, w.size)
}

// unshelve is shelve taken back. The chunk keeps its mark.
func (p *Pool) unshelve(h Handle) {
	w := &p.rows[h]
	g := &p.groups[w.group]
	if !g.free.Remove(w.at, h) {
		panic("streampool: invariant Q3 (the maps hold the free chunks): the chunk at " + w.addr.String() + " is in none")
	}
	if w.group != nobody {
		p.dequeue(g, h)
		p.idle(w.group)
	}
}

// idle takes a group out of the busy ones if nothing belongs to its stream and nothing waits for
// it.
func (p *Pool) idle(g uint32) {
	if q := &p.groups[g]; q.oldest == None && q.firstUse == noUse {
		p.busy.Remove(g)
	}
}
