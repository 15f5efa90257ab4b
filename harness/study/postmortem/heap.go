package postmortem

import (
	"slices"
	"strings"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Heap is the memory of an allocator when it refused a request.
type Heap struct {
	Chunks     []alloc.Chunk // as from Walk: by region, then by address, without gaps inside a region
	Capacity   device.Size   // of the device; 0: unknown
	DeviceFree *device.Size  // free on the device, or below the allocator's limit; nil: unknown
}

// Need is what an allocator requires for a request, beyond what a walk shows.
type Need struct {
	Request alloc.Request // the request
	Pool    alloc.PoolID  // its private pool; 0: the default pool
	Block   device.Size   // size of the smallest free chunk that serves it
	Align   device.Size   // required alignment, from the start of the region; 0: none
	Segment device.Size   // size requested from the device if no chunk fits; 0: none is requested
	Returns bool          // unused regions are returned before a request is refused

	// Fits reports whether a free chunk of the request's pool serves a request; nil: if it has
	// Block bytes.
	Fits func(free alloc.Chunk, r alloc.Request) bool

	// PageOf returns the page size of the region of a chunk, 0 for a region that is reserved and
	// released as a whole; nil: always 0.
	PageOf func(c alloc.Chunk) device.Size
}

// Owner is the origin of a block.
type Owner struct {
	Known bool   `json:"known"` // something is known
	ID    uint64 `json:"id"`    // allocation ID in the trace
	Born  int    `json:"born"`  // event of the allocation; -1: before the first one
	// events between allocation and refusal, or since the first event
	Age   int      `json:"age"`
	Stack []string `json:"stack,omitempty"` // allocation stack, innermost frame first
	Tag   string   `json:"tag,omitempty"`   // tag in the trace
}

// OwnerLookup returns the owner of a block by its tag.
type OwnerLookup func(tag uint64) Owner

// Name returns a short name: the two innermost frames, or the tag. Frames of the allocator and of
// PyTorch are skipped if there are Python frames.
func (o *Owner) Name() string {
	places := o.Stack
	if i := slices.IndexFunc(places, isPython); i >= 0 {
		places = places[i:]
	}
	switch {
	case len(places) > 1:
		return places[0] + " < " + places[1]
	case len(places) == 1:
		return places[0]
	case o.Tag != "":
		return o.Tag
	}
	return "unknown"
}

func isPython(place string) bool { return strings.Contains(place, ".py:") }

// obstacle is why a free chunk cannot serve a request.
type obstacle uint8

const (
	usable      obstacle = iota // no obstacle
	otherPool                   // in a different pool
	otherStream                 // for another stream
	otherKind                   // for requests of other sizes
)

// fits reports whether a free chunk of the request's pool serves the request.
func (n *Need) fits(c alloc.Chunk) bool {
	c.State = alloc.Free
	if n.Fits == nil {
		return c.Size >= n.Block && aligned(c.Region, c.Addr, n.Align).Sub(c.Addr) <= c.Size-n.Block
	}
	return n.Fits(c, n.Request)
}

// obstacle returns why a chunk would not serve even if it were free and large enough.
func (n *Need) obstacle(c alloc.Chunk) obstacle {
	if c.Pool != n.Pool {
		return otherPool
	}
	if n.Fits == nil || n.fits(c) {
		return usable
	}
	if c.Size < n.Block {
		c.Addr, c.Size = c.Region, n.Block
	}
	if n.fits(c) {
		return usable
	}
	if c.Stream != n.Request.Stream {
		c.Stream = n.Request.Stream
		if n.fits(c) {
			return otherStream
		}
	}
	return otherKind
}

func (n *Need) page(c alloc.Chunk) device.Size {
	if n.PageOf == nil {
		return 0
	}
	return n.PageOf(c)
}

// aligned returns the first address from a on whose distance from base is a multiple of grain.
func aligned(base, a device.Addr, grain device.Size) device.Addr {
	if grain <= 1 {
		return a
	}
	return base.Add((a.Sub(base) + grain - 1) / grain * grain)
}

func inUse(c *alloc.Chunk) bool { return c.State == alloc.Live || c.State == alloc.Pending }

// region is the chunks of a region, with sums.
type region struct {
	chunks []alloc.Chunk
	held   device.Size // backed by memory
	free   device.Size // free or cached
	live   int         // number of live blocks
	bytes  device.Size // size of live blocks
	waits  int         // number of pending blocks
	pool   alloc.PoolID
	page   device.Size // page size; 0: reserved and released as a whole
	stuck  bool        // has memory that can neither be used nor returned
}

func (h *Heap) regions(n *Need) (list []region) {
	for i := 0; i < len(h.Chunks); {
		j := i
		g := region{pool: h.Chunks[i].Pool, page: n.page(h.Chunks[i])}
		for ; j < len(h.Chunks) && h.Chunks[j].Region == h.Chunks[i].Region; j++ {
			g.add(&h.Chunks[j])
		}
		g.chunks = h.Chunks[i:j]
		list = append(list, g)
		i = j
	}
	return list
}

func (g *region) add(c *alloc.Chunk) {
	if c.State.Held() {
		g.held += c.Size
	}
	switch c.State {
	case alloc.Free, alloc.Cached:
		g.free += c.Size
	case alloc.Live:
		g.live++
		g.bytes += c.Size
	case alloc.Pending:
		g.waits++
	case alloc.Slack:
		g.stuck = true
	}
}

func (g *region) empty() bool { return g.live+g.waits == 0 }
