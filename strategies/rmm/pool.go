package rmm

import (
	"cmp"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/regions"
)

// legacy is the stream to whose list the constructors of the original give the first memory.
const legacy device.Stream = 0

// pool is pool_memory_resource, with the bins of binning_memory_resource over it.
type pool struct {
	lists
	cfg     Config
	size    device.Size // bytes requested from the device
	started bool        // the first region is reserved
	bins    []*lists    // fixed_size_memory_resource, smallest blocks first
	filled  int         // number of bins that got their first blocks
}

func newPool(t *heap, c Config) *pool {
	p := &pool{cfg: c}
	p.lists = lists{heap: t, index: index.NewAddrMap(), grow: p.expand}
	for k := range c.bins() {
		b := &lists{heap: t, part: uint32(k) + 1, block: c.MinBinBytes << k, index: index.NewAddrMap()}
		b.grow = func(n device.Size, own uint32) (handle, error) {
			if err := p.fill(b, own); err != nil {
				return none, err
			}
			return b.pop(own, n), nil
		}
		p.bins = append(p.bins, b)
	}
	return p
}

// take implements resource.
func (p *pool) take(size device.Size, s device.Stream) (handle, error) {
	l, k := &p.lists, p.cfg.binOf(size)
	if err := p.start(); err != nil && (!p.started || p.filled <= k && k < len(p.bins)) {
		return none, err
	}
	if k < len(p.bins) {
		l = p.bins[k]
	}
	return l.take(p.cfg.blockFor(size), s)
}

// give implements resource.
func (p *pool) give(h handle) {
	p.listsOf(p.rows[h].part).give(h, p.release(h))
}

// start reserves the first region and the first blocks of every bin, as the constructors of the
// original do. If the device refuses some of it, the next request tries again.
func (p *pool) start() error {
	if !p.started {
		n, err := p.initial()
		if err != nil {
			return err
		}
		if n > 0 {
			h, err := p.extend(n)
			if err != nil {
				return err
			}
			own := p.on(legacy)
			p.of[own].used = true
			p.push(own, h)
		}
		p.started = true
	}
	for p.filled < len(p.bins) {
		b := p.bins[p.filled]
		own := b.on(legacy)
		if err := p.fill(b, own); err != nil {
			return err
		}
		b.of[own].used = true
		p.filled++
	}
	return nil
}

// initial returns the size of the first region: by default half of the free memory, as in RMM's
// Python interface.
func (p *pool) initial() (device.Size, error) {
	n := p.cfg.InitialBytes
	switch n {
	case NoInitial:
		return 0, nil
	case 0:
		bytes, err := p.freeMemory()
		if err != nil {
			return 0, err
		}
		n = device.AlignDown(bytes/2, quantum)
	}
	if p.cfg.Limit != 0 {
		n = min(n, p.limit())
	}
	return n, nil
}

// limit returns the largest size of the pool, in whole quanta, if it has a limit.
func (p *pool) limit() device.Size { return device.AlignDown(p.cfg.Limit, quantum) }

// expand reserves a region for n bytes and returns the chunk that fills it. While the device
// refuses, it asks for half as much, down to n.
func (p *pool) expand(n device.Size, _ uint32) (handle, error) {
	for try := p.growth(n); try >= n; try = max(n, try/2) {
		h, err := p.extend(try)
		if err == nil || try == n {
			return h, err
		}
	}
	return none, regions.ErrLimit
}

// growth returns the size of a region for n bytes: as much as the pool has, or half of the rest
// below the limit. It is 0 if the rest is less than n. It need not be a multiple of the quantum.
func (p *pool) growth(n device.Size) device.Size {
	if p.cfg.Limit == 0 {
		return max(n, p.size)
	}
	left := device.AlignUp(p.limit()-min(p.size, p.limit()), quantum)
	if n > left {
		return 0
	}
	return max(n, left/2)
}

// extend reserves a region of n bytes.
func (p *pool) extend(n device.Size) (handle, error) {
	h, err := p.reserve(n)
	if err == nil {
		p.size += n
	}
	return h, err
}

// fill gets blocks for a bin from the pool, where they stay live, and puts them into one of its
// lists.
func (p *pool) fill(b *lists, own uint32) error {
	h, err := p.lists.take(b.block*device.Size(p.cfg.BinBlocks), b.of[own].stream)
	if err != nil {
		return err
	}
	for range p.cfg.BinBlocks - 1 {
		rest := p.split(h, b.block)
		p.rows[h].part = b.part
		b.push(own, h)
		h = rest
	}
	p.rows[h].part = b.part
	b.push(own, h)
	return nil
}

func (p *pool) largest() device.Size {
	n := p.lists.largest()
	for _, b := range p.bins {
		n = max(n, b.largest())
	}
	return n
}

func (p *pool) bytes() device.Size {
	n := p.lists.bytes()
	for _, b := range p.bins {
		n += b.bytes()
	}
	return n
}

// show implements resource: the owner of a free chunk is its bin, counted from 1, or 0 for the
// pool.
func (p *pool) show(h handle) (class int32, owner uint8) {
	r := &p.rows[h]
	return classOf(p.listsOf(r.part).of[r.list].stream), uint8(r.part)
}

// listsOf returns the lists of a part.
func (p *pool) listsOf(part uint32) *lists {
	if part == 0 {
		return &p.lists
	}
	return p.bins[part-1]
}

func (p *pool) close() error {
	first := p.lists.close()
	for _, b := range p.bins {
		first = cmp.Or(first, b.close())
	}
	return first
}
