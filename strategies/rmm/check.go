package rmm

import (
	"fmt"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
)

// The invariants, as the errors of Check begin.
const (
	brokenRows  = "invariant N1 (rows tile the regions)"
	brokenMap   = "invariant N2 (the map of addresses holds the live chunks)"
	brokenList  = "invariant N3 (a list holds the free chunks of its stream)"
	brokenArena = "invariant N4 (an arena lists the free chunks of its superblocks)"
	brokenMerge = "invariant N5 (free neighbors of one list or superblock are merged)"
)

// Check implements [alloc.Inspector]. It recounts everything.
func (a *Allocator) Check() error {
	t := &a.heap
	if !t.front.Closed() {
		if err := t.check(); err != nil {
			return fmt.Errorf("rmm: %w", err)
		}
		if err := a.res.check(); err != nil {
			return fmt.Errorf("rmm: %w", err)
		}
	}
	if err := front.CompareStats(t.front.Stats, a.Walk); err != nil {
		return fmt.Errorf("rmm: invariant N6 (counters match the walk): %w", err)
	}
	return nil
}

// check verifies the table.
func (t *heap) check() error {
	chunks, blocks, slack := 0, 0, device.Size(0)
	for i := range t.held.Len() {
		region, prev, used := t.held.At(i), none, device.Size(0)
		for h := t.first(i); h != none; h = t.rows[h].next {
			r := &t.rows[h]
			if r.state == retired || r.prev != prev || r.addr != region.Addr.Add(used) {
				return fmt.Errorf(brokenRows+": chunk %v of %d bytes", r.addr, uint64(r.size))
			}
			chunks, prev, used = chunks+1, h, used+r.size
			if r.state != live {
				continue
			}
			if blocks++; t.live.Get(r.addr, t.addrOf) != h {
				return fmt.Errorf(brokenMap+": block %v", r.addr)
			}
		}
		slack += region.Size - device.AlignDown(used, quantum)
	}
	spares := 0
	for h := t.spare; h != none && spares <= len(t.rows); h = t.rows[h].next {
		spares++
	}
	switch {
	case chunks+spares != len(t.rows)-1 || spares != t.spares || slack != t.slack:
		return fmt.Errorf(brokenRows+": %d rows for %d chunks, %d of %d spare; slack %d, counted %d",
			len(t.rows)-1, chunks, spares, t.spares, uint64(slack), uint64(t.slack))
	case blocks != t.live.Len():
		return fmt.Errorf(brokenMap+": %d of %d", blocks, t.live.Len())
	}
	return nil
}

// check implements resource.
func (p *pool) check() error {
	free := p.countFree()
	for part := range free {
		n, err := p.listsOf(uint32(part)).check()
		if err != nil {
			return err
		}
		if n != free[part] {
			return fmt.Errorf(brokenList+": %d of %d in part %d",
				n, free[part], part)
		}
	}
	return nil
}

// countFree returns the number of free chunks of each part.
func (p *pool) countFree() []int {
	n := make([]int, len(p.bins)+1)
	for i := range p.held.Len() {
		for h := p.first(i); h != none; h = p.rows[h].next {
			if p.rows[h].state == free {
				n[p.rows[h].part]++
			}
		}
	}
	return n
}

// check verifies the lists, and returns the number of their chunks.
func (l *lists) check() (n int, err error) {
	listed := func(h handle, i int) error {
		r := &l.rows[h]
		switch {
		case r.state != free || r.list != uint32(i) || r.part != l.part || l.block != 0 && r.size != l.block:
			return fmt.Errorf(brokenList+": chunk %v of %d bytes in list %d of part %d",
				r.addr, uint64(r.size), i, l.part)
		case l.block == 0 && l.joins(uint32(i), r.next):
			return fmt.Errorf(brokenMerge+": chunk %v in list %d", r.addr, i)
		}
		n++
		return nil
	}
	for i := range l.of {
		f := &l.of[i]
		if err := f.chunks.Check(); err != nil {
			return 0, fmt.Errorf(brokenList+": %w", err)
		}
		for e := range f.chunks.All {
			if r := &l.rows[e.Handle]; r.size != e.Size || r.addr != e.Addr {
				return 0, fmt.Errorf(brokenList+": chunk %v has %d bytes, not %d",
					e.Addr, uint64(r.size), uint64(e.Size))
			}
			if err := listed(e.Handle, i); err != nil {
				return 0, err
			}
		}
		before := n
		for h := f.head; h != none && n <= len(l.rows); h = l.rows[h].link {
			if err := listed(h, i); err != nil {
				return 0, err
			}
		}
		if n-before != f.blocks {
			return 0, fmt.Errorf(brokenList+": list %d of part %d counts %d blocks, holds %d",
				i, l.part, f.blocks, n-before)
		}
	}
	return n, nil
}

// check implements resource.
func (a *arena) check() error {
	if len(a.supers) == 0 {
		return nil
	}
	free := make([]int, len(a.of))
	h := a.first(0)
	for b, prev := uint32(1), uint32(0); b != 0; prev, b = b, a.supers[b].next {
		s := &a.supers[b]
		size := device.Size(0)
		if s.first != h || s.prev != prev {
			return fmt.Errorf(brokenArena+": superblock %d begins with %v",
				b, a.rows[s.first].addr)
		}
		for ; h != none && a.rows[h].part == b; h = a.rows[h].next {
			size += a.rows[h].size
			if !a.joins(b, h) {
				continue
			}
			free[s.owner]++
			if a.joins(b, a.rows[h].next) {
				return fmt.Errorf(brokenMerge+": chunk %v of superblock %d",
					a.rows[h].addr, b)
			}
		}
		if size != s.size {
			return fmt.Errorf(brokenArena+": superblock %d has %d bytes, not %d",
				b, uint64(size), uint64(s.size))
		}
		if a.mergeable(b) && a.mergeable(prev) {
			return fmt.Errorf(brokenMerge+": superblocks %d and %d", prev, b)
		}
	}
	for k := range a.of {
		if err := a.checkList(uint32(k), free[k]); err != nil {
			return err
		}
	}
	return nil
}

// checkList verifies that the list of an arena holds its free chunks, n of them.
func (a *arena) checkList(k uint32, n int) error {
	l := &a.of[k].chunks
	if l.Len() != n {
		return fmt.Errorf(brokenArena+": %d of %d in arena %d", l.Len(), n, k)
	}
	for j := range l.Leaves() {
		for _, e := range l.Leaf(j) {
			r := &a.rows[e.Value]
			if r.state != free || r.addr != e.Addr || a.supers[r.part].owner != k || l.NextLeaf(j, r.size) != j {
				return fmt.Errorf(brokenArena+": chunk %v in arena %d", e.Addr, k)
			}
		}
	}
	return nil
}
