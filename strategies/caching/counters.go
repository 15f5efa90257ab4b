package caching

import (
	"github.com/vramyard/vramyard/alloc/power"
)

// The kinds of blocks, by which counters are kept.
const (
	small = iota
	large
	kinds
)

// counter is one of PyTorch's statistics, for small and for large blocks.
type counter struct {
	current   [kinds]int64
	increased [kinds]int64 // sum of all increases
	peak      [kinds]int64
	peakAll   int64        // most of both together
	base      [kinds]int64 // what current was when increased was last cleared
}

func (c *counter) add(kind uint32, n int64) {
	// The mask removes the bounds check.
	kind &= large
	now := c.current[kind] + n
	c.current[kind] = now
	c.increased[kind] += n
	c.peak[kind] = max(c.peak[kind], now)
	c.peakAll = max(c.peakAll, now+c.current[kind^large])
}

func (c *counter) sub(kind uint32, n int64) { c.current[kind&large] -= n }

func (c *counter) change(kind uint32, n int64) {
	if n > 0 {
		c.add(kind, n)
	} else {
		c.sub(kind, -n)
	}
}

// all returns the current value of both kinds.
func (c *counter) all() int64 { return c.current[small] + c.current[large] }

// added returns the sum of the increases of both kinds.
func (c *counter) added() int64 { return c.increased[small] + c.increased[large] }

// taken returns the sum of the decreases of both kinds.
func (c *counter) taken() int64 { return c.added() + c.base[small] + c.base[large] - c.all() }

// clear sets the peaks to the current values and the sums to zero.
func (c *counter) clear() {
	c.peak, c.base, c.peakAll = c.current, c.current, c.all()
	c.increased = [kinds]int64{}
}

// emptied sets the current values to zero, without counting frees.
func (c *counter) emptied() {
	for k, now := range c.current {
		c.base[k] -= now
		c.current[k] = 0
	}
}

// values returns the values that PyTorch shows for a kind of block, or for all kinds if kind is
// kinds: current, peak, sum of the increases, sum of the decreases.
func (c *counter) values(kind int) [4]int64 {
	if kind == kinds {
		return [4]int64{c.all(), c.peakAll, c.added(), c.taken()}
	}
	return [4]int64{
		c.current[kind], c.peak[kind], c.increased[kind], c.increased[kind] + c.base[kind] - c.current[kind],
	}
}

// usage is a statistic of the blocks in use. PyTorch counts live blocks, and live and pending ones.
// Both differ only while blocks are pending, so a grant and a free update one counter.
type usage struct {
	counter                  // of live blocks, between request and free
	pending [kinds]int64     // of pending blocks, until the free is completed
	most    [kinds + 1]int64 // peak of live and pending blocks while blocks were pending, by kind and together
	stale   [kinds]int64     // what pending was when the sums were last cleared
}

// postpone counts a live block as pending.
func (u *usage) postpone(kind uint32, n int64) {
	u.sub(kind, n)
	u.pending[kind&large] += n
}

// complete counts a pending block as free.
func (u *usage) complete(kind uint32, n int64) { u.pending[kind&large] -= n }

// raise updates the peaks after an add while blocks are pending.
func (u *usage) raise(kind uint32) {
	u.most[kind] = max(u.most[kind], u.current[kind]+u.pending[kind])
	u.most[kinds] = max(u.most[kinds], u.held())
}

// parked returns what is pending of both kinds.
func (u *usage) parked() int64 { return u.pending[small] + u.pending[large] }

// held returns the current value with pending blocks, of both kinds.
func (u *usage) held() int64 { return u.all() + u.parked() }

// untilCompleted returns the counter of live and pending blocks. Its peak is that of the live
// blocks, unless it was higher while blocks were pending.
func (u *usage) untilCompleted() counter {
	c := u.counter
	for k := range kinds {
		c.current[k] += u.pending[k]
		c.base[k] += u.stale[k]
		c.peak[k] = max(c.peak[k], u.most[k])
	}
	c.peakAll = max(c.peakAll, u.most[kinds])
	return c
}

