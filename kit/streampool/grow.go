package streampool

import (
	"cmp"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// grow returns a free chunk for n bytes, which is in no map, from steps 5 to 7 of the search.
func (p *Pool) grow(n, align device.Size, g uint32) (Handle, error) {
	least := p.regionFor(n)
	h, err := p.extend(max(least, p.Config.Region), align)
	if err != nil && least < p.Config.Region {
		h, err = p.extend(least, align)
	}
	if err == nil {
		return h, nil
	}
	if p.Synchronize() == nil {
		if h := p.reuseOwn(n, align, g); h != None {
			return h, nil
		}
	}
	if bytes, _ := p.Trim(0, true); bytes > 0 {
		if h := p.reuseOwn(n, align, g); h != None { // releasing has synchronized
			return h, nil
		}
		h, err = p.extend(least, align)
	}
	return h, err
}

// regionFor returns the size of a region for n bytes: whole pages, or multiples of the largest
// power of two that divides Config.Region if that is smaller.
func (p *Pool) regionFor(n device.Size) device.Size {
	return device.AlignUp(n, min(p.Config.Region&-p.Config.Region, Page))
}

// extend reserves a region and returns the chunk that fills it, which is in no map.
func (p *Pool) extend(n, align device.Size) (Handle, error) {
	if !p.within(n) {
		return None, ErrLimit
	}
	p.asked = n
	r, err := p.src.Reserve(n, max(align, min(n&-n, Page)))
	if err == nil && r.Addr == 0 {
		err = device.ErrOutOfMemory
	}
	if err != nil {
		p.stats.ReserveFailures++
		return None, err
	}
	if !p.within(r.Size) && p.src.Release(r.Addr) == nil {
		// The source rounded up above the limit. A region that it does not release is used, so that it is
		// not lost.
		p.stats.Reserves++
		p.stats.Releases++
		return None, ErrLimit
	}
	size := device.AlignDown(r.Size, Quantum)
	h := p.add(r.Addr, size)
	at, _ := p.regions.Search(r.Addr)
	p.regions.Insert(at, index.AddrEntry[region]{Addr: r.Addr, Value: region{size: r.Size, first: h}})
	p.stats.Reserves++
	p.stats.Regions++
	p.stats.Reserved += r.Size
	p.stats.Slack += r.Size - size
	p.stats.ReservedHigh = max(p.stats.ReservedHigh, p.stats.Reserved)
	return h, nil
}

// within reports whether the limit leaves room for n more bytes.
func (p *Pool) within(n device.Size) bool {
	return p.Config.Limit == 0 || p.span.Fits(p.stats.Reserved+n, p.Config.Limit)
}

// CapacitySpan returns the limits with which the pool would have made the same calls so far.
func (p *Pool) CapacitySpan() device.Span { return p.span }

// Synchronize waits for the device and makes every freed chunk unowned. It is a no-op if no chunk
// waits for a mark.
func (p *Pool) Synchronize() error {
	if p.streams == nil || p.Settled() {
		return nil
	}
	if err := p.streams.SyncDevice(); err != nil {
		return err
	}
	p.stats.Syncs++
	_, _, _ = p.retireDone(true) // makes no device call
	return nil
}

// Settled reports whether no chunk waits for a mark. O(1).
func (p *Pool) Settled() bool { return p.busy.Len() == 0 }

// Poll retires the marks that are done, without waiting, and then releases empty regions above
// Config.Threshold. It repeats both after a release, because the release may synchronize the
// device. It returns the bytes that are no longer pending, and the first error of the device.
func (p *Pool) Poll() (bytes device.Size, first error) {
	for freed := device.Size(1); freed > 0; {
		n, err := p.Finish()
		bytes += n
		first = cmp.Or(first, err)
		freed, err = p.trim(p.Config.Threshold, false)
		first = cmp.Or(first, err)
	}
	return bytes, first
}

// Finish is Poll without releasing regions.
func (p *Pool) Finish() (bytes device.Size, first error) {
	bytes, _, first = p.retireDone(false)
	return bytes, first
}

// Trim releases empty regions, the highest first, while at least keep bytes stay reserved. It
// returns the bytes released and the first error of the source. Regions with owned chunks are
// released only with wait, which means that the source synchronizes the device when it releases a
// region.
//
// O(regions), and O(chunks) of the empty ones.
func (p *Pool) Trim(keep device.Size, wait bool) (bytes device.Size, first error) {
	for again := true; again; {
		freed, err := p.trim(keep, wait)
		bytes += freed
		first = cmp.Or(first, err)
		if again = wait && freed > 0 && !p.Settled(); again {
			_, _, _ = p.retireDone(true)
		}
	}
	return bytes, first
}

func (p *Pool) trim(keep device.Size, wait bool) (bytes device.Size, first error) {
	for i := p.regions.Len() - 1; i >= 0 && p.stats.Reserved > keep; i-- {
		at := p.regions.Nth(i)
		e := p.regions.Entry(at)
		if p.stats.Reserved-e.Value.size < keep || !p.empty(e.Value.first, wait) {
			continue
		}
		if err := p.src.Release(e.Addr); err != nil {
			first = cmp.Or(first, err)
			continue
		}
		for h := e.Value.first; h != None; {
			next := p.rows[h].next
			p.removeFree(h)
			p.dropMark(h)
			p.retire(h)
			h = next
		}
		p.forgetRegion(at)
		bytes += e.Value.size
	}
	return bytes, first
}

// empty reports whether all chunks of a region are free and, unless owned is set, unowned.
func (p *Pool) empty(h Handle, owned bool) bool {
	for ; h != None; h = p.rows[h].next {
		if w := &p.rows[h]; w.state != Free || w.group != unowned && !owned {
			return false
		}
	}
	return true
}

func (p *Pool) forgetRegion(at index.AddrPos) {
	size := p.regions.Entry(at).Value.size
	p.regions.Delete(at)
	p.stats.Regions--
	p.stats.Releases++
	p.stats.Reserved -= size
	p.stats.Slack -= size % Quantum
}

// Close releases all regions and destroys all events, live blocks or not. Regions that the device
// does not release stay as slack, and a second Close tries them again. The error is the first of
// the device. Afterwards only Walk, Stats, Bytes and Close may be called.
func (p *Pool) Close() (first error) {
	if p.groups != nil {
		for id := range p.marks.rows {
			if e := p.marks.rows[id].event; e != 0 {
				p.marks.events = append(p.marks.events, e)
			}
		}
		p.table, p.live, p.groups = table{}, index.NewAddrBuckets(), nil
		p.busy, p.largest = index.BitSet{}, index.MaxTree{}
		p.marks.rows, p.uses, p.index = nil, uses{}, index.AddrMap{}
		p.stats.Live, p.stats.Used, p.stats.Pending, p.stats.Slack = 0, 0, 0, p.stats.Reserved
	}
	for i := p.regions.Len() - 1; i >= 0; i-- {
		at := p.regions.Nth(i)
		if err := p.src.Release(p.regions.Entry(at).Addr); err != nil {
			first = cmp.Or(first, err)
			continue
		}
		p.forgetRegion(at)
	}
	p.stats.Slack = p.stats.Reserved
	first = cmp.Or(first, p.destroyEvents())
	return first
}
