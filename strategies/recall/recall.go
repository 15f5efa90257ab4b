package recall

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/tiles"
	"github.com/vramyard/vramyard/strategies/bestfit"
)

const (
	quantum  device.Size = 256 // the alignment of drivers
	mostSize             = tiles.MaxRequest

	mostPositions = 1 << 30 // allocations until everything is forgotten
)

// The parameters of following a plan.
const (
	steadyRun    = 24   // allocations without a deviation before a plan
	steadyMatch  = 32   // allocations since the place was found
	fewOdd       = 12   // recent deviations that are tolerated
	pace         = 8    // tries in a period
	patience     = 16   // tries in vain, after which the periods between two tries double,
	mostPatience = 6    // up to this often
	firstWait    = 32   // allocations until the next try after a low tide; it doubles
	giveUp       = 4    // part of a period after which no try is made until the next low tide
	noPlace      = 8    // allocations until the next try without a place in the past
	searchFor    = 4096 // allocations after a low tide in which a place in the past is waited for
	brokenWait   = 16   // half of the allocations until the second try after a plan was given up
	brokenShare  = 30   // part of the most live bytes that may lie outside of a plan
	guessedLife  = 64   // allocations that a block without a twin is expected to live
)

// Stats counts the plans of an allocator and the blocks that they placed.
type Stats struct {
	Plans   uint64 // plans made
	Broken  uint64 // plans given up
	Planned uint64 // blocks placed as planned
	Tries   uint64 // forecasts
	Steps   uint64 // steps of all packings
}

// Allocator is a best fit that recalls. Use [NewRange]; it is not safe for concurrent use.
type Allocator struct {
	tiles.View
	cfg   Config
	real  bestfit.Placer
	watch watch
	tide  tide

	start device.Addr // of the region
	of    []int32     // by reference of a block: its entry, which may be forgotten; none if there is no block
	top   device.Size // end of the highest block so far
	loose device.Size // the same of the blocks that no plan placed
	mark  device.Size // the same of the fallback

	shadow bestfit.Placer // the fallback by itself, where it differs; its allocator is nil where not
	shades []shade        // with a shadow: by reference of a block
	strays int            // live blocks that are elsewhere in the shadow
	plan   plan           // the present one; its number is 0 without one
	plans  int32
	doubt  uint64 // plans given up without a change of shapes, since one was kept to its end
	credit uint64 // steps that packings may take
	period int32  // the last period that a forecast was made for, not a multiple of it

	pending bool  // a plan is wanted
	broken  bool  // because the last one was given up
	tryAt   int32 // position of the next try
	slowAt  int32 // not before this one
	failed  int32 // tries without a plan since shapes or used bytes changed

	failedIn int32       // the era of those tries
	failedAt device.Size // and the used bytes
	wait     int32
	since    int32 // the low tide
	stats    Stats
}

var (
	_ alloc.Strategy   = (*Allocator)(nil)
	_ power.Referenced = (*Allocator)(nil)
)

// New returns an allocator over src that holds nothing yet. It fails if c is invalid. For pages it
// also fails if src has no virtual memory, with an error that wraps [device.ErrUnsupported], or if
// the pages of src are larger than Config.PageBytes.
func New(src device.Source, c Config) (alloc.Strategy, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	if c.Map != Range {
		return newPages(src, c)
	}
	return NewRange(src, c)
}

// NewRange is [New] for a range. It fails if c is for pages.
func NewRange(src device.Source, c Config) (*Allocator, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	if c.Map != Range {
		return nil, fmt.Errorf("recall: map %q: want %q", c.Map, Range)
	}
	fit, err := bestfit.NewPlacer(src, c.fallback())
	if err != nil {
		return nil, err
	}
	return &Allocator{
		View: fit.View, cfg: c, real: fit, watch: newWatch(c.Memory), tide: tide{rising: true},
	}, nil
}

// Config returns the configuration with every default filled in.
func (a *Allocator) Config() Config { return a.cfg }

// Recalled returns the counts so far.
func (a *Allocator) Recalled() Stats { return a.stats }

// Planned returns how many blocks were granted at planned places so far.
func (a *Allocator) Planned() uint64 { return a.stats.Planned }

// Alloc implements [alloc.Allocator]. The package comment states its cost.
func (a *Allocator) Alloc(r alloc.Request) (alloc.Block, error) {
	if !a.real.Accepts(&r) {
		return a.real.Alloc(r)
	}
	n := device.AlignUp(r.Size, quantum)
	switch {
	case a.watch.next() >= mostPositions:
		a.restart()
	case a.watch.full():
		a.forget()
	}
	twin := a.watch.step(n)
	i := a.watch.next() - 1
	var at alloc.Block // in the shadow
	if a.shadow.Allocator != nil {
		at = a.shadowed(&r)
	}
	b, ok := a.place(&r, i, twin, n, at)
	if !ok {
		var err error
		if b, err = a.real.Alloc(r); err != nil {
			a.refused(i, at)
			return b, err
		}
	}
	a.granted(i, b, at)
	if !ok {
		a.loose = max(a.loose, a.end(b))
	}
	if a.tide.see(a.real.Active(), i) {
		a.lowTide(i)
	}
	a.consider(i)
	return b, nil
}

