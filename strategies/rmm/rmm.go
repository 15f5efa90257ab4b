package rmm

import (
	"cmp"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
)

// resource is a memory resource of the original over the table of chunks.
type resource interface {
	// take returns a chunk, in no list, for a request of size bytes on a stream.
	take(size device.Size, s device.Stream) (handle, error)
	// give makes a live block free.
	give(h handle)
	// largest returns the size of the largest free chunk.
	largest() device.Size
	// bytes returns the host memory.
	bytes() device.Size
	// show returns class and owner of a free chunk, as Walk shows them.
	show(h handle) (class int32, owner uint8)
	// canPlace reports whether a request finds room in the held memory after the live blocks were
	// freed for which goes is true.
	canPlace(r *alloc.Request, goes func(handle) bool) bool
	// check verifies the lists. Errors begin with the broken invariant.
	check() error
	// close releases what is not a region. It may be called again after an error.
	close() error
}

// Allocator is a memory resource. Use [New]; it is not safe for concurrent use.
type Allocator struct {
	front.View
	heap heap
	res  resource
	cfg  Config
}

var _ alloc.Strategy = (*Allocator)(nil)

// New returns an allocator over src that holds nothing yet. It fails if c is invalid. It uses the
// streams and the memory information of src if src has them.
func New(src device.Source, c Config) (*Allocator, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	a := &Allocator{cfg: c}
	a.View = a.heap.front.Init(front.Limits{Most: mostBytes, Align: quantum}, func() (largest, bytes device.Size) {
		s := &a.heap.front.Stats
		return a.LargestFree(), s.Reserved - s.Allocated - a.heap.slack
	})
	a.heap.init(src)
	if c.Resource == Arena {
		a.res = newArena(&a.heap, c)
	} else {
		a.res = newPool(&a.heap, c)
	}
	return a, nil
}

// Config returns the configuration with every default filled in.
func (a *Allocator) Config() Config { return a.cfg }

// Alloc implements [alloc.Allocator]. The package comment gives the cost.
func (a *Allocator) Alloc(r alloc.Request) (alloc.Block, error) {
	if !a.heap.front.Accepts(&r) {
		return alloc.Block{}, a.heap.front.Refuse(&r)
	}
	a.heap.asked = 0
	h, err := a.res.take(r.Size, r.Stream)
	if err != nil {
		return alloc.Block{}, a.heap.front.OutOfMemory(&r, a.cfg.blockFor(r.Size), a.heap.asked, err)
	}
	return a.heap.grant(h, &r), nil
}

// Free implements [alloc.Allocator]: the memory goes to the stream of the request.
func (a *Allocator) Free(at device.Addr) error {
	h := a.heap.find(at)
	if h == none {
		return a.heap.front.NoBlock()
	}
	a.res.give(h)
	return nil
}

// Close implements [alloc.Strategy]. Regions are released oldest first. Walk yields a region that
// the device refuses to release as one chunk of slack.
func (a *Allocator) Close() error {
	if !a.heap.front.Closed() {
		a.heap.front.Close()
		a.heap.empty()
	}
	return cmp.Or(a.heap.held.ReleaseAll(), a.res.close())
}
