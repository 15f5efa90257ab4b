package postmortem

import (
	"slices"
	"strings"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Heap is the memory of an allocator at the moment at which it refused a request.
type Heap struct {
	Chunks     []alloc.Chunk // as Walk shows them: region by region, by address, without gaps inside one
	Capacity   device.Size   // bytes of the device; 0: not known
	DeviceFree *device.Size  // bytes that the device had left, or that the allocator's bound left; nil: not known
}

// Need is what an allocator makes of a request, as far as a walk does not show it.
type Need struct {
	Request alloc.Request // what was asked for
	Pool    alloc.PoolID  // private pool that the request goes to; 0 is the default pool
	Block   device.Size   // bytes of the smallest free chunk that serves it
	Grain   device.Size   // the block begins at a multiple of it, from the start of its region; 0: anywhere
	Segment device.Size   // bytes that the device is asked for where no chunk serves; 0: it is asked for nothing
	Returns bool          // regions without a block in use go back before a request is refused

	// Fits reports whether a free chunk of the request's pool would serve a request; nil: one of Block
	// bytes does.
	Fits func(free alloc.Chunk, r alloc.Request) bool

	// PageOf returns the bytes in which the region of a chunk is mapped and unmapped, 0 for a region
	// that comes and goes whole; nil: all do.
	PageOf func(c alloc.Chunk) device.Size
}

// Owner is who asked for a block.
type Owner struct {
	Known bool   `json:"known"` // something is known of it
	ID    uint64 `json:"id"`    // the allocation's name in the trace
	Born  int    `json:"born"`  // event at which it was made; -1: before the first one
	// events from then to the refusal; from the first one for what was there before
	Age   int      `json:"age"`
	Stack []string `json:"stack,omitempty"` // where the program asked for it, the innermost place first
	Tag   string   `json:"tag,omitempty"`   // what the trace calls it
}

// Who tells the owner of the block with a tag.
type Who func(tag uint64) Owner

// Name returns a short name for lists: the two innermost places, or the tag. Places in the
// allocator and in PyTorch's own code are skipped where there are places in Python.
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

// obstacle is why a free chunk cannot be part of what serves a request.
type obstacle uint8

const (
	usable      obstacle = iota // it can
	otherPool                   // it lies in a private pool, or the request goes to one
	otherStream                 // it serves another stream
	otherKind                   // it serves requests of other sizes
)

// fits reports whether a chunk, free and of the request's pool, would serve.
func (n *Need) fits(c alloc.Chunk) bool {
	c.State = alloc.Free
	if n.Fits == nil {
		return c.Size >= n.Block && aligned(c.Region, c.Addr, n.Grain).Sub(c.Addr) <= c.Size-n.Block
	}
	return n.Fits(c, n.Request)
}

// obstacle returns why a chunk, if it were free and large enough, would not serve.
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

// aligned returns the first place from a on that is a multiple of a grain from a base.
func aligned(base, a device.Addr, grain device.Size) device.Addr {
	if grain <= 1 {
		return a
	}
	return base.Add((a.Sub(base) + grain - 1) / grain * grain)
}

func inUse(c *alloc.Chunk) bool { return c.State == alloc.Live || c.State == alloc.Pending }

// region is a run of chunks of one region.
type region struct {
	chunks []alloc.Chunk
	held   device.Size // bytes with memory of their own
	free   device.Size // free or set aside
	live   int         // live blocks
	bytes  device.Size // of live blocks
	waits  int         // pending blocks
	pool   alloc.PoolID
	page   device.Size // bytes of its pages; 0: it comes and goes whole
	stuck  bool        // it has memory that can neither be used nor given back
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