// shadowed lets the shadow grant a request, and returns its block.
func (a *Allocator) shadowed(r *alloc.Request) alloc.Block {
	b, err := a.shadow.Alloc(*r)
	if err != nil {
		return alloc.Block{} // more than any device has
	}
	a.mark = max(a.mark, a.end(b))
	return b
}

// refused forgets an allocation that was refused.
func (a *Allocator) refused(i int32, at alloc.Block) {
	if at.Size > 0 {
		_ = a.shadow.FreeRef(at) // granted just now
	}
	a.inside(i)
	a.watch.free(i)
	a.watch.of(i).live = a.real.Active()
}

// end returns the offset at which a block ends.
func (a *Allocator) end(b alloc.Block) device.Size { return b.Addr.Sub(a.start) + b.Size }

// granted records a block, and where it is in the shadow.
func (a *Allocator) granted(i int32, b, at alloc.Block) {
	if a.shadow.Allocator == nil && a.real.Live() == 1 { // the region may be a new one
		for c := range a.real.Walk {
			a.start = c.Region
			break
		}
	}
	a.watch.of(i).live = a.real.Active()
	a.setEntry(b.Ref, i)
	a.credit = min(a.credit+stepsEach, mostSteps)
	end := a.end(b)
	if a.plan.number != 0 {
		a.keep(i, b)
	}
	a.top = max(a.top, end)
	if a.shadow.Allocator == nil {
		a.mark = max(a.mark, end)
		return
	}
	for int(b.Ref) >= len(a.shades) {
		a.shades = append(a.shades, shade{})
	}
	h := shade{at, at.Addr != b.Addr || at.Size != b.Size}
	a.shades[b.Ref] = h
	if h.stray {
		a.strays++
	}
}

// setEntry notes the entry of a block.
func (a *Allocator) setEntry(ref uint32, i int32) {
	for int(ref) >= len(a.of) {
		a.of = append(a.of, none)
	}
	a.of[ref] = i
}

// shade is where a live block is in the shadow; without a size if it is not there.
type shade struct {
	block alloc.Block
	stray bool // the block itself is elsewhere
}

// keep notes the place of a block for the next period. If it had more room in the last one, this
// stays, so that a period of smaller shapes does not change the plan.
func (a *Allocator) keep(i int32, b alloc.Block) {
	p := a.watch.placed(i)
	p.place, p.room, p.plan = b.Addr.Sub(a.start), b.Size, a.plan.number
	if twin := a.watch.of(i).twin; twin != none && a.watch.known(twin) {
		if t := a.watch.placed(twin); t.plan == p.plan && t.place == p.place {
			p.room = max(p.room, t.room)
		}
	}
}

// place grants a block where the plan or the shadow has it, and reports whether it did.
func (a *Allocator) place(r *alloc.Request, i, twin int32, n device.Size, home alloc.Block) (alloc.Block, bool) {
	if a.plan.number != 0 {
		recalled := twin != none && a.watch.placed(twin).plan == a.plan.number
		if recalled {
			if at := a.watch.placed(twin).place; at+n <= max(a.top, a.guarded(a.mark)) {
				if b, ok := a.real.Place(r, a.start.Add(at), n); ok {
					a.stats.Planned++
					return b, true
				}
			}
		}
		if recalled || i <= a.plan.end {
			return a.placeApart(r, i, twin, n, home)
		}
	}
	if home.Size > 0 {
		return a.real.Place(r, home.Addr, home.Size)
	}
	return alloc.Block{}, false
}

// placeApart places a block that has no place in the plan, and gives the plan up if there are too
// many.
func (a *Allocator) placeApart(r *alloc.Request, i, twin int32, n device.Size, home alloc.Block) (alloc.Block, bool) {
	life := max(a.plan.end-i, guessedLife)
	if twin == none || a.watch.of(twin).death == none {
		life = min(life, guessedLife)
	} else {
		life = min(life, a.watch.of(twin).death-twin)
	}
	a.watch.placed(i).apart = a.plan.number
	a.plan.apart += n
	b, ok := alloc.Block{}, false
	if twin == none && home.Size > 0 { // it may stay for good
		b, ok = a.real.Place(r, home.Addr, home.Size)
	}
	if !ok {
		if at, found := a.gap(n, life); found {
			b, ok = a.real.Place(r, a.start.Add(at), n)
		}
	}
	if a.plan.apart > a.tide.most/brokenShare {
		a.doubt = min(a.doubt+uint64(count(a.plan.era == a.watch.eras.now)), mostDoubt)
		a.plan = plan{}
		a.stats.Broken++
		a.pending, a.broken, a.wait, a.tryAt, a.since = true, true, brokenWait, i, i
	}
	return b, ok
}

// lowTide asks for a plan.
func (a *Allocator) lowTide(i int32) {
	a.pending, a.broken, a.wait, a.tryAt, a.since = true, false, firstWait, i, i
	if a.plan.number != 0 && i > a.plan.end {
		a.doubt = 0
	}
	if w := &a.watch; a.tide.fell {
		w.low = a.tide.lowAt
		if w.at >= w.low {
			w.lose()
		}
	}
}

