// Package memutils lets the allocator of github.com/vkngwrapper/arsenal/memutils, a two-level
// segregated fit over offsets, run where a strategy runs.
//
// It is a peer, to be timed beside the strategies, and keeps less of the contract: what Alloc
// returns as the address of a block is the allocator's own handle, which Free takes back, and a
// Free of anything else is undefined. A table from addresses to handles would add to
// its time. [Peer.AddrOf] gives the address; package bench calls it where addresses are measured,
// and marks the row.
package memutils

import (
	"fmt"
	"math"

	"github.com/vkngwrapper/arsenal/memutils/metadata"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
)

// Name is the name of the peer in a catalogue.
const Name = "memutils"

// About is the name of the module, in the version that go.mod pins.
const About = "arsenal/memutils v1.1.3"

// Align is the alignment of every block and of the range.
const Align device.Size = 256

// Range is the number of bytes that the allocator manages, as in the published figures.
const Range = device.TiB - Align

// Config configures a peer.
type Config struct {
	Fit   string      `json:"fit" doc:"how a free range is chosen: balanced, memory, time" grid:"balanced,memory,time"`
	Range device.Size `json:"range" doc:"bytes managed; at most, and by default, 1 TiB - 256"`
}

// fits are the values of Config.Fit. "balanced" is the allocator's default strategy.
var fits = map[string]metadata.AllocationStrategy{
	"balanced": 0,
	"memory":   metadata.AllocationStrategyMinMemory,
	"time":     metadata.AllocationStrategyMinTime,
}

func (c Config) WithDefaults() (Config, error) {
	if c.Fit == "" {
		c.Fit = "balanced"
	}
	if c.Range == 0 {
		c.Range = Range
	}
	if _, ok := fits[c.Fit]; !ok {
		return c, fmt.Errorf("memutils: fit %q: want balanced, memory or time", c.Fit)
	}
	if c.Range > Range || c.Range%Align != 0 {
		return c, fmt.Errorf("memutils: range %d: want a multiple of %d, at most %d", c.Range, Align, Range)
	}
	return c, nil
}

// ForCapacity implements [setting.CapacityConfig]: it manages no more than the device has.
func (c Config) ForCapacity(n device.Size) Config {
	c.Range = min(c.Range, device.AlignDown(n, Align))
	return c
}

func (c Config) Preallocates() bool { return true }

// Spec is the peer's entry in a catalogue. The presets are its ways to choose a free range.
//
// MinMemory searches only the list of the request's own class before it takes memory from the end
// of the range, so its memory grows with the run time. The published figures are of the balanced
// strategy.
func Spec() setting.Spec {
	return setting.SpecOf(Name, "a two-level segregated fit by others, in Go", New,
		setting.Preset{Doc: "no strategy chosen, which is a balance of the two"},
		setting.Preset{Name: "minmemory", Doc: "MinMemory", JSON: `{"fit":"memory"}`},
		setting.Preset{Name: "mintime", Doc: "MinTime", JSON: `{"fit":"time"}`})
}

// Peer is an instance. It serves one caller at a time.
type Peer struct {
	blocks *metadata.TLSFBlockMetadata
	fit    metadata.AllocationStrategy
	src    device.Source
	region device.Region
	limit  device.Size
}

// New returns a peer that manages one region of src. It fails as src does.
func New(src device.Source, c Config) (*Peer, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	r, err := src.Reserve(c.Range, Align)
	if err != nil {
		return nil, err
	}
	p := &Peer{blocks: metadata.NewTLSFBlockMetadata(1, anywhere{}), fit: fits[c.Fit], src: src, region: r, limit: c.Range}
	p.blocks.Init(int(c.Range))
	return p, nil
}

