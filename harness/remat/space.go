package remat

import (
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

// spaceQuantum is what the simulated device hands out multiples of.
const spaceQuantum device.Size = 256

// Space is a [Memory] over a strategy, which has a simulated device of its own: a block lies somewhere,
// and what fits by number need not fit. Requests are labelled with their [Owner]. It is to be closed.
type Space struct {
	setup    alloc.Setup
	s        alloc.Strategy // nil if the device has too little for what the strategy begins with
	dev      *sim.Device
	capacity device.Size // of the device
}

// Over returns an empty space of so many bytes, down to whole multiples of 256 B, in which the strategy
// places blocks; a strategy with a limit of its own gets that one. A strategy that cannot begin with so
// little gets a space that refuses everything. It fails if the configuration of the strategy is invalid.
func Over(setup alloc.Setup, budget device.Size) (*Space, error) {
	p := &Space{capacity: device.AlignDown(budget, spaceQuantum)}
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

// build returns the strategy, empty, on a device of its own.
func (p *Space) build() (alloc.Strategy, *sim.Device, error) {
	dev, err := sim.New(sim.Config{Capacity: p.capacity, Costs: sim.NoCosts})
	if err != nil {
		return nil, nil, err
	}
	s, err := p.setup.New(dev)
	return s, dev, err
}

// Setup returns the strategy and its configuration.
func (p *Space) Setup() alloc.Setup { return p.setup }

// Close gives all that is held back to the device, blocks and all.
func (p *Space) Close() error {
	if p.s == nil {
		return nil
	}
	return p.s.Close()
}

// Room implements [Memory]: only trying tells.
func (p *Space) Room(device.Size) bool { return true }

// Alloc implements [Memory]. It costs what the strategy's Alloc does.
func (p *Space) Alloc(size device.Size, owner Owner) (alloc.Block, bool) {
	if p.s == nil {
		return alloc.Block{}, false
	}
	b, err := p.s.Alloc(alloc.Request{Size: size, Tag: uint64(owner)})
	switch {
	case errors.Is(err, alloc.ErrOutOfMemory), errors.Is(err, alloc.ErrInvalidRequest):
		return alloc.Block{}, false
	case err != nil:
		panic(fmt.Sprintf("remat: %s refuses %v: %v", p.setup.Name, size, err))
	}
	return b, true
}

// Free implements [Memory]. It panics if there is no such block.
func (p *Space) Free(b alloc.Block) {
	if err := p.s.Free(b.Addr); err != nil {
		panic(fmt.Sprintf("remat: %s does not take %v back: %v", p.setup.Name, b, err))
	}
}

// Judge implements [Judge]. It walks the strategy, and makes the request of an empty one like it.
func (p *Space) Judge(size device.Size) Verdict {
	if p.s == nil {
		if size <= p.capacity {
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
	switch rounded, ok := p.rounded(size); {
	case ok && free >= rounded:
		return OOMFragmentation
	case size <= p.capacity-min(p.s.Stats().Requested, p.capacity):
		return OOMRounding
	}
	return OOMCapacity
}

// rounded returns the size of the block that the strategy grants for so many bytes when it is empty, or
// false if it grants none even then.
func (p *Space) rounded(size device.Size) (device.Size, bool) {
	twin, _, err := p.build()
	if err != nil {
		return 0, false
	}
	b, err := twin.Alloc(alloc.Request{Size: size})
	if twin.Close() != nil || err != nil {
		return 0, false
	}
	return b.Size, true
}

// FreeNeighbours implements [Neighbours]. It costs a walk.
func (p *Space) FreeNeighbours(b alloc.Block) (below, above device.Size) {
	var last alloc.Chunk
	for c := range p.s.Walk {
		switch {
		case c.Addr == b.Addr && last.State == alloc.Free && last.Region == c.Region:
			below = last.Size
		case c.Addr == b.Addr.Add(b.Size):
			if last.Addr == b.Addr && last.Region == c.Region && c.State == alloc.Free {
				above = c.Size
			}
			return below, above
		}
		last = c
	}
	return below, above
}
