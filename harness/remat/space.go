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

// spaceQuantum is what the simulated device hands out multiples of.
const spaceQuantum device.Size = 256

// Space is a [Memory] over a strategy, which has a simulated device of its own: a block lies
// somewhere, and what fits by number need not fit. Requests are labelled with their [Owner]. It is
// to be closed.
type Space struct {
	setup    setting.Setup
	s        alloc.Strategy // nil if the device has too little for what the strategy begins with
	dev      *sim.Device
	budget   device.Size
	capacity device.Size            // of the device, which the budget is rounded down to
	ends     func(Owner) alloc.Hint // nil for no wish
	grants   map[device.Size]grant
	tiles    []tile        // of the last walk
	joined   []alloc.Chunk // of a window, as they would merge
	places   []device.Addr // of a window's blocks
	// the first call of the strategy that failed other than by a refusal; from then on all is refused
	broken error
}

// grant is what the strategy makes of a request when it is empty.
type grant struct {
	block device.Size // bytes of the block
	takes device.Size // bytes that are held of the device then
	ok    bool
}

// Over returns an empty space of so many bytes, down to whole multiples of 256 B, in which the
// strategy places blocks; a strategy with a limit of its own gets that one. A strategy that cannot
// begin with so little gets a space that refuses everything. It fails if the configuration of the
// strategy is invalid.
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

// Close gives all that is held back to the device, blocks and all. Its error is the first that a
// call of the strategy met since [Over] and that was no refusal, as of a plug-in that has died:
// such a strategy is asked for nothing more, so that a run over it ends.
func (p *Space) Close() error {
	if p.s == nil {
		return nil
	}
	if err := p.s.Close(); p.broken == nil {
		return err
	}
	return p.broken
}

func (p *Space) breaks(what string, err error) {
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

// Walk yields the chunks of the strategy, each labelled with its [Owner], as the strategy's own
// Walk does.
func (p *Space) Walk(yield func(alloc.Chunk) bool) {
	if p.s != nil {
		p.s.Walk(yield)
	}
}

// Check verifies the indexes of the strategy, as its own Check does.
func (p *Space) Check() error {
	if p.s == nil {
		return nil
	}
	return p.s.Check()
}

// Room implements [Memory]: only trying tells.
func (p *Space) Room(device.Size) bool { return true }

// Alloc implements [Memory]. It costs what the strategy's Alloc does.
func (p *Space) Alloc(size device.Size, owner Owner) (alloc.Block, bool) {
	if p.s == nil || p.broken != nil {
		return alloc.Block{}, false
	}
	r := alloc.Request{Size: size, Tag: uint64(owner)}
	if p.ends != nil {
		r.Hint = p.ends(owner)
	}
	b, err := p.s.Alloc(r)
	if errors.Is(err, alloc.ErrOutOfMemory) && r.Hint != alloc.HintNone { // better at the wrong end than nowhere
		r.Hint = alloc.HintLow + alloc.HintHigh - r.Hint
		b, err = p.s.Alloc(r)
	}
	if !errors.Is(err, alloc.ErrOutOfMemory) && !errors.Is(err, alloc.ErrInvalidRequest) {
		p.breaks("refuses a request", err)
	}
	return b, err == nil
}

// Ends implements [Addressed]. What has no place at its end is asked for at the other.
func (p *Space) Ends(of func(Owner) alloc.Hint) { p.ends = of }

// Free implements [Memory].
func (p *Space) Free(b alloc.Block) {
	if p.broken == nil {
		p.breaks("does not take a block back", p.s.Free(b.Addr))
	}
}

// Judge implements [Addressed]. It walks the strategy, and makes the request of an empty one like
// it.
func (p *Space) Judge(size device.Size) Verdict {
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

// grant returns what an empty strategy like this one makes of a request. It remembers the answer.
func (p *Space) grant(size device.Size) grant {
	if g, ok := p.grants[size]; ok {
		return g
	}
	var g grant
	if twin, _, err := p.build(); err == nil {
		b, err := twin.Alloc(alloc.Request{Size: size})
		g = grant{b.Size, twin.Stats().Reserved, err == nil}
		p.breaks("does not close", twin.Close())
	}
	p.grants[size] = g
	return g
}

// Refused implements [Addressed]. A strategy that does not remember why it refused costs a walk.
func (p *Space) Refused() (free, largest device.Size) {
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

// LargestFree implements [Addressed]. A strategy that does not know costs a walk.
func (p *Space) LargestFree() device.Size {
	if p.s == nil {
		return 0
	}
	return power.LargestFree(p.s)
}

// Release implements [Addressed]: it trims the strategy, if that can be done.
func (p *Space) Release() device.Size {
	if p.s == nil {
		return 0
	}
	n, err := power.Trim(p.s)
	if !errors.Is(err, alloc.ErrUnsupported) {
		p.breaks("cannot give back", err)
	}
	return n
}

// FreeNeighbours implements [Neighbours]. It costs what the strategy's power does.
func (p *Space) FreeNeighbours(b alloc.Block) (below, above device.Size) {
	return power.FreeNeighbours(p.s, b.Addr)
}

// Move implements [Addressed]. Blocks slide down if the strategy can do that. Otherwise they are
// freed and asked for again, in the order of the list, and if one of them has no place then, the
// largest first, after what is free was given back to the device.
func (p *Space) Move(list []Moving, by Move) (lost device.Size) {
	if by == Down && power.Has(p.s, power.PowerMover) {
		p.slide(list)
		return 0
	}
	order := make([]int, len(list))
	for i := range list {
		order[i] = i
		p.Free(list[i].Block)
	}
	if by == Anew {
		p.Release()
	}
	placed, lost := p.again(list, order)
	if lost == 0 {
		return 0
	}
	for _, i := range order[:placed] {
		p.Free(list[i].Block)
	}
	p.Release() // regions were cut for what lay there before
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(list[b].Size, list[a].Size) })
	_, lost = p.again(list, order)
	return lost
}

// again asks for blocks that were freed, and returns how many of them there are before one that has
// no place, and its size.
func (p *Space) again(list []Moving, order []int) (placed int, lost device.Size) {
	for n, i := range order {
		b, ok := p.Alloc(list[i].Size, list[i].Owner)
		if !ok {
			return n, list[i].Size
		}
		list[i].Block = b
	}
	return len(order), 0
}

func (p *Space) slide(list []Moving) {
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
	p.breaks("cannot move blocks", err)
}
