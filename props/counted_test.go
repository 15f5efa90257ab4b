package props_test

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// The planted bugs of what pooled counts and tells; each must be found.
const (
	countsPending     bug = "what is pending counts as allocated"
	countsWholePieces bug = "requested bytes are those of the block"
	countsTail        bug = "a free segment in one piece counts as split"
	countsSmallTwice  bug = "a small block counts in both pools"
	forgetsCame       bug = "what was allocated is not counted"
	peakStays         bug = "the peak is that of the last call but one"
	peakFallsBack     bug = "a peak falls with what it is of"
	oomsNotCounted    bug = "the second out of memory is not counted"
	namesMissing      bug = "a counter is missing"
	namesTwice        bug = "a counter is there twice"
	namesChange       bug = "the order of the counters changes"
	allocUntold       bug = "the second segment is not told"
	freeUntold        bug = "segments that go back are not told"
	freeTooLong       bug = "a segment that goes back is told with a byte too many"
	allocTwice        bug = "a segment is told twice"
	completedUntold   bug = "a pending free that becomes final is not told"
	completedTwice    bug = "every free is told as completed"
	wrongStreamTold   bug = "what is told is of stream 0"
	oomUntold         bug = "running out of memory is not told"
	oomLies           bug = "running out of memory is told with the bytes of the device"
	leftBehind        bug = "a chunk that is granted remembers its earlier use"
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

// now returns what the counters should be.
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

// count brings the counters up to what is there.
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
		if p.bug == forgetsCame {
			row[0].allocated = 0
		}
	}
}

// add counts what came, or went.
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

// ClearStats leaves the counters alone that have names.
func (p *pooled) ClearStats() { p.stats.Clear() }

func (p *pooled) SetHistory(tell func(power.Action)) { p.tell = tell }

// note tells an action.
func (p *pooled) note(a power.Action) {
	if p.tell == nil {
		return
	}
	times := 1
	switch {
	case p.bug == allocUntold && a.Kind == power.SegmentAlloc && len(p.segments) == 1,
		p.bug == freeUntold && a.Kind == power.SegmentFree,
		p.bug == completedUntold && a.Kind == power.FreeCompleted,
		p.bug == oomUntold && a.Kind == power.OutOfMemory:
		times = 0
	case p.bug == freeTooLong && a.Kind == power.SegmentFree:
		a.Size++
	case p.bug == allocTwice && a.Kind == power.SegmentAlloc:
		times = 2
	case p.bug == wrongStreamTold:
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
