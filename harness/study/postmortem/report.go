package postmortem

import (
	"cmp"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Cause is why there was no room, in a word.
type Cause string

// The causes. Where several hold, the first one that alone explains the refusal is named.
const (
	CauseNone      Cause = "none"       // there is room: nothing was refused
	CauseAgain     Cause = "again"      // a free chunk would serve: the allocator did not look once more
	CauseDevice    Cause = "device"     // the device had room for what it was asked for, and refused
	CauseTooLittle Cause = "too little" // all free bytes together would not be enough
	CauseRounding  Cause = "rounding"   // they would be enough without what blocks have beyond their requests
	CauseStream    Cause = "stream"     // what is free serves other streams
	CausePending   Cause = "pending"    // what was given back is still used by a stream
	CausePool      Cause = "pool"       // what is free lies in private pools
	CauseApart     Cause = "apart"      // free chunks side by side would be enough, and are kept apart
	CauseKind      Cause = "kind"       // what is free serves requests of other sizes
	CauseSegment   Cause = "segment"    // the device has room for the block, and is asked for more than that
	CauseScattered Cause = "scattered"  // what is free would be enough, in one piece
)

// Report says why a request found no memory. Sizes are bytes.
type Report struct {
	Cause   Cause  `json:"cause"`   // in a word
	Verdict string `json:"verdict"` // in a sentence

	Asker     *Owner        `json:"asker,omitempty"` // who asked; absent: not known
	Requested device.Size   `json:"requested_bytes"` // asked for
	Block     device.Size   `json:"block_bytes"`     // smallest free chunk that would have served
	Segment   device.Size   `json:"segment_bytes"`   // what the device was asked for; 0: nothing
	Stream    device.Stream `json:"stream"`          // of the request
	Pool      alloc.PoolID  `json:"pool"`            // private pool of the request; 0: none
	Capacity  device.Size   `json:"capacity_bytes"`  // of the device; 0: not known
	// what the device or the allocator's bound had left; absent: not known
	Device *device.Size `json:"device_free_bytes,omitempty"`

	Reserved  device.Size `json:"reserved_bytes"`           // held from the device
	Live      Amount      `json:"live"`                     // blocks that the program has
	Wanted    device.Size `json:"live_requested_bytes"`     // what it asked for them
	Loss      device.Size `json:"rounding_loss_bytes"`      // granted to them beyond that
	Free      Amount      `json:"free"`                     // free chunks, wherever they lie
	Largest   device.Size `json:"largest_hole_bytes"`       // largest of them
	External  float64     `json:"external_fragmentation"`   // share of the free bytes that the largest one does not have
	Usable    Amount      `json:"usable"`                   // free chunks that may become part of what serves the request
	UsableTop device.Size `json:"largest_usable_bytes"`     // largest of them
	Streams   []Share     `json:"streams"`                  // by stream, private pools left out
	Pools     []Share     `json:"private_pools,omitempty"`  // by private pool
	OtherKind Amount      `json:"other_sizes"`              // free chunks of the request's stream that serve other sizes
	KindTop   device.Size `json:"largest_other_size_bytes"` // largest of them
	Pending   Amount      `json:"pending"`                  // blocks that were given back and a stream still uses
	Cached    Amount      `json:"set_aside"`                // chunks set aside for requests of their size
	Lost      device.Size `json:"slack_bytes"`              // memory that can never be granted
	Empty     Amount      `json:"empty_regions"`            // regions that nobody uses, outside of private pools
	Pinned    Amount      `json:"pinned"`                   // free chunks in regions that somebody uses
	Pins      []Pin       `json:"pinned_by"`                // who uses those regions, most bytes first
	Plans     []Plan      `json:"plans"`                    // what would have made room, the cheapest first

	serves device.Size // largest free chunk that would have served; 0: none
	apart  bool        // free chunks side by side would have served
	stream top         // free chunks that serve other streams
	pool   top         // free chunks in other pools
}

// top is the bytes of some chunks and the largest of them.
type top struct{ bytes, largest device.Size }

func (t *top) add(n device.Size) {
	t.bytes += n
	t.largest = max(t.largest, n)
}

// Amount is a number of things and their bytes.
type Amount struct {
	Count int         `json:"count"` // how many
	Bytes device.Size `json:"bytes"` // bytes of all
}

func (a *Amount) add(n device.Size) {
	a.Count++
	a.Bytes += n
}

// Share is the memory of one stream or private pool. Sizes are bytes.
type Share struct {
	Stream   device.Stream `json:"stream"`             // which; of a private pool that of its first chunk
	Pool     alloc.PoolID  `json:"pool,omitempty"`     // private pool; 0: none
	Reserved device.Size   `json:"reserved_bytes"`     // held for it
	Free     device.Size   `json:"free_bytes"`         // of that free
	Largest  device.Size   `json:"largest_hole_bytes"` // largest free chunk
	Usable   device.Size   `json:"usable_bytes"`       // free bytes that the request may use
	Pending  device.Size   `json:"pending_bytes"`      // given back, a stream still uses it
}

// Pin is who keeps regions that are partly free from going back. Regions with blocks of several
// count for each.
type Pin struct {
	Stack   []string    `json:"stack,omitempty"`    // where the program asked for the blocks
	Tag     string      `json:"tag,omitempty"`      // what the trace calls them
	Pinned  device.Size `json:"pinned_bytes"`       // free bytes in regions with a block of it
	Alone   device.Size `json:"pinned_alone_bytes"` // of that in regions with blocks of no other
	Regions int         `json:"region_count"`       // those regions
	Blocks  Amount      `json:"blocks"`             // its blocks in them
	Oldest  int         `json:"oldest_age_events"`  // age of the oldest of these blocks

	last int // region counted last, from 1
}

// Explain says why the request of a need found no room in a heap, and what would have made some.
// who may be nil. The same heap gives the same report. O(chunks log chunks), and a bounded search
// for the least set of regions.
func Explain(h *Heap, n Need, who Who) *Report {
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

// pins finds who keeps free bytes in regions that are partly used.
func (r *Report) pins(regions []region, who Who) {
	type key struct{ stack, tag string }
	places := map[key]int{}
	for i := range regions {
		g := &regions[i]
		if g.empty() || g.free == 0 {
			continue
		}
		var here []int // places of who has blocks in it
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
				r.Pins = append(r.Pins, Pin{Stack: o.Stack, Tag: id.tag})
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
	slices.SortStableFunc(r.Pins, func(a, b Pin) int {
		return cmp.Or(cmp.Compare(b.Pinned, a.Pinned), cmp.Compare(b.Alone, a.Alone), cmp.Compare(a.Name(), b.Name()))
	})
}

// Name returns a short name for lists, as [Owner.Name] does.
func (p *Pin) Name() string { return (&Owner{Stack: p.Stack, Tag: p.Tag}).Name() }

func (p *Pin) pin(free device.Size, alone bool) {
	p.Regions++
	p.Pinned += free
	if alone {
		p.Alone += free
	}
}

// plans finds what would have made room.
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

// missing returns what the device lacks for the segment, after all that goes back by itself; false
// if that is not known, or nothing goes back.
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

// loose returns the bytes that go back by themselves: empty regions and pages, outside of private
// pools.
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