// consider tries to make a plan if one is wanted and the place in the past is certain.
func (a *Allocator) consider(i int32) {
	w := &a.watch
	if !a.pending || a.plan.number != 0 && a.plan.era == w.eras.now || i < a.tryAt ||
		i < a.slowAt && !a.broken || a.top > a.guarded(a.mark) {
		return
	}
	if w.at == none || w.from != i || w.matched < steadyMatch || w.run < steadyRun || w.deviations() > fewOdd {
		a.tryAt = i + noPlace
		a.pending = i-a.since <= searchFor
		return
	}
	a.stats.Tries++
	period := i - w.at
	if a.failedIn != w.eras.now || a.failedAt != a.top {
		a.failed, a.failedIn, a.failedAt = 0, w.eras.now, a.top
	}
	a.slowAt = i + period/pace
	if a.failed++; a.failed > patience {
		a.slowAt = i + period<<min(a.failed-patience, mostPatience)
	}
	var f forecast
	if a.expect(&f) {
		if p, ok := a.prepare(&f); ok && a.keepShadow() {
			a.follow(p)
			a.pending, a.failed = false, 0
			return
		}
	}
	a.plan = plan{} // it is of another era
	a.wait *= 2
	a.tryAt = i + a.wait
	a.pending = a.wait <= period/giveUp
}

// keepShadow lets a shadow begin, unless there is one.
func (a *Allocator) keepShadow() bool {
	if a.shadow.Allocator == nil {
		c, ok := a.copy()
		if !ok {
			return false
		}
		a.shadow, a.strays, a.shades = c.fit, 0, make([]shade, len(a.of))
		k := 0
		for b := range a.real.Blocks {
			a.shades[b.Ref].block = c.blocks[k]
			k++
		}
	}
	a.real.Track()
	return true
}

// Free implements [alloc.Allocator].
func (a *Allocator) Free(at device.Addr) error {
	ref, err := a.real.Drop(at)
	if err == nil {
		a.freed(ref)
	}
	return err
}

// FreeRef implements [power.Referenced].
func (a *Allocator) FreeRef(b alloc.Block) error {
	if b.Ref == tiles.None {
		return a.Free(b.Addr)
	}
	if err := a.real.FreeRef(b); err != nil {
		return err
	}
	a.freed(b.Ref)
	return nil
}

// freed records the free of a block.
func (a *Allocator) freed(ref uint32) {
	w := &a.watch
	i := a.of[ref]
	a.of[ref] = none
	if w.known(i) {
		a.inside(i)
	}
	if a.shadow.Allocator != nil {
		a.returned(a.shades[ref])
	}
	if w.known(i) {
		w.free(i)
	}
	if a.tide.see(a.real.Active(), w.next()-1) {
		a.lowTide(w.next() - 1)
	}
}

// inside subtracts a block that is no longer live from those outside of the plan, if it was.
func (a *Allocator) inside(i int32) {
	if a.plan.number != 0 && a.watch.placed(i).apart == a.plan.number {
		a.plan.apart -= min(a.watch.of(i).size, a.plan.apart)
	}
}

// forget drops the older half of the memory.
func (a *Allocator) forget() {
	w := &a.watch
	half := w.base + w.memory/2
	for i := w.base; i < half && a.plan.number != 0; i++ {
		if w.of(i).death == none {
			a.inside(i) // it is in no count any more
		}
	}
	w.forget(half)
}

// restart forgets everything, before positions overflow.
func (a *Allocator) restart() {
	for ref, i := range a.of {
		if i != none {
			a.of[ref] = forgotten
		}
	}
	a.plan, a.pending = plan{}, false
	a.watch = newWatch(a.cfg.Memory)
	a.tryAt, a.slowAt, a.since, a.tide.lowAt, a.doubt = 0, 0, 0, 0, 0
}

// returned frees a block in the shadow. The shadow ends when every live block is at home.
func (a *Allocator) returned(h shade) {
	if h.block.Size > 0 {
		_ = a.shadow.FreeRef(h.block) // live there
	}
	if h.stray {
		a.strays--
	}
	if a.strays == 0 && a.plan.number == 0 {
		a.leave()
	}
}

// leave ends plan and shadow.
func (a *Allocator) leave() {
	a.plan, a.shadow, a.strays, a.shades, a.watch.planned = plan{}, bestfit.Placer{}, 0, nil, nil
	a.real.Untrack()
}

// Trim implements [power.Trimmer].
func (a *Allocator) Trim() (device.Size, error) {
	n, err := a.View.Trim()
	if n > 0 {
		a.leave() // the next region may have other addresses
	}
	return n, err
}

// Compact implements [power.Mover]. The fallback is then the best fit from here on.
func (a *Allocator) Compact(may func(alloc.Chunk) bool, moved func(from, to alloc.Block)) (device.Size, error) {
	return a.View.Compact(may, func(from, to alloc.Block) {
		a.leave()
		i := a.of[from.Ref]
		a.of[from.Ref] = none
		a.setEntry(to.Ref, i)
		moved(from, to)
	})
}