// Alloc implements [alloc.Allocator]; the address is a handle. It ignores align, stream
// and hint of the request.
func (p *Peer) Alloc(r alloc.Request) (alloc.Block, error) {
	if r.Size == 0 {
		return alloc.Block{}, alloc.ErrInvalidRequest
	}
	if r.Size > p.limit {
		return alloc.Block{}, alloc.ErrOutOfMemory
	}
	ok, where, err := p.blocks.CreateAllocationRequest(int(r.Size), uint(Align), false, 0, p.fit, math.MaxInt)
	if err != nil {
		return alloc.Block{}, err
	}
	if !ok {
		return alloc.Block{}, alloc.ErrOutOfMemory
	}
	if err := p.blocks.Alloc(where, 0, nil); err != nil {
		return alloc.Block{}, err
	}
	return alloc.Block{Addr: device.Addr(where.BlockAllocationHandle), Size: device.Size(where.Size)}, nil
}

// Free implements [alloc.Allocator].
//
// Precondition: the handle is of a live block. For any other the allocator reads memory that
// is not its own, or panics.
func (p *Peer) Free(handle device.Addr) error {
	return p.blocks.Free(metadata.BlockAllocationHandle(handle))
}

// AddrOf implements bench.Named.
//
// Precondition: the handle is of a live block.
func (p *Peer) AddrOf(handle device.Addr) device.Addr {
	offset, err := p.blocks.AllocationOffset(metadata.BlockAllocationHandle(handle))
	if err != nil {
		panic(err)
	}
	return p.region.Addr.Add(device.Size(offset))
}

// Stats implements [alloc.Inspector] from the allocator's own statistics.
func (p *Peer) Stats() alloc.Stats {
	used := device.Size(p.blocks.Size() - p.blocks.SumFreeSize())
	return alloc.Stats{
		Live: p.blocks.AllocationCount(), Allocated: used, Active: used,
		Reserved: p.region.Size, PeakReserved: p.region.Size, Limit: p.limit, Regions: 1, Reserves: 1,
	}
}

// Walk implements [alloc.Inspector]. It collects the chunks first, because the allocator shows
// the highest first.
func (p *Peer) Walk(yield func(alloc.Chunk) bool) {
	var chunks []alloc.Chunk
	_ = p.blocks.VisitAllRegions(func(_ metadata.BlockAllocationHandle, offset, size int, _ any, free bool) error {
		state := alloc.Live
		if free {
			state = alloc.Free
		}
		if size != 0 { // the end of the memory has a record of its own, even when none is left
			chunks = append(chunks, alloc.Chunk{
				Region: p.region.Addr, Addr: p.region.Addr.Add(device.Size(offset)), Size: device.Size(size),
				State: state, Class: -1,
			})
		}
		return nil
	})
	for i := len(chunks) - 1; i >= 0; i-- {
		if !yield(chunks[i]) {
			return
		}
	}
}

// Check implements [alloc.Inspector] by the allocator's own check.
func (p *Peer) Check() error { return p.blocks.Validate() }

func (p *Peer) Close() error {
	if p.src == nil {
		return alloc.ErrClosed
	}
	src := p.src
	p.src = nil
	return src.Release(p.region.Addr)
}

// anywhere is a rule of granularity that lets every block lie beside every other.
type anywhere struct{}

func (anywhere) AllocRegions(uint32, int, int) {}
func (anywhere) FreeRegions(int, int)          {}
func (anywhere) Clear()                        {}

// CheckConflictAndAlignUp answers that there is no conflict. The comment of the interface reads
// the other way round: if this is true, every allocation fails and costs next to nothing.
func (anywhere) CheckConflictAndAlignUp(offset, _, _, _ int, _ uint32) (int, bool) {
	return offset, false
}

func (anywhere) RoundUpAllocRequest(_ uint32, size int, align uint) (int, uint) { return size, align }
func (anywhere) AllocationsConflict(uint32, uint32) bool                        { return false }
func (anywhere) StartValidation() any                                           { return nil }
func (anywhere) Validate(any, int, int) error                                   { return nil }
func (anywhere) FinishValidation(any) error                                     { return nil }
