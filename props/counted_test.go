package props_test

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// The planted bugs in the counters and the history of pooled; each must be found.
const (
	countsPending       bug = "pending blocks count as allocated"
	countsWholePieces   bug = "requested bytes are the bytes of the block"
	countsTail          bug = "a free segment in one piece counts as split"
	countsSmallTwice    bug = "a small block counts in both pools"
	forgetsAllocated    bug = "the total of allocated bytes stays zero"
	peakStays           bug = "the joint peak is never raised"
	peakFallsBack       bug = "a peak falls with its current value"
	oomsNotCounted      bug = "the second out of memory is not counted"
	namesMissing        bug = "a counter is missing"
	namesTwice          bug = "a counter has its name twice"
	namesChange         bug = "the order of the counters changes"
	allocUnreported     bug = "the second segment is not reported"
	freeUnreported      bug = "released segments are not reported"
	freeTooLong         bug = "a released segment is reported with a byte too many"
	allocTwice          bug = "a segment is reported twice"
	completedUnreported bug = "a completed free is not reported"
	completedTwice      bug = "every free is reported as completed"
	wrongStreamReported bug = "every action is reported for stream 0"
	oomUnreported       bug = "running out of memory is not reported"
	oomLies             bug = "running out of memory is reported with the bytes of the device"
	leftBehind          bug = "a chunk that is granted remembers its earlier use"
)

// pooledCount is one counter with its columns.
type pooledCount struct{ current, peak, allocated, freed int64 }

// pooledPools are the pools of counters, pooledNames the counters.
var (
	pooledPools = []string{"all", "small_pool", "large_pool"}
	pooledNames = []string{
		"allocation", "allocated_bytes", "active", "active_bytes", "requested_bytes", "segment", "reserved_bytes",
		"inactive_split", "inactive_split_bytes",
	}
)

// pooledCounts are the counters of pooled, by name and pool.
type pooledCounts struct {
	of    [9][3]pooledCount
	looks int
}

// now returns the correct current values of the counters.
func (p *pooled) now() (all [9][2]int64) {
	for _, s := range p.segments {
		n := int(s.class)
		all[5][n]++
		for _, c := range s.pieces {
			size := int64(c.Size)
			all[6][n] += size
			switch {
			case c.State == alloc.Free && (len(s.pieces) > 1 || p.bug == countsTail):
				all[7][n]++
				all[8][n] += size
			case c.State == alloc.Free:
				continue
			case c.State == alloc.Live || p.bug == countsPending:
				all[0][n]++
				all[1][n] += size
			}
			if c.State == alloc.Free {
				continue
			}
			all[2][n]++
			all[3][n] += size
			if all[4][n] += int64(c.Requested); p.bug == countsWholePieces {
				all[4][n] += size - int64(c.Requested)
			}
		}
	}
	return all
}

// count updates the counters to the current values.
func (p *pooled) count() {
	for name, by := range p.now() {
		row := &p.counts.of[name]
		for n, value := range by {
			rose := value - row[n+1].current
			row[n+1].add(rose, p.bug)
			row[0].allocated += max(rose, 0)
			row[0].freed += max(-rose, 0)
			if p.bug == countsSmallTwice && n == 0 && name == 0 {
				row[2].allocated += max(rose, 0)
			}
		}
		row[0].current = row[1].current + row[2].current
		if p.bug != peakStays {
			row[0].peak = max(row[0].peak, row[0].current)
		}
		if p.bug == forgetsAllocated {
			row[0].allocated = 0
		}
	}
}

// add counts an increase, or a decrease if it is negative.
func (c *pooledCount) add(rose int64, b bug) {
	c.current += rose
	c.allocated += max(rose, 0)
	c.freed += max(-rose, 0)
	if c.peak = max(c.peak, c.current); b == peakFallsBack {
		c.peak = c.current
	}
}

func (p *pooled) Counters(yield func(name string, value int64) bool) {
	ooms := int64(p.stats.OOMs)
	if p.bug == oomsNotCounted {
		ooms = min(ooms, 1)
	}
	p.counts.looks++
	for n, name := range pooledNames {
		if p.bug == namesChange && p.counts.looks > 3 {
			n = len(pooledNames) - 1 - n
			name = pooledNames[n]
		}
		for k, pool := range pooledPools {
			c, base := p.counts.of[n][k], name+"."+pool
			ok := yield(base+".current", c.current) && yield(base+".peak", c.peak) && yield(base+".allocated", c.allocated)
			if !ok || p.bug != namesMissing && !yield(base+".freed", c.freed) {
				return
			}
		}
	}
	if yield("num_ooms", ooms) && p.bug == namesTwice {
		yield("num_ooms", ooms)
	}
}

// ClearStats clears the statistics but not the counters by name.
func (p *pooled) ClearStats() { p.stats.Clear() }

func (p *pooled) SetHistory(tell func(power.Action)) { p.tell = tell }

// note tells an action.
func (p *pooled) note(a power.Action) {
	if p.tell == nil {
		return
	}
	times := 1
	switch {
	case p.bug == allocUnreported && a.Kind == power.SegmentAlloc && len(p.segments) == 1,
		p.bug == freeUnreported && a.Kind == power.SegmentFree,
		p.bug == completedUnreported && a.Kind == power.FreeCompleted,
		p.bug == oomUnreported && a.Kind == power.OutOfMemory:
		times = 0
	case p.bug == freeTooLong && a.Kind == power.SegmentFree:
		a.Size++
	case p.bug == allocTwice && a.Kind == power.SegmentAlloc:
		times = 2
	case p.bug == wrongStreamReported:
		a.Stream = 0
	}
	if info, ok := device.MemoryInfoOf(p.src); ok && a.Kind == power.OutOfMemory {
		left, total, err := info.MemoryInfo()
		if a.DeviceFree = left; err != nil {
			a.DeviceFree = 0
		}
		if p.bug == oomLies {
			a.DeviceFree = total
		}
	}
	for range times {
		p.tell(a)
	}
}