// clear sets the peaks to the current values and the sums to zero.
func (u *usage) clear() {
	u.counter.clear()
	u.stale = u.pending
	u.most = [kinds + 1]int64{u.current[small] + u.pending[small], u.current[large] + u.pending[large], u.held()}
}

// emptied sets the current values to zero, without counting frees.
func (u *usage) emptied() {
	u.counter.emptied()
	for k, n := range u.pending {
		u.stale[k] -= n
		u.pending[k] = 0
	}
}

// counters are PyTorch's statistics.
type counters struct {
	blocks, bytes, asked             usage // of the blocks in use: their number, sizes, and requested sizes
	segment, reservedBytes           counter
	inactiveSplit, inactiveSplitSize counter // free blocks that share a segment with others
	oversizeBlocks, oversizeSegments counter // without kinds: all are large

	retries, ooms, syncs, deviceAllocs, deviceFrees int64
	maxSplit                                        int64 // as the allocator was built; PyTorch does not update it
}

// shown returns the counters with kinds, in the order of counterNames.
func (n *counters) shown() [9]counter {
	return [...]counter{
		n.blocks.counter, n.segment, n.blocks.untilCompleted(), n.inactiveSplit, n.bytes.counter, n.reservedBytes,
		n.bytes.untilCompleted(), n.inactiveSplitSize, n.asked.untilCompleted(),
	}
}

// statistic is a counter or a usage.
type statistic interface {
	clear()
	emptied()
}

func (n *counters) all() []statistic {
	return []statistic{
		&n.blocks, &n.bytes, &n.asked, &n.segment, &n.reservedBytes, &n.inactiveSplit, &n.inactiveSplitSize,
		&n.oversizeBlocks, &n.oversizeSegments,
	}
}

// clear sets the peaks to the current values and the sums to zero.
func (n *counters) clear() {
	for _, c := range n.all() {
		c.clear()
	}
	n.retries, n.ooms, n.syncs, n.deviceAllocs, n.deviceFrees = 0, 0, 0, 0, 0
}

// emptied sets all current values to zero when the strategy is closed. It counts no frees.
func (n *counters) emptied() {
	for _, c := range n.all() {
		c.emptied()
	}
}

// counterNames are the names that Counters yields, in order.
var counterNames = nameCounters()

func nameCounters() (names []string) {
	columns := []string{"current", "peak", "allocated", "freed"}
	add := func(stat string) {
		for _, c := range columns {
			names = append(names, stat+"."+c)
		}
	}
	for _, stat := range []string{
		"allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes",
		"active_bytes", "inactive_split_bytes", "requested_bytes",
	} {
		for _, pool := range []string{"all", "small_pool", "large_pool"} {
			add(stat + "." + pool)
		}
	}
	add("oversize_allocations")
	add("oversize_segments")
	return append(names, "num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc", "num_device_free",
		"max_split_size")
}

var _ power.Counted = (*Allocator)(nil)

// Counters implements [power.Counted], under the names of torch.cuda.memory_stats.
func (a *Allocator) Counters(yield func(name string, value int64) bool) {
	// The names are made once, so that reading the counters allocates nothing.
	i, more := 0, true
	yieldAll := func(values ...int64) {
		for _, v := range values {
			more = more && yield(counterNames[i], v)
			i++
		}
	}
	n := &a.count
	for _, c := range n.shown() {
		for _, kind := range []int{kinds, small, large} {
			v := c.values(kind)
			yieldAll(v[:]...)
		}
	}
	for _, c := range []*counter{&n.oversizeBlocks, &n.oversizeSegments} {
		v := c.values(large)
		yieldAll(v[:]...)
	}
	// Without a bound PyTorch shows the largest unsigned number as a signed one, which is -1.
	yieldAll(n.retries, n.ooms, n.syncs, n.deviceAllocs, n.deviceFrees, n.maxSplit)
}
