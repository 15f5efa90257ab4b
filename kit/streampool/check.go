package streampool

import (
	"fmt"

	"github.com/vramyard/vramyard/kit/index"
)

// invariants are the invariants of the package comment in short, by number.
var invariants = [...]string{
	1: "chunks tile their region, links mirror",
	2: "free neighbours of one owner are merged",
	3: "the maps hold the free chunks",
	4: "the address index holds the live chunks",
	5: "queues hold the owned chunks, each with a mark",
	6: "pending chunks count their marks",
	7: "reference counts of rows, marks and events are exact",
	8: "statistics are sums over the chunks",
}

func broken(number int, format string, args ...any) error {
	return fmt.Errorf("invariant Q%d (%s): %s", number, invariants[number], fmt.Sprintf(format, args...))
}

// tally holds the counts of a check.
type tally struct {
	stats    Stats
	chunks   int
	free     []int    // by group
	refs     []int32  // by mark
	pending  []uint32 // by chunk: uses in queues
	recorded int      // uses of live chunks
	enqueued int      // uses in queues
}

// Check verifies the invariants of the package comment and returns an error that names the broken
// one. O(chunks log chunks).
func (p *Pool) Check() error {
	if p.groups == nil {
		if p.stats.Slack != p.stats.Reserved || p.stats.Regions != p.regions.Len() {
			return broken(8, "closed, with %+v", p.stats)
		}
		return nil
	}
	t := tally{
		free: make([]int, len(p.groups)), refs: make([]int32, len(p.marks.rows)), pending: make([]uint32, len(p.rows)),
	}
	for g := range p.groups {
		if err := p.checkUses(uint32(g), &t); err != nil {
			return err
		}
	}
	for e := range p.regions.All {
		if err := p.checkRegion(e, &t); err != nil {
			return err
		}
	}
	for g := range p.groups {
		if err := p.checkGroup(uint32(g), t.free[g]); err != nil {
			return err
		}
	}
	if n := p.live.Len(); n != t.stats.Live {
		return broken(4, "%d live chunks, %d entries", t.stats.Live, n)
	}
	if err := p.checkSpares(&t); err != nil {
		return err
	}
	return p.checkStats(&t)
}

func (p *Pool) checkRegion(e index.AddrEntry[region], t *tally) error {
	at, prev, end := e.Addr, None, e.Addr.Add(e.Value.size)
	for h := e.Value.first; h != None; h = p.rows[h].next {
		if int(h) >= len(p.rows) {
			return broken(1, "chunk %d is not in the table", h)
		}
		w := &p.rows[h]
		if w.addr != at || w.prev != prev || w.size == 0 || w.size%Quantum != 0 || w.state == retired {
			return broken(1, "chunk %d at %v of %d bytes behind chunk %d, expected at %v behind chunk %d",
				h, w.addr, uint64(w.size), w.prev, at, prev)
		}
		if err := p.checkChunk(h, t); err != nil {
			return err
		}
		at, prev = at.Add(w.size), h
	}
	if at > end || end.Sub(at) >= Quantum {
		return broken(1, "chunks of region %v end at %v, the region at %v", e.Addr, at, end)
	}
	t.stats.Reserved += e.Value.size
	t.stats.Slack += end.Sub(at)
	t.stats.Regions++
	return nil
}

func (p *Pool) checkChunk(h Handle, t *tally) error {
	w := &p.rows[h]
	t.chunks++
	t.refs[w.mark]++
	switch w.state {
	case Free:
		t.free[w.group]++
		if b := &p.rows[w.prev]; w.prev != None && b.state == Free && b.group == w.group {
			return broken(2, "%v and %v are neighbours and free", b.addr, w.addr)
		}
		if (w.mark == noMark) != (w.group == unowned) {
			return broken(5, "%v belongs to stream %d and has mark %d", w.addr, w.group, w.mark)
		}
	case Live:
		t.stats.Live++
		t.stats.Used += w.size
		if p.Find(w.addr) != h {
			return broken(4, "%v is live and not in it", w.addr)
		}
		if w.mark != noMark {
			return broken(5, "%v is live and has mark %d", w.addr, w.mark)
		}
		for i := w.uses; i != noUse; i = p.uses.rows[i].next {
			t.recorded++
		}
	default:
		t.stats.Pending += w.size
		if w.uses == 0 || w.uses != t.pending[h] || w.mark == noMark {
			return broken(6, "%v waits for %d marks, %d uses are queued", w.addr, w.uses, t.pending[h])
		}
	}
	return nil
}

