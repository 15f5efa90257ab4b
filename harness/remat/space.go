package remat

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

// spaceQuantum is the granularity of the simulated device.
const spaceQuantum device.Size = 256

// Space is a [Memory] in which a strategy places blocks, on a simulated device of its own. It is
// subject to fragmentation. Requests are tagged with their [Owner]. Close it after use.
type Space struct {
	setup    setting.Setup
	s        alloc.Strategy // nil if the device is too small for the strategy
	dev      *sim.Device
	budget   device.Size
	capacity device.Size            // of the device: budget rounded down
	hints    func(Owner) alloc.Hint // nil: no hints
	grants   map[device.Size]grant
	tiles    []tile        // result of the last walk
	joined   []alloc.Chunk // free chunks of the current window, merged
	places   []device.Addr // addresses of the blocks in the current window
	// first unexpected error of the strategy; afterwards every request is refused
	broken error
}

// grant is the answer of the strategy to a request when it is empty.
type grant struct {
	block    device.Size // bytes of the block
	reserved device.Size // bytes reserved from the device
	ok       bool
}

// Over returns an empty space of budget bytes, rounded down to 256 B, in which the strategy places
// blocks. If the strategy has a limit of its own, it is set to the same size. If the budget is too
// small for the strategy to start, the space refuses every request. Over fails if the configuration
// of the strategy is invalid.
func Over(setup setting.Setup, budget device.Size) (*Space, error) {
	p := &Space{budget: budget, capacity: device.AlignDown(budget, spaceQuantum), grants: map[device.Size]grant{}}
	p.setup = setup.ForCapacity(max(p.capacity, 1))
	if p.capacity == 0 {
		return p, nil
	}
	var err error
	if p.s, p.dev, err = p.build(); errors.Is(err, device.ErrOutOfMemory) {
		return p, nil
	} else if err != nil {
		return nil, fmt.Errorf("%s in %v: %w", setup.Name, p.capacity, err)
	}
	return p, nil
}

func (p *Space) build() (alloc.Strategy, *sim.Device, error) {
	dev, err := sim.New(sim.Config{Capacity: p.capacity, Costs: sim.NoCosts})
	if err != nil {
		return nil, nil, err
	}
	s, err := p.setup.New(dev)
	return s, dev, err
}

// Close returns all memory to the device, live blocks included. It returns the first unexpected
// error of the strategy since [Over], such as the death of a plug-in. After such an error every
// request is refused, so that the run ends.
func (p *Space) Close() error {
	if p.s == nil {
		return nil
	}
	if err := p.s.Close(); p.broken == nil {
		return err
	}
	return p.broken
}

func (p *Space) fail(what string, err error) {
	if err != nil && p.broken == nil {
		p.broken = fmt.Errorf("%s %s: %w", p.setup.Name, what, err)
	}
}

// Stats returns the counters of the strategy.
func (p *Space) Stats() alloc.Stats {
	if p.s == nil {
		return alloc.Stats{}
	}
	return p.s.Stats()
}

// Walk yields the chunks of the strategy, each tagged with its [Owner].
func (p *Space) Walk(yield func(alloc.Chunk) bool) {
	if p.s != nil {
		p.s.Walk(yield)
	}
}

// Check verifies the invariants of the strategy.
func (p *Space) Check() error {
	if p.s == nil {
		return nil
	}
	return p.s.Check()
}

// Room implements [Memory]. It always returns true: only an attempt shows whether a request fits.
func (p *Space) Room(device.Size) bool { return true }

// Alloc implements [Memory], at the cost of the strategy's Alloc.
func (p *Space) Alloc(size device.Size, owner Owner) (alloc.Block, bool) {
	if p.s == nil || p.broken != nil {
		return alloc.Block{}, false
	}
	r := alloc.Request{Size: size, Tag: uint64(owner)}
	if p.hints != nil {
		r.Hint = p.hints(owner)
	}
	b, err := p.s.Alloc(r)
	if errors.Is(err, alloc.ErrOutOfMemory) && r.Hint != alloc.HintNone { // the other end is better than a refusal
		r.Hint = alloc.HintLow + alloc.HintHigh - r.Hint
		b, err = p.s.Alloc(r)
	}
	if !errors.Is(err, alloc.ErrOutOfMemory) && !errors.Is(err, alloc.ErrInvalidRequest) {
		p.fail("cannot serve a request", err)
	}
	return b, err == nil
}

