package stalloc

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/tiles"
	"github.com/vramyard/vramyard/strategies/internal/planned"
)

// uncounted is the largest request that has no place in the plan.
const uncounted = 512

// Allocator serves requests by a plan. Use [New]; it is not safe for concurrent use.
type Allocator struct {
	tiles.View
	core planned.Core
	cfg  Config
	plan plan
	next int // place of the next counted request

	// Live blocks that were granted although their place was not free, by address. No other live block
	// starts there.
	over map[device.Addr]overlay
}

// overlay is a block that shared bytes with a live one when it was granted.
type overlay struct{ requested, size device.Size }

var (
	_ alloc.Strategy = (*Allocator)(nil)
	_ power.Planner  = (*Allocator)(nil)
)

// New returns an allocator over src that holds nothing yet and has no plan. It fails if c is
// invalid.
func New(src device.Source, c Config) (*Allocator, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	a := &Allocator{cfg: c, over: map[device.Addr]overlay{}}
	a.View = a.core.Init("stalloc", src, c.core())
	return a, nil
}

// Config returns the configuration with every default filled in.
func (a *Allocator) Config() Config { return a.cfg }

// Plan implements [power.Planner].
func (a *Allocator) Plan(f power.Forecast) {
	profile := planned.Read(f, uncounted)
	a.plan, a.next = newPlan(&profile), 0
}

// Alloc implements [alloc.Allocator]. It costs O(log free chunks).
func (a *Allocator) Alloc(r alloc.Request) (alloc.Block, error) {
	if !a.core.Accepts(&r) {
		return alloc.Block{}, a.core.Refuse(&r)
	}
	if r.Size > uncounted {
		if b, ok := a.planned(&r); ok {
			return b, nil
		}
	}
	return a.core.Fallback(&r)
}

// planned grants the place of the next counted request, and reports whether it could. The counter
// advances in any case.
func (a *Allocator) planned(r *alloc.Request) (alloc.Block, bool) {
	p := &a.plan
	if a.next == len(p.places) {
		a.next = p.head
	}
	i := a.next
	if i == len(p.places) {
		return alloc.Block{}, false // there is no cycle
	}
	a.next++
	if i == 0 || i == p.head {
		a.core.Open(p.height, p.align)
	}
	at := &p.places[i]
	if r.Size != at.size && (!at.dynamic || r.Size > at.size) {
		return alloc.Block{}, false
	}
	if spot, _ := a.core.Spot(r, at.offset, 0); a.taken(spot) {
		return alloc.Block{}, false
	}
	b, ok := a.core.Place(r, at.offset)
	if !ok && a.cfg.Check == CheckOff {
		return a.overlap(r, at.offset)
	}
	return b, ok
}

// taken reports whether a live block starts at an address that Place does not know to be in use.
func (a *Allocator) taken(at device.Addr) bool {
	_, found := a.over[at]
	return found
}

// overlap grants a place that is not free, and reports whether it could: the place is in the arena
// and aligned, and no live block starts there.
func (a *Allocator) overlap(r *alloc.Request, offset device.Size) (alloc.Block, bool) {
	n := a.core.Round(r.Size)
	at, ok := a.core.Spot(r, offset, n)
	if _, err := a.BlockAt(at); !ok || err == nil {
		return alloc.Block{}, false
	}
	a.over[at] = overlay{r.Size, n}
	a.core.Stats.Granted(r.Size, n)
	return alloc.Block{Addr: at, Size: n}, true
}

// BlockAt implements [power.Locator]. O(log regions).
func (a *Allocator) BlockAt(at device.Addr) (alloc.Chunk, error) {
	if o, ok := a.over[at]; ok && !a.core.Closed() {
		return alloc.Chunk{Addr: at, Size: o.size, Requested: o.requested, State: alloc.Live, Class: alloc.NoClass}, nil
	}
	return a.View.BlockAt(at)
}

// Free implements [alloc.Allocator]. It costs O(log free chunks).
func (a *Allocator) Free(at device.Addr) error {
	if o, ok := a.over[at]; ok && !a.core.Closed() {
		delete(a.over, at)
		a.core.Stats.Freed(o.requested, o.size)
		return nil
	}
	return a.core.Free(at)
}

// MetadataBytes implements [power.Metered]. O(1).
func (a *Allocator) MetadataBytes() device.Size {
	return a.View.MetadataBytes() + index.BytesOf(a.plan.places)
}
