package bench

import (
	"runtime"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// meter is a device that records its lowest region.
type meter struct {
	device.Forwarder
	dev    replay.Device
	lowest device.Addr // of all regions so far; the highest address without one
}

func newMeter(p replay.Target) (*meter, error) {
	dev, err := p.Open()
	if err != nil {
		return nil, err
	}
	m := &meter{dev: dev, lowest: ^device.Addr(0)}
	m.Forwarder = device.Hooked(dev, device.Hook{After: func(v *device.Invocation) {
		if v.Call == device.CallReserve && v.Err == nil {
			m.lowest = min(m.lowest, v.Region.Addr)
		}
	}})
	return m, nil
}

// Named is implemented by a foreign allocator that identifies its blocks by names instead of
// addresses, so that no table from addresses to names is part of its time. The address in a block
// that it grants is the name, and Free takes the name.
type Named interface {
	// AddrOf returns the address of the live block with the given name.
	AddrOf(name device.Addr) device.Addr
}

// Figures is the memory that a candidate took for a workload. Sizes are bytes. Heap aside, they
// are the same on every machine.
type Figures struct {
	Address device.Size // from the lowest address of all regions to the highest that was granted
	Named   bool        // the strategy is [Named]: its time includes no search for a block by address
	// SelfTimed means that the strategy is [power.SelfTimed], so that its times are of its own
	// clock.
	SelfTimed bool
	// Referenced means that the strategy is [power.Referenced], so that both ways to free are timed.
	Referenced bool
	Reserved   device.Size  // most held from the device
	Metadata   *device.Size // metadata of the strategy at the first peak of live bytes; nil without the power
	// growth of the Go heap until the churn, or until that peak if nothing precedes the churn
	Heap device.Size
}

// Figures runs the candidate over the whole workload and returns its memory figures.
func (c *Workload) Figures(k Candidate) (f Figures, err error) {
	dev, err := newMeter(k.Device)
	if err != nil {
		return f, err
	}
	before := heap()
	p, err := c.over(k, dev)
	if err != nil {
		return f, err
	}
	heapAt := len(c.untimed) - 1
	if heapAt < 0 {
		heapAt = c.peakAt
	}
	named, isNamed := p.strategy.(Named)
	f.Named, f.SelfTimed = isNamed, p.timed
	_, f.Referenced = power.ReferencedOf(p.strategy)
	var top device.Addr
	err = c.each(func(i int, op workload.Op) error {
		b, err := p.step(op)
		if err != nil {
			return p.refused(i, err)
		}
		at := b.Addr
		if isNamed && !op.IsFree() {
			at = named.AddrOf(at)
		}
		top = max(top, at.Add(b.Size))
		if i == heapAt {
			now := heap()
			f.Heap = now - min(before, now)
		}
		if i == c.peakAt {
			if n, err := power.MetadataBytes(p.strategy); err == nil {
				f.Metadata = &n
			}
		}
		return nil
	})
	if err != nil {
		return f, err
	}
	f.Address, f.Reserved = top.Sub(dev.lowest), dev.Usage().PeakHeld
	return f, p.Close()
}

// moment returns the time of the clock for single operations: the strategy's, which advances only
// while it works, or the wall clock.
func (p *Pass) moment() int64 {
	if !p.timed {
		return replay.WallTime()
	}
	ns, _ := power.WorkTime(p.strategy) // it has the power
	return ns
}

// step runs one operation. A free grants the zero block.
func (p *Pass) step(op workload.Op) (b alloc.Block, err error) {
	live := &p.workload.live[op.Slot()]
	if op.IsFree() {
		return b, p.strategy.Free(*live)
	}
	if b, err = p.strategy.Alloc(alloc.Request{Size: op.Size()}); err == nil {
		*live = b.Addr
	}
	return b, err
}

func heap() device.Size {
	var m runtime.MemStats
	runtime.GC() // finalizers and sync.Pools are cleared by the second collection
	runtime.GC()
	runtime.ReadMemStats(&m)
	return device.Size(m.HeapAlloc)
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// Latency holds the distribution of single operations, by the wall clock. The clock is
// read before and after each; Clock is the time of two readings with nothing between them.
type Latency struct {
	replay.Quantiles                  // of both kinds together
	Alloc            replay.Quantiles `json:"alloc"`    // of Alloc
	Free             replay.Quantiles `json:"free"`     // of Free
	Clock            int64            `json:"clock_ns"` // median of an empty measurement, included in every other figure

	AllocCalls, FreeCalls *replay.Histogram `json:"-"` // all of them, for pictures
}

// latency runs the candidate over the workload and times each operation of the churn separately.
func (c *Workload) latency(k Candidate) (*Latency, error) {
	p, err := c.Prepare(k)
	if err != nil {
		return nil, err
	}
	var kinds [2]replay.Histogram
	runtime.GC()
	for i, op := range c.churn {
		h := &kinds[0]
		if op.IsFree() {
			h = &kinds[1]
		}
		start := p.moment()
		_, err := p.step(op)
		h.Add(p.moment() - start)
		if err != nil {
			return nil, p.refused(len(c.untimed)+i, err)
		}
	}
	l := &Latency{
		Alloc: kinds[0].Quantiles(), Free: kinds[1].Quantiles(), Clock: replay.ClockCost(),
		AllocCalls: &kinds[0], FreeCalls: &kinds[1],
	}
	if p.timed {
		l.Clock = 0 // the strategy's own clock excludes the readings
	}
	both := kinds[0]
	both.Merge(&kinds[1])
	l.Quantiles = both.Quantiles()
	return l, p.Close()
}
