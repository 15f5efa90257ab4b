package plugin

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/standin"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/index"
)

// Has reports the powers for which the plug-in has a function.
func (a *Allocator) Has(p power.Power) bool {
	switch p {
	case power.PowerTrimmer:
		return a.cfg.Reset != ""
	case power.PowerStreamRecorder:
		return a.cfg.RecordStream != ""
	}
	return power.Implements(a, p)
}

// Stats implements [alloc.Inspector]. O(1).
func (a *Allocator) Stats() alloc.Stats {
	s := a.stats
	m := a.memory
	s.Reserved, s.PeakReserved = m.Regions+m.Mapped, m.Counts.PeakReserved
	s.Forgotten = m.Behind - m.Mapped
	s.Regions, s.Reserves, s.ReserveFailures = m.Counts.Held, m.Counts.Reserves, m.Counts.Refused
	s.Releases = m.Counts.Releases
	return s
}

func (a *Allocator) ClearStats() { a.stats.Clear() }

func (a *Allocator) WorkTime() int64 { return int64(a.workTime) }

// recordRefusal records a refusal. It walks all chunks to sum the free memory.
func (a *Allocator) recordRefusal(r *alloc.Request, why power.Reason) {
	a.refusal = power.Refusal{Reason: why, Request: *r}
	for c := range a.Walk {
		if c.State == alloc.Free {
			a.refusal.LargestHole = max(a.refusal.LargestHole, c.Size)
			a.refusal.Free += c.Size
		}
	}
}

// LastRefusal implements [power.Failure]. A plug-in does not report a reason. The reason is the
// device if it refused memory during the request, otherwise a limit of the plug-in.
func (a *Allocator) LastRefusal() (power.Refusal, bool) {
	return a.refusal, a.refusal.Reason != power.ReasonNone
}

// AppendReport implements [power.Reporter]: the plug-in's exception and the memory that it holds.
func (a *Allocator) AppendReport(text []byte, refused alloc.Request) []byte {
	if a.exception != "" {
		text = fmt.Appendf(text, "%s threw an exception: %s\n", a.cfg.Alloc, a.exception)
	} else {
		text = fmt.Appendf(text, "%s returned null\n", a.cfg.Alloc)
	}
	s := a.Stats()
	return fmt.Appendf(text, "request of %d bytes; %d live blocks of %d bytes; %d bytes of the device in %d regions\n",
		uint64(refused.Size), s.Live, uint64(s.Allocated), uint64(s.Reserved+s.Forgotten), s.Regions)
}

// Walk implements [alloc.Inspector]. Live blocks are known. Only the plug-in knows which other
// memory can be granted, so the memory between blocks is shown as one free chunk. Figures computed
// from free chunks are therefore a best case.
func (a *Allocator) Walk(yield func(alloc.Chunk) bool) {
	for e := range a.memory.Extents.All {
		v := walkState{region: device.Region{Addr: e.Addr, Size: e.Value.Size}, at: e.Addr, yield: yield}
		switch {
		case a.closed: // memory that the device refused to take back
			if v.yieldUpTo(v.region.End(), a.closedState(e)); v.stopped {
				return
			}
			continue
		case !e.Value.IsRange:
			a.yieldBlocks(&v, v.region.End(), alloc.Free)
		default:
			a.yieldRange(&v)
		}
		if v.stopped {
			return
		}
	}
}

// closedState returns the state of an extent after Close.
func (a *Allocator) closedState(e index.AddrEntry[standin.Extent]) alloc.State {
	if e.Value.IsRange {
		return alloc.Unmapped
	}
	return alloc.Slack
}

// walkState is the state of a walk through one region.
type walkState struct {
	region  device.Region
	at      device.Addr // end of the chunks yielded so far
	yield   func(alloc.Chunk) bool
	stopped bool
}

// yieldUpTo yields the memory up to an address as one chunk.
func (v *walkState) yieldUpTo(to device.Addr, state alloc.State) {
	if v.at < to {
		v.yieldChunk(alloc.Chunk{Size: to.Sub(v.at), State: state})
	}
}

// yieldChunk yields the next chunk.
func (v *walkState) yieldChunk(c alloc.Chunk) {
	if v.stopped {
		return
	}
	c.Region, c.Addr, c.Class = v.region.Addr, v.at, alloc.NoClass
	v.at = c.End()
	v.stopped = !v.yield(c)
}

// yieldBlocks yields the live blocks up to an address, and the memory between them in one state.
func (a *Allocator) yieldBlocks(v *walkState, to device.Addr, between alloc.State) {
	p, _ := a.live.Search(v.at)
	for p = a.live.Above(p); !v.stopped && a.live.Holds(p); p = a.live.Next(p) {
		e := a.live.Entry(p)
		if e.Addr >= to {
			break
		}
		v.yieldUpTo(e.Addr, between)
		v.yieldChunk(alloc.Chunk{Size: e.Value.size, Requested: e.Value.size, State: alloc.Live, Stream: e.Value.stream,
			Tag: e.Value.tag})
	}
	v.yieldUpTo(to, between)
}

// yieldRange yields the chunks of a range.
func (a *Allocator) yieldRange(v *walkState) {
	m := &a.memory.Mappings
	p, _ := m.Search(v.region.Addr)
	for p = m.Above(p); !v.stopped && m.Holds(p) && m.Entry(p).Addr < v.region.End(); {
		e := m.Entry(p)
		if e.Addr > v.at {
			v.yieldUpTo(e.Addr, alloc.Unmapped)
		}
		// A block may span adjacent mappings with the same access.
		state, end := stateOf(e.Value), e.Addr
		for ; m.Holds(p) && m.Entry(p).Addr == end && stateOf(m.Entry(p).Value) == state; p = m.Next(p) {
			end = end.Add(m.Entry(p).Value.Size)
		}
		a.yieldBlocks(v, end, state)
	}
	v.yieldUpTo(v.region.End(), alloc.Unmapped)
}

// stateOf returns the state of the memory of a mapping that is in no live block.
func stateOf(m standin.Mapping) alloc.State {
	switch {
	case m.Alias:
		return alloc.Aliased
	case m.Access != device.AccessReadWrite:
		return alloc.Slack
	}
	return alloc.Free
}

// Check implements [alloc.Inspector]: it compares the counters with the walk, and the base
// function's results with the live blocks if there is one.
func (a *Allocator) Check() error {
	if err := front.CompareStats(a.Stats(), a.Walk); err != nil {
		return fmt.Errorf("plugin: %w", err)
	}
	if a.cfg.Base == "" || a.closed {
		return nil
	}
	// A call for each block: only Check is that expensive.
	for e := range a.live.All {
		r, err := a.call(call{callBase, [4]uint64{uint64(e.Addr), uint64(e.Value.size)}})
		if err != nil {
			return err
		}
		base := device.Region{Addr: device.Addr(r.result), Size: device.Size(r.extra)}
		if !base.Contains(e.Addr) || base.End().Sub(e.Addr) < e.Value.size {
			return fmt.Errorf("plugin: %s returned %d bytes at %v, which do not contain block %v of %d bytes",
				a.cfg.Base, uint64(base.Size), base.Addr, e.Addr, uint64(e.Value.size))
		}
	}
	return nil
}
