package postmortem

import (
	"cmp"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Cause is the reason of a refusal.
type Cause string

// The causes. If several apply, the first that alone explains the refusal is reported.
const (
	CauseNone      Cause = "none"       // nothing was refused
	CauseAgain     Cause = "again"      // a free chunk would serve, but the allocator did not look again
	CauseDevice    Cause = "device"     // the device had enough free memory, and refused
	CauseTooLittle Cause = "too little" // all free bytes together are too few
	CauseRounding  Cause = "rounding"   // without rounding they would be enough
	CauseStream    Cause = "stream"     // the free memory is for other streams
	CausePending   Cause = "pending"    // freed memory is still used by a stream
	CausePool      Cause = "pool"       // the free memory is in private pools
	CauseApart     Cause = "apart"      // adjacent free chunks would be enough, but are kept apart
	CauseKind      Cause = "kind"       // the free memory is for other sizes
	CauseSegment   Cause = "segment"    // the device has room for the block, but more is requested from it
	CauseScattered Cause = "scattered"  // free memory is sufficient, but not contiguous
)

// Report explains why a request ran out of memory. Sizes are bytes.
type Report struct {
	Cause   Cause  `json:"cause"`   // the cause
	Verdict string `json:"verdict"` // as a sentence

	Requester *Owner        `json:"asker,omitempty"` // origin of the request; absent: unknown
	Requested device.Size   `json:"requested_bytes"` // requested
	Block     device.Size   `json:"block_bytes"`     // smallest free chunk that would have served
	Segment   device.Size   `json:"segment_bytes"`   // requested from the device; 0: nothing
	Stream    device.Stream `json:"stream"`          // of the request
	Pool      alloc.PoolID  `json:"pool"`            // its private pool; 0: none
	Capacity  device.Size   `json:"capacity_bytes"`  // of the device; 0: unknown
	// free on the device, or below the allocator's limit; absent: unknown
	Device *device.Size `json:"device_free_bytes,omitempty"`

	Reserved  device.Size    `json:"reserved_bytes"`           // reserved from the device
	Live      Amount         `json:"live"`                     // live blocks
	Wanted    device.Size    `json:"live_requested_bytes"`     // requested size of live blocks
	Loss      device.Size    `json:"rounding_loss_bytes"`      // rounding of live blocks
	Free      Amount         `json:"free"`                     // free chunks
	Largest   device.Size    `json:"largest_hole_bytes"`       // largest free chunk
	External  float64        `json:"external_fragmentation"`   // 1 - largest free chunk / free bytes
	Usable    Amount         `json:"usable"`                   // free chunks that could become part of the block
	UsableTop device.Size    `json:"largest_usable_bytes"`     // largest of them
	Streams   []Share        `json:"streams"`                  // by stream, without private pools
	Pools     []Share        `json:"private_pools,omitempty"`  // by private pool
	OtherKind Amount         `json:"other_sizes"`              // free chunks of the request's stream for other sizes
	KindTop   device.Size    `json:"largest_other_size_bytes"` // largest of them
	Pending   Amount         `json:"pending"`                  // freed blocks still used by a stream
	Cached    Amount         `json:"set_aside"`                // chunks cached for requests of their size
	Lost      device.Size    `json:"slack_bytes"`              // memory that can never be granted
	Empty     Amount         `json:"empty_regions"`            // unused regions outside of private pools
	Pinned    Amount         `json:"pinned"`                   // free chunks in regions in use
	Pins      []PinningOwner `json:"pinned_by"`                // owners of blocks in those regions, most bytes first
	Plans     []Plan         `json:"plans"`                    // ways to make room, cheapest first

	serves device.Size // largest free chunk that would have served; 0: none
	apart  bool        // adjacent free chunks would have served
	stream top         // free chunks for other streams
	pool   top         // free chunks in other pools
}

// top is the total and the largest size of some chunks.
type top struct{ bytes, largest device.Size }

func (t *top) add(n device.Size) {
	t.bytes += n
	t.largest = max(t.largest, n)
}

// Amount is a number of items and their size.
type Amount struct {
	Count int         `json:"count"` // number
	Bytes device.Size `json:"bytes"` // total bytes
}

func (a *Amount) add(n device.Size) {
	a.Count++
	a.Bytes += n
}

// Share is the memory of a stream or private pool. Sizes are bytes.
type Share struct {
	Stream   device.Stream `json:"stream"`             // the stream; for a private pool, of its first chunk
	Pool     alloc.PoolID  `json:"pool,omitempty"`     // private pool; 0: none
	Reserved device.Size   `json:"reserved_bytes"`     // reserved
	Free     device.Size   `json:"free_bytes"`         // free
	Largest  device.Size   `json:"largest_hole_bytes"` // largest free chunk
	Usable   device.Size   `json:"usable_bytes"`       // free and usable for the request
	Pending  device.Size   `json:"pending_bytes"`      // freed, but still used by a stream
}

// PinningOwner is an owner of blocks that keep partly free regions from being returned. A region
// with blocks of several owners counts for each.
type PinningOwner struct {
	Stack       []string    `json:"stack,omitempty"`    // allocation stack
	Tag         string      `json:"tag,omitempty"`      // tag in the trace
	Pinned      device.Size `json:"pinned_bytes"`       // free bytes in regions with its blocks
	PinnedAlone device.Size `json:"pinned_alone_bytes"` // of them: in regions with blocks of no other owner
	Regions     int         `json:"region_count"`       // number of such regions
	Blocks      Amount      `json:"blocks"`             // its blocks there
	Oldest      int         `json:"oldest_age_events"`  // age of the oldest of them

	last int // region counted last, from 1
}

// Explain explains why a request did not fit in a heap, and finds ways to make room. who may be
// nil. It is deterministic. O(chunks log chunks), plus a bounded search for the least set of
// regions.
func Explain(h *Heap, n Need, who OwnerLookup) *Report {
	if who == nil {
		who = func(tag uint64) Owner { return Owner{ID: tag, Born: -1} }
	}
	r := &Report{
		Requested: n.Request.Size, Block: n.Block, Segment: n.Segment, Stream: n.Request.Stream, Pool: n.Pool,
		Capacity: h.Capacity, Device: h.DeviceFree,
	}
	regions := h.regions(&n)
	for i := range regions {
		r.count(&regions[i], &n)
	}
	if r.Free.Bytes > 0 {
		r.External = 1 - float64(r.Largest)/float64(r.Free.Bytes)
	}
	slices.SortFunc(r.Streams, func(a, b Share) int { return cmp.Compare(a.Stream, b.Stream) })
	slices.SortFunc(r.Pools, func(a, b Share) int { return cmp.Compare(a.Pool, b.Pool) })
	r.pins(regions, who)
	r.plans(regions, &n)
	for i := range r.Plans {
		for k := range r.Plans[i].Blocks {
			b := &r.Plans[i].Blocks[k]
			b.Owner = who(b.Tag)
		}
	}
	has := device.Size(0)
	if n.Returns {
		has = loose(regions)
	}
	r.judge(has)
	return r
}

func (r *Report) share(c *alloc.Chunk) *Share {
	list := &r.Streams
	if c.Pool != 0 {
		list = &r.Pools
	}
	i := slices.IndexFunc(*list, func(s Share) bool { return s.Pool == c.Pool && (c.Pool != 0 || s.Stream == c.Stream) })
	if i < 0 {
		i = len(*list)
		*list = append(*list, Share{Stream: c.Stream, Pool: c.Pool})
	}
	return &(*list)[i]
}

func (r *Report) count(g *region, n *Need) {
	r.Reserved += g.held
	if g.empty() && g.pool == 0 && g.held > 0 {
		r.Empty.add(g.held)
	}
	for i := range g.chunks {
		c := &g.chunks[i]
		if !c.State.Held() {
			continue
		}
		s := r.share(c)
		s.Reserved += c.Size
		switch c.State {
		case alloc.Free:
			r.hole(c, n, s)
			if !g.empty() {
				r.Pinned.add(c.Size)
			}
		case alloc.Live:
			r.Live.add(c.Size)
			r.Wanted += c.Requested
			r.Loss += c.Size - min(c.Requested, c.Size)
		case alloc.Pending:
			r.Pending.add(c.Size)
			s.Pending += c.Size
		case alloc.Cached:
			r.Cached.add(c.Size)
		case alloc.Slack:
			r.Lost += c.Size
		}
	}
}

func (r *Report) hole(c *alloc.Chunk, n *Need, s *Share) {
	r.Free.add(c.Size)
	r.Largest = max(r.Largest, c.Size)
	s.Free += c.Size
	s.Largest = max(s.Largest, c.Size)
	switch n.obstacle(*c) {
	case usable:
		r.Usable.add(c.Size)
		r.UsableTop = max(r.UsableTop, c.Size)
		s.Usable += c.Size
		if n.fits(*c) {
			r.serves = max(r.serves, c.Size)
		}
	case otherStream:
		r.stream.add(c.Size)
	case otherPool:
		r.pool.add(c.Size)
	case otherKind:
		r.OtherKind.add(c.Size)
		r.KindTop = max(r.KindTop, c.Size)
	}
}

// pins finds the owners of blocks in partly free regions.
func (r *Report) pins(regions []region, who OwnerLookup) {
	type key struct{ stack, tag string }
	places := map[key]int{}
	for i := range regions {
		g := &regions[i]
		if g.empty() || g.free == 0 {
			continue
		}
		var here []int // indices of the owners in this region
		for k := range g.chunks {
			c := &g.chunks[k]
			if !inUse(c) {
				continue
			}
			o := who(c.Tag)
			id := key{strings.Join(o.Stack, "\n"), o.Tag}
			if len(o.Stack) > 0 {
				id.tag = ""
			}
			at, ok := places[id]
			if !ok {
				at = len(r.Pins)
				places[id] = at
				r.Pins = append(r.Pins, PinningOwner{Stack: o.Stack, Tag: id.tag})
			}
			p := &r.Pins[at]
			p.Blocks.add(c.Size)
			p.Oldest = max(p.Oldest, o.Age)
			if p.last != i+1 {
				p.last = i + 1
				here = append(here, at)
			}
		}
		for _, at := range here {
			r.Pins[at].pin(g.free, len(here) == 1)
		}
	}
	slices.SortStableFunc(r.Pins, func(a, b PinningOwner) int {
		return cmp.Or(cmp.Compare(b.Pinned, a.Pinned), cmp.Compare(b.PinnedAlone, a.PinnedAlone),
			cmp.Compare(a.Name(), b.Name()))
	})
}

// Name returns a short name, as [Owner.Name].
func (p *PinningOwner) Name() string { return (&Owner{Stack: p.Stack, Tag: p.Tag}).Name() }

func (p *PinningOwner) pin(free device.Size, alone bool) {
	p.Regions++
	p.Pinned += free
	if alone {
		p.PinnedAlone += free
	}
}

// plans finds ways to make room.
func (r *Report) plans(regions []region, n *Need) {
	r.Plans = []Plan{}
	p, apart := n.hole(regions)
	if p != nil {
		r.Plans = append(r.Plans, *p)
	}
	r.apart = apart
	if missing, ok := r.missing(regions, n); ok && missing > 0 {
		if p := n.back(regions, missing); p != nil {
			r.Plans = append(r.Plans, *p)
		}
		if p := n.pages(regions, missing); p != nil {
			r.Plans = append(r.Plans, *p)
		}
	}
	slices.SortStableFunc(r.Plans, func(a, b Plan) int {
		return cost{a.Count, a.Bytes, a.Waits}.compare(cost{b.Count, b.Bytes, b.Waits})
	})
}

// missing returns the bytes the device lacks for the segment after all unused memory has been
// returned; false if that is unknown or nothing is returned.
func (r *Report) missing(regions []region, n *Need) (device.Size, bool) {
	if r.Device == nil || n.Segment == 0 || !n.Returns {
		return 0, false
	}
	has := *r.Device + loose(regions)
	if has >= n.Segment {
		return 0, true
	}
	return n.Segment - has, true
}

// loose returns the bytes of unused regions and pages outside of private pools.
func loose(regions []region) (n device.Size) {
	for i := range regions {
		g := &regions[i]
		switch {
		case g.pool != 0 || g.stuck:
		case g.page != 0:
			n += loosePages(g.chunks, g.page)[len(g.chunks)]
		case g.empty():
			n += g.held
		}
	}
	return n
}