func (p *Pool) checkUses(g uint32, t *tally) error {
	last := noUse
	for i := p.groups[g].firstUse; i != noUse; i = p.uses.rows[i].next {
		u := p.uses.rows[i]
		if t.enqueued++; t.enqueued > len(p.uses.rows) || int(u.chunk) >= len(p.rows) || u.group != g ||
			p.rows[u.chunk].state != Pending {
			return broken(6, "use %d of stream %d is of chunk %d", i, g, u.chunk)
		}
		t.pending[u.chunk]++
		t.refs[u.mark]++
		last = i
	}
	if last != p.groups[g].lastUse {
		return broken(6, "the last use of stream %d is %d, not %d", g, last, p.groups[g].lastUse)
	}
	return nil
}

func (p *Pool) checkGroup(g uint32, n int) error {
	m := &p.groups[g].free
	if err := m.Check(); err != nil {
		return err
	}
	if m.Len() != n {
		return broken(3, "%d free chunks belong to %d, its map has %d", n, g, m.Len())
	}
	for e := range m.All {
		if int(e.Handle) >= len(p.rows) {
			return broken(3, "the map of %d has chunk %d", g, e.Handle)
		}
		w := &p.rows[e.Handle]
		if w.state != Free || w.group != g || w.size != e.Size || w.addr != e.Addr || m.Entry(w.at) != e {
			return broken(3, "the map of %d has %+v, the chunk at %v is another", g, e, w.addr)
		}
	}
	queued, last := 0, None
	for h := p.groups[g].oldest; h != None; h = p.rows[h].newer {
		w := &p.rows[h]
		if queued++; queued > n || w.state != Free || w.group != g || w.older != last {
			return broken(5, "chunk %d is number %d of %d in the queue of %d", h, queued, n, g)
		}
		last = h
	}
	if g != unowned && queued != n || last != p.groups[g].newest {
		return broken(5, "%d free chunks belong to %d, its queue has %d", n, g, queued)
	}
	if waited := p.groups[g].firstUse != noUse; g != unowned && p.busy.Has(g) != (n > 0 || waited) {
		return broken(5, "stream %d is busy: %v, with %d free chunks; a pending chunk waits for it: %v", g,
			p.busy.Has(g), n, waited)
	}
	return nil
}

// checkSpares checks that every row, use and mark without a reference is spare.
func (p *Pool) checkSpares(t *tally) error {
	spares := 0
	for h := p.spare; h != None && spares <= p.spares; h = p.rows[h].chain {
		spares++
	}
	if spares != p.spares || t.chunks+spares != len(p.rows)-1 {
		return broken(7, "%d chunks and %d spare rows, counted %d, of %d", t.chunks, spares, p.spares, len(p.rows)-1)
	}
	unused := 0
	for i := p.uses.spare; i != noUse && unused < len(p.uses.rows); i = p.uses.rows[i].next {
		unused++
	}
	if t.recorded+t.enqueued+unused != len(p.uses.rows)-1 {
		return broken(7, "%d uses of live chunks, %d of pending chunks, %d spare, of %d",
			t.recorded, t.enqueued, unused, len(p.uses.rows)-1)
	}
	events, spare := len(p.marks.events), 0
	for id, w := range p.marks.rows[1:] {
		if w.refs != t.refs[id+1] {
			return broken(7, "mark %d has %d references, counted %d", id+1, t.refs[id+1], w.refs)
		}
		if w.event != 0 {
			events++
		}
		if w.refs == 0 {
			spare++
		}
	}
	for id := p.marks.spare; id != noMark; id = p.marks.rows[id].next {
		spare--
	}
	if spare != 0 || events != p.marks.created {
		return broken(7, "%d events of %d, %d spare marks in no list", events, p.marks.created, spare)
	}
	return nil
}

func (p *Pool) checkStats(t *tally) error {
	got, want := p.stats, t.stats
	for _, f := range [...]struct {
		name string
		stat uint64
		sum  uint64
	}{
		{"reserved bytes", uint64(got.Reserved), uint64(want.Reserved)},
		{"used bytes", uint64(got.Used), uint64(want.Used)},
		{"pending bytes", uint64(got.Pending), uint64(want.Pending)},
		{"slack bytes", uint64(got.Slack), uint64(want.Slack)},
		{"regions", uint64(got.Regions), uint64(want.Regions)},
		{"regions reserved and not released", got.Reserves - got.Releases, uint64(want.Regions)},
	} {
		if f.stat != f.sum {
			return broken(8, "%s: counted %d, there are %d", f.name, f.stat, f.sum)
		}
	}
	if got.ReservedHigh < got.Reserved || got.UsedHigh < got.Used {
		return broken(8, "a high-water mark is below the current value: %+v", got)
	}
	return nil
}
