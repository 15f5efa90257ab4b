package streampool

import (
	"cmp"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// grow gets a free chunk for n bytes, in no map, in the ways that come last.
func (p *Pool) grow(n, align device.Size, g uint32) (Handle, error) {
	least := p.regionFor(n)
	h, err := p.extend(max(least, p.Config.Region), align)
	if err != nil && least < p.Config.Region {
		h, err = p.extend(least, align)
	}
	if err == nil {
		return h, nil
	}
	if p.Synchronise() == nil {
		if h := p.own(n, align, g); h != None {
			return h, nil
		}
	}
	if bytes, _ := p.Trim(0, true); bytes > 0 {
		if h := p.own(n, align, g); h != None { // the source has waited
			return h, nil
		}
		h, err = p.extend(least, align)
	}
	return h, err
}

// regionFor returns the bytes of a region for n bytes: whole pages, or where regions are smaller,
// multiples of what those are.
func (p *Pool) regionFor(n device.Size) device.Size {
	return device.AlignUp(n, min(p.Config.Region&-p.Config.Region, Page))
}

// extend takes a region and returns the chunk that fills it, in no map.
func (p *Pool) extend(n, align device.Size) (Handle, error) {
	if p.Config.Limit != 0 && (n > p.Config.Limit || p.stats.Reserved > p.Config.Limit-n) {
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
	if p.Config.Limit != 0 && r.Size > p.Config.Limit-p.stats.Reserved && p.src.Release(r.Addr) == nil {
		// The source rounds up above the limit. What it does not take back is better used than lost.
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

// Synchronise waits for the device, after which all that was freed is finished. It does nothing
// where there is nothing to wait for.
func (p *Pool) Synchronise() error {
	if p.streams == nil || p.Settled() {
		return nil
	}
	if err := p.streams.SyncDevice(); err != nil {
		return err
	}
	p.stats.Syncs++
	_, _, _ = p.finishDone(true) // nothing is asked
	return nil
}

// Settled reports whether nothing waits for a mark. O(1).
func (p *Pool) Settled() bool { return p.busy.Len() == 0 }

// Poll looks which marks are done, without waiting, and then gives regions above the threshold
// back that nobody uses. A source that waits for all work when it takes one has done everything
// then, so it looks again. It returns the bytes that are no longer pending, and the first error of
// the device.
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

// Finish is Poll without giving regions back.
func (p *Pool) Finish() (bytes device.Size, first error) {
	bytes, _, first = p.finishDone(false)
	return bytes, first
}

// Trim gives regions without a block back, the highest first, as long as at least keep bytes stay.
// It returns the bytes and the first error of the source. Regions with chunks that belong to a
// stream go back only with wait, which says that the source waits for all work when it takes a
// region: then all is finished afterwards.
//
// O(regions), and O(chunks) of those without a block.
func (p *Pool) Trim(keep device.Size, wait bool) (bytes device.Size, first error) {
	for again := true; again; {
		freed, err := p.trim(keep, wait)
		bytes += freed
		first = cmp.Or(first, err)
		if again = wait && freed > 0 && !p.Settled(); again {
			_, _, _ = p.finishDone(true)
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
			p.unshelve(h)
			p.release(h)
			p.retire(h)
			h = next
		}
		p.dropped(at)
		bytes += e.Value.size
	}
	return bytes, first
}

// empty reports whether the chunks of a region are free, and of nobody unless owned ones will do.
func (p *Pool) empty(h Handle, owned bool) bool {
	for ; h != None; h = p.rows[h].next {
		if w := &p.rows[h]; w.state != Free || w.group != nobody && !owned {
			return false
		}
	}
	return true
}

func (p *Pool) dropped(at index.AddrPos) {
	size := p.regions.Entry(at).Value.size
	p.regions.Delete(at)
	p.stats.Regions--
	p.stats.Releases++
	p.stats.Reserved -= size
	p.stats.Slack -= size % Quantum
}

// Close gives all regions and events back, blocks or not. What the device refuses to take stays, as
// slack, and goes back when it is closed again; the error is the device's first. Nothing else may
// be called any more but Walk, Stats, Bytes and Close.
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
		p.dropped(at)
	}
	p.stats.Slack = p.stats.Reserved
	first = cmp.Or(first, p.destroyEvents())
	return first
}