// SetHints implements [Addressed]. A block that does not fit at its end is placed at the other.
func (p *Space) SetHints(of func(Owner) alloc.Hint) { p.hints = of }

func (p *Space) Free(b alloc.Block) {
	if p.broken == nil {
		p.fail("cannot free a block", p.s.Free(b.Addr))
	}
}

// Classify implements [Addressed]. It walks the strategy and tries the request on an empty copy.
func (p *Space) Classify(size device.Size) Verdict {
	if p.s == nil {
		if size <= p.budget {
			return OOMRounding
		}
		return OOMCapacity
	}
	free := p.dev.Usage().Free()
	for c := range p.s.Walk {
		if c.State == alloc.Free || c.State == alloc.Cached {
			free += c.Size
		}
	}
	switch g := p.grant(size); {
	case g.ok && free >= g.block:
		return OOMFragmentation
	case size <= p.budget-min(p.s.Stats().Requested, p.budget):
		return OOMRounding
	}
	return OOMCapacity
}

// grant returns the answer of an empty copy of the strategy to a request. Answers are cached.
func (p *Space) grant(size device.Size) grant {
	if g, ok := p.grants[size]; ok {
		return g
	}
	var g grant
	if empty, _, err := p.build(); err == nil {
		b, err := empty.Alloc(alloc.Request{Size: size})
		g = grant{b.Size, empty.Stats().Reserved, err == nil}
		p.fail("cannot close", empty.Close())
	}
	p.grants[size] = g
	return g
}

// LastRefusal implements [Addressed]. It walks a strategy that does not report its last refusal.
func (p *Space) LastRefusal() (free, largest device.Size) {
	if p.s == nil {
		return p.capacity, 0
	}
	left := p.dev.Usage().Free()
	if last, ok := power.LastRefusal(p.s); ok {
		return left + last.Free, max(left, last.LargestHole)
	}
	st := p.s.Stats()
	return left + st.Reserved - st.Active, max(left, power.LargestFree(p.s))
}

// LargestFree implements [Addressed]. It walks a strategy that does not report its largest hole.
func (p *Space) LargestFree() device.Size {
	if p.s == nil {
		return 0
	}
	return power.LargestFree(p.s)
}

// Release implements [Addressed] by trimming the strategy, if it supports that.
func (p *Space) Release() device.Size {
	if p.s == nil {
		return 0
	}
	n, err := power.Trim(p.s)
	if !errors.Is(err, alloc.ErrUnsupported) {
		p.fail("cannot trim", err)
	}
	return n
}

// FreeNeighbours implements [Neighbors] through the power of the same name.
func (p *Space) FreeNeighbours(b alloc.Block) (below, above device.Size) {
	return power.FreeNeighbours(p.s, b.Addr)
}

// Move implements [Addressed]. Blocks slide down if the strategy supports that. Otherwise they are
// freed and reallocated in list order. If a block does not fit then, free memory is released and
// they are reallocated largest first.
func (p *Space) Move(list []OwnedBlock, by MoveMode) (lost device.Size) {
	if by == SlideDown && power.Has(p.s, power.PowerMover) {
		p.slide(list)
		return 0
	}
	order := make([]int, len(list))
	for i := range list {
		order[i] = i
		p.Free(list[i].Block)
	}
	if by == Reallocate {
		p.Release()
	}
	placed, lost := p.reallocate(list, order)
	if lost == 0 {
		return 0
	}
	for _, i := range order[:placed] {
		p.Free(list[i].Block)
	}
	p.Release() // regions were cut for the old layout
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(list[b].Size, list[a].Size) })
	_, lost = p.reallocate(list, order)
	return lost
}

// reallocate allocates freed blocks in order. It returns the number placed before the first
// failure, and the size that failed.
func (p *Space) reallocate(list []OwnedBlock, order []int) (placed int, lost device.Size) {
	for n, i := range order {
		b, ok := p.Alloc(list[i].Size, list[i].Owner)
		if !ok {
			return n, list[i].Size
		}
		list[i].Block = b
	}
	return len(order), 0
}

func (p *Space) slide(list []OwnedBlock) {
	at := make(map[device.Addr]int, len(list))
	for i := range list {
		at[list[i].Block.Addr] = i
	}
	may := func(c alloc.Chunk) bool {
		_, listed := at[c.Addr]
		return listed
	}
	to := func(from, to alloc.Block) { list[at[from.Addr]].Block = to }
	_, err := power.Compact(p.s, may, to)
	p.fail("cannot move blocks", err)
}
