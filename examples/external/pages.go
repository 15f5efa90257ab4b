package main

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
)

// Config of a pool of pages.
type Config struct {
	Page     device.Size `json:"page" doc:"bytes of a page, a power of two from 256; default 64 KiB"`
	Capacity device.Size `json:"capacity" doc:"bytes of all pages; default 1 GiB"`
}

// WithDefaults implements [setting.DefaultedConfig].
func (c Config) WithDefaults() (Config, error) {
	if c.Page == 0 {
		c.Page = 64 * device.KiB
	}
	if c.Capacity == 0 {
		c.Capacity = device.GiB
	}
	if c.Page < 256 || !device.IsPowerOfTwo(c.Page) {
		return c, fmt.Errorf("pages: page: %v is no power of two from 256", c.Page)
	}
	return c, nil
}

// ForCapacity implements [setting.CapacityConfig].
func (c Config) ForCapacity(n device.Size) Config {
	c.Capacity = n
	return c
}

// Preallocates implements [setting.PreallocatingConfig].
func (Config) Preallocates() bool { return true }

// Promises implements [promise.Promiser]: any free page serves any request.
func (c Config) Promises() promise.Set {
	return promise.Set{
		Quantum:  c.Page,
		Honours:  func(r alloc.Request) bool { return r.Align <= c.Page },
		MaxGrant: func(alloc.Request) device.Size { return c.Page },
		Serves:   func(alloc.Chunk, alloc.Request) bool { return true },
	}
}

// Pages grants pages of one size, like the key-value cache of an inference server. New reserves
// all of them; every call costs O(1).
type Pages struct {
	src    device.Source
	page   device.Size
	region device.Region
	free   []int           // stack of free pages, the lowest on top at first
	used   []alloc.Request // request of each page; zero for a free page
	stats  alloc.Stats
	closed bool
}

// New reserves the pages. It fails if the device refuses them.
func New(src device.Source, c Config) (*Pages, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	n := int(c.Capacity / c.Page)
	region, err := src.Reserve(device.Size(n)*c.Page, c.Page)
	if err != nil {
		return nil, err
	}
	p := &Pages{src: src, page: c.Page, region: region, free: make([]int, n), used: make([]alloc.Request, n)}
	for i := range p.free {
		p.free[i] = n - 1 - i
	}
	p.stats.Limit = region.Size
	p.stats.RegionAdded(region.Size)
	return p, nil
}

// Alloc implements [alloc.Allocator].
func (p *Pages) Alloc(r alloc.Request) (alloc.Block, error) {
	switch {
	case p.closed:
		return alloc.Block{}, alloc.ErrClosed
	case r.Size == 0 || r.Size > p.page, r.Align&(r.Align-1) != 0 || r.Align > p.page:
		return alloc.Block{}, alloc.ErrInvalidRequest
	case len(p.free) == 0:
		p.stats.OOMs++
		return alloc.Block{}, alloc.ErrOutOfMemory
	}
	i := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	p.used[i] = r
	p.stats.Granted(r.Size, p.page)
	return alloc.Block{Addr: p.start(i), Size: p.page}, nil
}

// Free implements [alloc.Allocator].
func (p *Pages) Free(a device.Addr) error {
	if p.closed {
		return alloc.ErrClosed
	}
	if !p.region.Contains(a) || !a.IsAligned(p.page) {
		return alloc.ErrInvalidFree
	}
	i := int(a.Sub(p.region.Addr) / p.page)
	if p.used[i].Size == 0 {
		return alloc.ErrInvalidFree
	}
	p.stats.Freed(p.used[i].Size, p.page)
	p.used[i] = alloc.Request{}
	p.free = append(p.free, i)
	return nil
}

func (p *Pages) start(i int) device.Addr { return p.region.Addr.Add(device.Size(i) * p.page) }

// Walk implements [alloc.Inspector]: one chunk for each page.
func (p *Pages) Walk(yield func(alloc.Chunk) bool) {
	for i, r := range p.used {
		c := alloc.Chunk{Region: p.region.Addr, Addr: p.start(i), Size: p.page, Class: alloc.NoClass}
		if r.Size != 0 {
			c.State, c.Requested, c.Stream, c.Tag = alloc.Live, r.Size, r.Stream, r.Tag
		}
		if !yield(c) {
			return
		}
	}
}

// Stats implements [alloc.Inspector].
func (p *Pages) Stats() alloc.Stats { return p.stats }

// Check implements [alloc.Inspector]. The stack of free pages is the only state that a walk
// does not show.
//
// Invariant P1: the stack holds every free page exactly once, and no other page.
func (p *Pages) Check() error {
	if len(p.free)+p.stats.Live != len(p.used) {
		return fmt.Errorf("invariant P1 (stack): %d pages free and %d live of %d", len(p.free), p.stats.Live, len(p.used))
	}
	seen := make([]bool, len(p.used))
	for _, i := range p.free {
		if seen[i] || p.used[i].Size != 0 {
			return fmt.Errorf("invariant P1 (stack): page %d is on the stack twice, or live", i)
		}
		seen[i] = true
	}
	return nil
}

// MaxRequest implements [power.Ceiling].
func (p *Pages) MaxRequest() device.Size { return p.page }

// LargestFree implements [power.Holes].
func (p *Pages) LargestFree() device.Size {
	if len(p.free) == 0 {
		return 0
	}
	return p.page
}

// Close implements [alloc.Strategy].
func (p *Pages) Close() error {
	p.closed = true
	if p.region.Size == 0 {
		return nil
	}
	if err := p.src.Release(p.region.Addr); err != nil {
		return err
	}
	p.stats.RegionReleased(p.region.Size)
	p.region, p.free, p.used = device.Region{}, nil, nil
	return nil
}
