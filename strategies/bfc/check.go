package bfc

import (
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// promises are the invariants of the package comment in a few words, by number.
var promises = [...]string{
	1:  "regions sorted and apart, everything in units",
	2:  "chunks tile their region, links mirror",
	3:  "each free chunk in exactly one bin",
	4:  "free neighbours are merged",
	5:  "requested at most size",
	6:  "no block wastes what the split rule forbids",
	7:  "counters equal what they count",
	8:  "the address index holds the live chunks",
	9:  "retired handles wait in one list",
	10: "owners in the order lower, gap, upper",
	11: "counts and queue",
}

func broken(number int, format string, args ...any) error {
	return fmt.Errorf("bfc: invariant B%d (%s): %s", number, promises[number], fmt.Sprintf(format, args...))
}

// Check implements [alloc.Inspector]. It recounts everything: O(chunks log chunks).
func (a *Allocator) Check() error {
	c := checker{a: a}
	for _, check := range []func() error{c.regions, c.counters, c.bins, c.index, c.spares, c.queue} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checker recounts an allocator and compares the sums over all chunks with counters and indexes.
type checker struct {
	a         *Allocator
	chunks    int
	free      int
	freeBytes device.Size
	live      int
	liveBytes device.Size
	requested device.Size
	pool      device.Size
	tails     device.Size
	empty     device.Size
}

// regions checks every region, and every chunk against its neighbours.
func (c *checker) regions() error {
	var end device.Addr
	t := &c.a.regions
	for i, number := range t.order {
		r := &t.rows[number]
		if i > 0 && r.addr < end || !r.addr.IsAligned(unit) || r.size == 0 || r.size%unit != 0 {
			return broken(1, "region %v of %d bytes after a region with end %v", r.addr, r.size, end)
		}
		for j, at := range r.more {
			if at <= r.addr || at >= r.end() || j > 0 && at <= r.more[j-1] {
				return broken(1, "reservation %v in region %v of %d bytes", at, r.addr, r.size)
			}
		}
		if err := c.tiles(number, r); err != nil {
			return err
		}
		end = r.end()
		c.pool += r.size
		c.tails += r.tail
		if r.live == 0 {
			c.empty += r.size
		}
	}
	if len(t.rows) != len(t.order)+len(t.spare) {
		return broken(7, "%d regions and %d spare rows of %d", len(t.order), len(t.spare), len(t.rows))
	}
	return nil
}

// tiles checks the chunks of one region: that each starts where the one before ends, names
// it as its predecessor and names the region.
func (c *checker) tiles(number uint32, r *region) error {
	at, prev, count := r.addr, none, 0
	for h := r.first; h != none; {
		k := &c.a.chunks.rows[h]
		if k.addr != at || k.size == 0 || k.size%unit != 0 || k.prev != prev || k.tag.region() != number {
			return broken(2, "chunk %d at %v of %d bytes, expected at %v after chunk %d", h, k.addr, k.size, at, prev)
		}
		if err := c.chunk(h, k); err != nil {
			return err
		}
		if err := c.pair(prev, h); err != nil {
			return err
		}
		if k.tag.state() == live {
			count++
		}
		at, prev, h = k.end(), h, k.next
	}
	if at != r.end() || prev != r.last {
		return broken(2, "chunks of region %v end at %v with chunk %d, not at %v with %d", r.addr, at, prev, r.end(), r.last)
	}
	if count != r.live {
		return broken(7, "region %v has %d live chunks, its counter says %d", r.addr, count, r.live)
	}
	return nil
}

func (c *checker) chunk(h handle, k *chunk) error {
	c.chunks++
	switch k.tag.state() {
	case free:
		c.free++
		c.freeBytes += k.size
	case live:
		c.live++
		c.liveBytes += k.size
		return c.block(h, k)
	default:
		return broken(2, "chunk %d at %v is retired", h, k.addr)
	}
	return nil
}

// block checks and counts one live chunk. A split now must leave the same as the split at the
// grant, because live chunks never change their size.
func (c *checker) block(h handle, k *chunk) error {
	n := c.a.chunks.requested(h)
	c.requested += n
	if n == 0 || n > k.size {
		return broken(5, "%v: %d bytes requested of %d", k.addr, n, k.size)
	}
	if rest := k.size - roundUp(n); c.a.splits(rest, roundUp(n)) || k.tag.owner() == OwnerUpper && rest > 0 {
		return broken(6, "%v: %d bytes requested of %d", k.addr, n, k.size)
	}
	if !c.a.live.Dropped() && c.a.live.Get(k.addr, c.a.chunks.addrOf) != h+1 {
		return broken(8, "%v is live and not in it", k.addr)
	}
	return nil
}

// pair checks two neighbours, of which the first may be none: their owners, and that they
// are not both free. With timing the latter is checked with the queue.
func (c *checker) pair(left, h handle) error {
	rows := c.a.chunks.rows
	owner := rows[h].tag.owner()
	if (owner == OwnerNone) == c.a.cfg.Spatial {
		return broken(10, "%v has owner %d", rows[h].addr, owner)
	}
	if left == none {
		return nil
	}
	if rank(rows[left].tag.owner()) > rank(owner) {
		return broken(10, "%v has owner %d after %d", rows[h].addr, owner, rows[left].tag.owner())
	}
	if !c.a.cfg.Timing && rows[left].tag.state() == free && rows[h].tag.state() == free {
		return broken(4, "%v and %v are neighbours and free", rows[left].addr, rows[h].addr)
	}
	return nil
}

// rank returns the place of an owner in a region.
func rank(owner uint8) int {
	return [numOwners]int{OwnerNone: 0, OwnerLower: 1, OwnerGap: 2, OwnerUpper: 3}[owner]
}

func (c *checker) counters() error {
	s, t := c.a.front.Stats, &c.a.regions
	switch {
	case c.pool != s.Reserved || s.PeakReserved < s.Reserved || s.Regions != len(t.order):
		return broken(7, "%d bytes in %d regions, Stats say %d in %d", c.pool, len(t.order), s.Reserved, s.Regions)
	case c.liveBytes != s.Allocated || s.PeakAllocated < s.Allocated || s.Active != s.Allocated:
		return broken(7, "%d bytes live, Stats say %d, active %d, peak %d", c.liveBytes, s.Allocated, s.Active,
			s.PeakAllocated)
	case c.requested != s.Requested || c.live != s.Live:
		return broken(7, "%d blocks of %d requested bytes, Stats say %d of %d", c.live, c.requested, s.Live, s.Requested)
	case c.tails != s.Forgotten:
		return broken(7, "%d bytes behind regions, Stats say %d", c.tails, s.Forgotten)
	case c.empty != t.empty:
		return broken(7, "%d bytes in regions without live chunks, the counter says %d", c.empty, t.empty)
	}
	return nil
}

// bins checks that the bins hold the free chunks and nothing else. As every entry is a
// free chunk of the walk and keys are unique, equal numbers and bytes mean equal sets.
func (c *checker) bins() error {
	n, bytes := 0, device.Size(0)
	for owner := range c.a.bins {
		t := &c.a.bins[owner]
		if err := t.Check(); err != nil {
			return broken(3, "%v", err)
		}
		for e := range t.All {
			if err := c.binned(e, uint8(owner)); err != nil {
				return err
			}
			n++
			bytes += e.Size
		}
	}
	if n != c.free || bytes != c.freeBytes {
		return broken(3, "%d chunks of %d bytes are free, %d of %d in bins", c.free, c.freeBytes, n, bytes)
	}
	return nil
}

func (c *checker) binned(e index.SizeEntry, owner uint8) error {
	if int(e.Handle) >= len(c.a.chunks.rows) {
		return broken(3, "entry %v names no chunk", e)
	}
	k := &c.a.chunks.rows[e.Handle]
	if k.tag.state() != free || k.addr != e.Addr || k.size != e.Size || k.tag.owner() != owner {
		return broken(3, "entry %v under owner %d is not the chunk at %v of %d bytes", e, owner, k.addr, k.size)
	}
	return nil
}

func (c *checker) index() error {
	if n := c.a.live.Len(); n != c.live && !c.a.live.Dropped() {
		return broken(8, "%d entries for %d live chunks", n, c.live)
	}
	return nil
}

// spares checks the list of retired handles, which with the chunks of the walk must make up
// the table.
func (c *checker) spares() error {
	t, n := &c.a.chunks, 0
	for h := t.spare; h != none && n <= t.spares; h = t.rows[h].next {
		if t.rows[h].tag.state() != retired {
			return broken(9, "chunk %d at %v is in the list", h, t.rows[h].addr)
		}
		n++
	}
	if n != t.spares || n+c.chunks != len(t.rows) {
		return broken(9, "%d in the list, the counter says %d, of %d records %d are chunks", n, t.spares,
			len(t.rows), c.chunks)
	}
	return nil
}

// queue checks counts and the timestamp queue. The original leaves unsafe chunks without an
// entry, and free neighbours unmerged; mended mode has an entry for each.
func (c *checker) queue() error {
	a, q := c.a, &c.a.queue
	if !a.cfg.Timing {
		if q.n > 0 || len(q.entries) > 0 {
			return broken(11, "%d entries without timing", len(q.entries))
		}
		return nil
	}
	queued := make([]uint32, len(a.chunks.rows))
	if err := c.entries(queued); err != nil {
		return err
	}
	for h, n := range queued {
		if n != a.chunks.marks[h].entries {
			return broken(11, "%d entries of chunk %d, its mark says %d", n, h, a.chunks.marks[h].entries)
		}
	}
	var err error
	a.walk(func(h handle) bool {
		err = c.stamp(h, queued)
		return err == nil
	})
	return err
}

// entries checks the entries of the queue and counts them by handle.
func (c *checker) entries(queued []uint32) error {
	q, n, last := &c.a.queue, 0, uint64(0)
	for _, e := range q.entries[q.head:] {
		if int(e.h) >= len(queued) || e.seq >= q.next {
			return broken(11, "entry %d names no chunk", e.h)
		}
		if !q.shuffled && e.stamp < last {
			return broken(11, "stamp %d after %d", e.stamp, last)
		}
		last = e.stamp
		if c.a.void(e) {
			continue
		}
		n++
		queued[e.h]++
		if c.a.isQueueable(e.h) && !q.full && c.a.chunks.freedAt[e.h] < max(e.stamp, q.oldest, 1) {
			return broken(11, "chunk %d was freed at %d, its entry says %d, the queue nothing before %d",
				e.h, c.a.chunks.freedAt[e.h], e.stamp, q.oldest)
		}
		if !c.a.isQueueable(e.h) && !q.full && !slices.Contains(q.suspects, e.h) {
			return broken(11, "chunk %d is queued, in no bin and no suspect", e.h)
		}
	}
	if n != q.n {
		return broken(11, "%d entries, the counter says %d", n, q.n)
	}
	return nil
}

// stamp checks the count of one chunk and whether a sweep will look at it.
func (c *checker) stamp(h handle, queued []uint32) error {
	a := c.a
	k, count := &a.chunks.rows[h], a.chunks.freedAt[h]
	if count > a.clock || k.tag.state() == live && count != 0 {
		return broken(11, "%v was freed at %d of %d", k.addr, count, a.clock)
	}
	if !a.cfg.Mended || k.tag.state() != free || queued[h] > 0 {
		return nil
	}
	if count > 0 {
		return broken(11, "%v is unsafe since %d and not queued", k.addr, count)
	}
	if a.isFree(k.prev) && queued[k.prev] == 0 {
		return broken(4, "%v and its predecessor are free and neither is queued", k.addr)
	}
	return nil
}
