package streampool

import (
	"errors"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// Quantum in bytes is the alignment of sizes and addresses, as in CUDA.
const Quantum device.Size = 512

// Page in bytes is the page size of drivers. Large regions are multiples of it.
const Page = 2 * device.MiB

// DefaultRegion in bytes is the default of Config.Region, as in CUDA's pools.
const DefaultRegion = 32 * device.MiB

// MaxRequest in bytes is the largest request: no device has more, and no sum overflows.
const MaxRequest device.Size = 1 << 60

// ErrLimit is the error of a request that would exceed Config.Limit.
var ErrLimit = errors.New("streampool: limit exceeded")

// Config is the policy of a pool.
type Config struct {
	Region        device.Size // smallest region, in bytes, a multiple of Quantum
	Limit         device.Size // most bytes to reserve; 0 for no bound
	Threshold     device.Size // bytes: Poll releases empty regions above this
	FollowEvents  bool        // reuse chunks that a wait between streams made safe
	ReuseFinished bool        // reuse chunks whose marks are done
	InsertWaits   bool        // make a stream wait in order to reuse another stream's chunk
}

// Request is a request for a block.
type Request struct {
	Size   device.Size   // bytes wanted: at least 1, at most MaxRequest
	Align  device.Size   // power of two of at most MaxRequest, or zero
	Stream device.Stream // stream that will use the block
	Tag    uint64        // label, copied into Chunk
}

// Stats are the figures of a pool. Sizes are bytes.
type Stats struct {
	Reserved, ReservedHigh device.Size // bytes of regions: now, and high-water mark
	Used, UsedHigh         device.Size // bytes of live blocks: now, and high-water mark
	Pending                device.Size // bytes of freed blocks that other streams still use
	Slack                  device.Size // bytes at the ends of regions, too small for a chunk
	Regions                int         // regions held
	Live                   int         // live blocks
	Reserves               uint64      // regions that the source granted
	ReserveFailures        uint64      // regions that the source refused
	Releases               uint64      // regions released
	Waits                  uint64      // waits that were inserted
	Syncs                  uint64      // device synchronizations to find memory
}

// Free returns the bytes of free chunks.
func (s *Stats) Free() device.Size { return s.Reserved - s.Used - s.Pending - s.Slack }

// region is the record of a region. Its address is the key in Pool.regions.
type region struct {
	size  device.Size
	first Handle
}

// Pool is a stream-ordered pool. Use [New]; it is not safe for concurrent use.
type Pool struct {
	// Config may be changed between calls.
	Config Config

	src      device.Source
	streams  device.Streams // nil: work counts as finished at once
	timeline device.Timeline

	table
	live    index.AddrBuckets // of the starts of live chunks
	regions index.AddrList[region]
	groups  []group       // groups[0] holds the unowned chunks
	busy    index.BitSet  // groups with a free chunk or a mark that a pending chunk waits for
	largest index.MaxTree // bound of the free chunk sizes of each group
	index   index.AddrMap
	marks   marks
	uses    uses
	stats   Stats
	asked   device.Size
	span    device.Span // limits with which every decision so far would have been the same
}

// group holds the free chunks and pending marks of a stream.
type group struct {
	stream         device.Stream
	free           index.SizeMap
	oldest, newest Handle // queue of the free chunks, by time of the free
	firstUse       use    // queue of the marks on the stream that pending chunks wait for
	lastUse        use
}

// unowned is the group of the chunks that every stream may use.
const unowned = 0

// New returns an empty pool over src. It uses the capabilities Streams and Timeline if src has
// them.
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

// ResetHighs resets the high-water marks of reserved bytes, used bytes or both to the current
// values.
func (p *Pool) ResetHighs(reserved, used bool) {
	if reserved {
		p.stats.ReservedHigh = p.stats.Reserved
	}
	if used {
		p.stats.UsedHigh = p.stats.Used
	}
}

// Asked returns the bytes of the last region that the last Alloc tried to reserve, 0 if it tried
// none.
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

// Alloc grants a block. The error is [ErrLimit] or the source's. After an error the live blocks are
// unchanged, but free chunks may have been coalesced and regions released.
//
// Precondition: size and alignment are within the bounds of [Request].
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

// grant splits a free chunk, which is in no map and no queue, to size and makes it live.
func (p *Pool) grant(h Handle, n device.Size, g uint32, r *Request) Handle {
	if pad := padOf(p.rows[h].addr, r.Align); pad != 0 {
		rest := p.split(h, pad)
		p.insertFree(h)
		h = rest
	}
	if p.rows[h].size > n {
		p.insertFree(p.split(h, n))
	}
	p.dropMark(h)
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

func (p *Pool) dropMark(h Handle) {
	p.marks.drop(p.rows[h].mark)
	p.rows[h].mark = noMark
}

// padOf returns the bytes from an address to the next multiple of align, which may be 0.
func padOf(a device.Addr, align device.Size) device.Size {
	return device.Size(-a) & (max(align, 1) - 1)
}

// Find returns the live chunk that starts at an address, or [None]. O(1).
func (p *Pool) Find(a device.Addr) Handle {
	h := *p.live.Of(a)
	for h != None && p.rows[h].addr != a {
		h = p.rows[h].chain
	}
	return h
}

// RegionOf returns the start of the region that a chunk lies in. O(log regions).
func (p *Pool) RegionOf(a device.Addr) device.Addr {
	at, found := p.regions.Search(a)
	if found {
		return a
	}
	e, _ := p.regions.Below(at)
	return e.Addr
}

func (p *Pool) removeLive(h Handle) {
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

// Free frees a live block on a stream. The memory is reusable once that stream and every stream
// recorded by [Pool.Use] have finished the work queued until now.
func (p *Pool) Free(h Handle, s device.Stream) {
	p.removeLive(h)
	g := p.groupOf(s)
	w := &p.rows[h]
	size := w.size
	p.stats.Live--
	p.stats.Used -= size
	if p.streams == nil {
		p.forgetUses(h)
		p.freeUnowned(h)
		return
	}
	w.group, w.mark = g, p.newMark(g)
	if p.recordWaits(h) {
		p.rows[h].state = Pending
		p.stats.Pending += size
		return
	}
	p.freeOwned(h)
}

// freeOwned makes a chunk, which is in no map and no queue, a free chunk of its stream and
// coalesces it.
func (p *Pool) freeOwned(h Handle) {
	g := p.rows[h].group
	p.resetFree(h)
	h = p.coalesce(h, func(n *row) bool { return n.group == g || n.group == unowned })
	p.insertFree(h)
}

// freeUnowned makes a chunk, which is in no map and no queue, a free unowned chunk and coalesces
// it.
func (p *Pool) freeUnowned(h Handle) {
	p.dropMark(h)
	p.resetFree(h)
	p.rows[h].group = unowned
	p.insertFree(p.coalesce(h, func(n *row) bool { return n.group == unowned }))
}

func (p *Pool) resetFree(h Handle) {
	w := &p.rows[h]
	w.state, w.requested, w.tag = Free, 0, 0
}

// coalesce joins a chunk, which is in no map and no queue, with adjacent free chunks for which
// wanted returns true.
func (p *Pool) coalesce(h Handle, wanted func(*row) bool) Handle {
	for {
		b := p.rows[h].prev
		if b == None || p.rows[b].state != Free || !wanted(&p.rows[b]) {
			break
		}
		p.removeFree(b)
		p.joinMarked(b, h)
		h = b
	}
	for {
		b := p.rows[h].next
		if b == None || p.rows[b].state != Free || !wanted(&p.rows[b]) {
			return h
		}
		p.removeFree(b)
		p.joinMarked(h, b)
	}
}

// joinMarked joins two adjacent chunks. The result has the later mark and its owner.
func (p *Pool) joinMarked(left, right Handle) {
	l, r := &p.rows[left], &p.rows[right]
	if l.mark == noMark || r.mark != noMark && p.marks.later(r.mark, l.mark) {
		l.mark, r.mark = r.mark, l.mark
	}
	l.group = max(l.group, r.group) // equal, or one is unowned
	p.dropMark(right)
	p.join(left, right)
}

// insertFree enters a free chunk into the map and the queue of its owner.
func (p *Pool) insertFree(h Handle) {
	w := &p.rows[h]
	g := &p.groups[w.group]
	if w.group != unowned {
		p.enqueue(g, h)
		if w.older == None {
			p.busy.Add(w.group)
		}
	}
	w.at = g.free.Insert(w.size, w.addr, h)
	p.largest.Raise(w.group, w.size)
}

// removeFree undoes insertFree. The chunk keeps its mark.
func (p *Pool) removeFree(h Handle) {
	w := &p.rows[h]
	g := &p.groups[w.group]
	if !g.free.Remove(w.at, h) {
		panic("streampool: invariant Q3 (the maps hold the free chunks): the chunk at " + w.addr.String() + " is in no map")
	}
	if w.group != unowned {
		p.dequeue(g, h)
		p.updateBusy(w.group)
	}
}

// updateBusy removes a group from busy if it has no free chunk and no pending mark.
func (p *Pool) updateBusy(g uint32) {
	if q := &p.groups[g]; q.oldest == None && q.firstUse == noUse {
		p.busy.Remove(g)
	}
}
