package recall

import (
	"fmt"
	"reflect"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// invariantNames are the invariants of the package comment in a few words.
var invariantNames = map[string]string{
	"O1": "references name the live blocks, and each its entry",
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
	if err := a.checkEntries(); err != nil {
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

// checkEntries checks the entries of the live blocks.
func (a *Allocator) checkEntries() error {
	w, blocks := &a.watch, 0
	seen := map[int32]bool{}
	for b := range a.real.Blocks {
		if int(b.Ref) >= len(a.of) || a.of[b.Ref] == none {
			return broken("O1", "block %v of %d bytes has no entry", b.Addr, uint64(b.Size))
		}
		blocks++
		i := a.of[b.Ref]
		if !w.known(i) {
			continue
		}
		if e := w.of(i); i >= w.next() || seen[i] || e.death != none || e.size > b.Size {
			return broken("O1", "block %v of %d bytes has entry %d of %d bytes, which died at %d", b.Addr, uint64(b.Size), i,
				uint64(e.size), e.death)
		}
		seen[i] = true
	}
	for _, i := range a.of {
		blocks -= count(i != none)
	}
	if blocks != 0 {
		return broken("O1", "%d blocks too many have an entry", -blocks)
	}
	return nil
}

// checkShadow compares the homes of the live blocks with the shadow.
func (a *Allocator) checkShadow() error {
	homes := map[device.Addr]device.Size{}
	for b := range a.shadow.Blocks {
		homes[b.Addr] = b.Size
	}
	strays, outside, high := 0, device.Size(0), device.Size(0)
	for b := range a.real.Blocks {
		h := a.shades[b.Ref]
		strays += count(h.block.Addr != b.Addr || h.block.Size != b.Size)
		if i := a.of[b.Ref]; a.watch.known(i) && a.plan.number != 0 && a.watch.placed(i).apart == a.plan.number {
			outside += a.watch.of(i).size
		}
		if h.block.Size == 0 {
			continue
		}
		high = max(high, a.end(h.block))
		if homes[h.block.Addr] != h.block.Size {
			return broken("O2", "block %v has its home at %v, where %d bytes are live, want %d", b.Addr, h.block.Addr,
				uint64(homes[h.block.Addr]), uint64(h.block.Size))
		}
		delete(homes, h.block.Addr)
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
	n := a.View.MetadataBytes() + index.BytesOf(a.of) + index.BytesOf(a.shades) + index.BytesOf(w.contexts) +
		index.BytesOf(w.deviated) +
		index.BytesOf(w.parts) + device.Size(len(w.parts))*device.Size(reflect.TypeFor[[partLen]entry]().Size()) +
		index.BytesOf(w.planned) + device.Size(len(w.planned))*device.Size(reflect.TypeFor[[partLen]planned]().Size()) +
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
	a.watch, a.of = watch{}, nil
	return a.View.Close()
}
