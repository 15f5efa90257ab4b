package pgmo

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/tiles"
	"github.com/vramyard/vramyard/strategies/internal/planned"
)

// Allocator serves the requests of an iteration by a plan. Use [New]; it is not safe for concurrent
// use.
type Allocator struct {
	tiles.View
	core planned.Core
	cfg  Config

	sample []request   // requests of the sample
	start  int         // call at which the sample begins
	height device.Size // bytes of the arena; 0 without a plan
	align  device.Size // of the arena
	next   int         // request of the iteration, λ in the paper
	marked bool        // iterations begin at marks
	grown  bool        // a size of the sample was raised
}

// request is a request of the sample.
type request struct {
	planned.Expected
	offset device.Size
	hot    bool // it has a place
}

var (
	_ alloc.Strategy = (*Allocator)(nil)
	_ power.Planner  = (*Allocator)(nil)
	_ power.Informed = (*Allocator)(nil)
)

// New returns an allocator over src that holds nothing yet and has no plan. It fails if c is
// invalid.
func New(src device.Source, c Config) (*Allocator, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	a := &Allocator{cfg: c}
	a.View = a.core.Init("pgmo", src, c.core())
	return a, nil
}

// Config returns the configuration with every default filled in.
func (a *Allocator) Config() Config { return a.cfg }

// Plan implements [power.Planner].
func (a *Allocator) Plan(f power.Forecast) {
	p := planned.Read(f, 0)
	from, to := 0, p.Calls
	switch n := len(p.Iterations); {
	case n == 1:
		from = p.Iterations[0]
	case n == 2:
		from = p.Iterations[1]
	case n > 2:
		from, to = p.Iterations[1], p.Iterations[2]
	}
	a.sample, a.start, a.marked = nil, from, len(p.Iterations) > 0
	for _, r := range p.Between(from, to) {
		a.sample = append(a.sample, request{Expected: r, hot: r.Death < to && r.Align <= planned.MostAlign})
	}
	a.next = len(a.sample)
	if !a.marked {
		a.next = 0
	}
	a.optimize()
}

// optimize computes the places of the hot requests.
func (a *Allocator) optimize() {
	var buffers []buffer
	a.height, a.align, a.grown = 0, planned.Quantum, false
	sum := device.Size(0)
	for i := range a.sample {
		if r := &a.sample[i]; r.hot {
			size := device.AlignUp(r.Size, max(r.Align, planned.Quantum))
			buffers = append(buffers, buffer{birth: r.Birth - a.start, death: r.Death - a.start, size: size})
			if sum += size; sum > tiles.MaxRequest {
				return
			}
			a.align = max(a.align, r.Align)
		}
	}
	height, ok := arrange(buffers, mostSteps)
	if !ok {
		return
	}
	a.height = height
	for i := range a.sample {
		if r := &a.sample[i]; r.hot {
			r.offset, buffers = buffers[0].offset, buffers[1:]
		}
	}
}

// Mark implements [power.Informed]: an iteration begins.
func (a *Allocator) Mark(text string) {
	if a.marked && planned.BeginsIteration(text) {
		a.next = 0
	}
}

// Alloc implements [alloc.Allocator]. It costs O(log free chunks).
func (a *Allocator) Alloc(r alloc.Request) (alloc.Block, error) {
	if !a.core.Accepts(&r) {
		return alloc.Block{}, a.core.Refuse(&r)
	}
	if b, ok := a.planned(&r); ok {
		return b, nil
	}
	return a.core.Fallback(&r)
}

// planned grants the place of the next request of the iteration, and reports whether it could. If a
// request was larger than planned, the plan is computed again before the first one.
func (a *Allocator) planned(r *alloc.Request) (alloc.Block, bool) {
	if a.next >= len(a.sample) || a.height == 0 {
		return alloc.Block{}, false
	}
	if a.next == 0 {
		if a.grown && a.core.Discard() {
			a.optimize()
		}
		a.core.Open(a.height, a.align)
	}
	at := &a.sample[a.next]
	a.next++
	if !at.hot {
		return alloc.Block{}, false
	}
	if r.Size > at.Size {
		at.Size, a.grown = r.Size, true
		return alloc.Block{}, false
	}
	return a.core.Place(r, at.offset)
}

// Free implements [alloc.Allocator]. It costs O(log free chunks).
func (a *Allocator) Free(at device.Addr) error { return a.core.Free(at) }

// MetadataBytes implements [power.Metered]. O(1).
func (a *Allocator) MetadataBytes() device.Size {
	return a.View.MetadataBytes() + index.BytesOf(a.sample)
}
