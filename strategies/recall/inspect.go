package recall

import (
	"fmt"
	"reflect"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// invariantNames are the invariants of the package comment in a few words.
var invariantNames = map[string]string{
	"O1": "entries, list and references agree on the live blocks",
	"O2": "the shadow holds the homes, and strays are counted",
	"O3": "planned places are within the guard",
	"O4": "a plan has a shadow, and blocks outside of it are counted",
	"T1": "chunks tile their window, links mirror, slots name their chunk",
	"T2": "the maps hold the free chunks",
	"T3": "free neighbors are merged",
	"T4": "slots and handles name each other",
	"T5": "memory is in use through one slot",
	"T6": "every row is in use or spare",
	"T7": "the ledger holds the live chunks",
	"T8": "counters match the walk",
	"T9": "the watch names allocations of its log",

	"T10": "pools in use are pinned",
}

func broken(name, format string, args ...any) error {
	return fmt.Errorf("recall: invariant %s (%s): %s", name, invariantNames[name], fmt.Sprintf(format, args...))
}

// Check implements [alloc.Inspector]. It recounts everything.
func (a *Allocator) Check() error {
	if err := a.View.Check(); err != nil {
		return err
	}
	live := make(map[device.Addr]device.Size, a.real.Stats().Live)
	for c := range a.real.Walk {
		if c.State == alloc.Live {
			live[c.Addr] = c.Size
		}
	}
	if err := a.checkEntries(live); err != nil {
		return err
	}
	if most := max(a.loose, a.guarded(a.mark)); a.top > most {
		return broken("O3", "blocks end at %d, without plans at %d, the fallback at %d", uint64(a.top), uint64(a.loose),
			uint64(a.mark))
	}
	if a.shadow.Allocator == nil {
		if a.strays != 0 || a.plan.number != 0 {
			return broken("O4", "%d strays and plan %d without a shadow", a.strays, a.plan.number)
		}
		return nil
	}
	if err := a.shadow.Check(); err != nil {
		return fmt.Errorf("recall: shadow: %w", err)
	}
	return a.checkShadow()
}

// checkEntries checks the entries of the live blocks, given their sizes by address.
func (a *Allocator) checkEntries(live map[device.Addr]device.Size) error {
	w := &a.watch
	if len(a.levels) != len(w.entries) {
		return broken("O1", "%d entries, live bytes of %d", len(w.entries), len(a.levels))
	}
	seen := func(b alloc.Block, entry int32) error {
		if n, ok := live[b.Addr]; !ok || n != b.Size || a.of[b.Ref] != entry {
			return broken("O1", "block %v of %d bytes: %d bytes are live there, its entry is %d, want %d", b.Addr,
				uint64(b.Size), uint64(n), a.of[b.Ref], entry)
		}
		delete(live, b.Addr)
		return nil
	}
	for k, i := range a.alive {
		if !w.known(i) || w.of(i).index != int32(k) || w.of(i).death != none {
			return broken("O1", "entry %d at %d of the list is not live", i, k)
		}
		if err := seen(w.of(i).block, i); err != nil {
			return err
		}
	}
	for k, e := range a.elders {
		if err := seen(e.block, elderAt-int32(k)); err != nil {
			return err
		}
	}
	if len(live) > 0 {
		return broken("O1", "%d live blocks have no entry", len(live))
	}
	return nil
}

// checkShadow compares the homes of the live blocks with the shadow.
func (a *Allocator) checkShadow() error {
	homes := map[device.Addr]device.Size{}
	for c := range a.shadow.Walk {
		if c.State == alloc.Live {
			homes[c.Addr] = c.Size
		}
	}
	strays, outside, high := 0, device.Size(0), device.Size(0)
	see := func(e elder) error {
		if e.strays() {
			strays++
		}
		if e.home.Size == 0 {
			return nil
		}
		high = max(high, a.end(e.home))
		if homes[e.home.Addr] != e.home.Size {
			return broken("O2", "block %v has its home at %v, where %d bytes are live, want %d", e.block.Addr, e.home.Addr,
				uint64(homes[e.home.Addr]), uint64(e.home.Size))
		}
		delete(homes, e.home.Addr)
		return nil
	}
	for _, i := range a.alive {
		e := a.watch.of(i)
		if err := see(elder{e.block, e.home}); err != nil {
			return err
		}
		if a.plan.number != 0 && e.apart == a.plan.number {
			outside += e.size
		}
	}
	for _, e := range a.elders {
		if err := see(e); err != nil {
			return err
		}
	}
	switch {
	case len(homes) > 0 || strays != a.strays:
		return broken("O2", "%d blocks of the shadow have no entry; %d strays, counted %d", len(homes), strays, a.strays)
	case high > a.mark:
		return broken("O2", "a home ends at %d, the highest at %d", uint64(high), uint64(a.mark))
	case outside > a.plan.apart:
		return broken("O4", "%d bytes are outside of the plan, counted %d", uint64(outside), uint64(a.plan.apart))
	}
	return nil
}

// MetadataBytes implements [power.Metered]. The sizes of maps are estimated. O(1), with a plan
// O(free chunks).
func (a *Allocator) MetadataBytes() device.Size {
	w := &a.watch
	n := a.View.MetadataBytes() + index.BytesOf(a.of) + index.BytesOf(a.alive) + index.BytesOf(a.levels) +
		index.BytesOf(w.entries) + index.BytesOf(w.contexts) + index.BytesOf(a.elders) +
		mapBytes(w.eras.sizes, w.eras.widest[0]) + mapBytes(w.eras.classes, w.eras.widest[1]) +
		mapBytes(w.eras.long, w.eras.widest[2])
	if a.shadow.Allocator != nil {
		n += a.shadow.MetadataBytes()
	}
	return n
}

// mapBytes estimates the host memory of a map that had at most n entries before. Maps of Go have
// groups of 8 slots with 8 bytes of control. Tables double up to 1024 slots, of which 7 in 8 are
// used, and then their number does.
func mapBytes[K comparable, V any](m map[K]V, n int) device.Size {
	n = max(n, len(m))
	if n == 0 {
		return 0
	}
	slots := 8
	for n > slots && n > slots/8*7 {
		slots *= 2
	}
	return device.Size(slots) * device.Size(1+reflect.TypeFor[K]().Size()+reflect.TypeFor[V]().Size())
}

// Close implements [alloc.Strategy].
func (a *Allocator) Close() error {
	a.leave()
	a.watch, a.alive, a.levels, a.of, a.elders = watch{}, nil, nil, nil, nil
	return a.View.Close()
}
