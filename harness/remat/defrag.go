package remat

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

// Defrag configures defragmentation. Blocks move while no operator runs, even blocks of locked
// inputs. A move does not count as a use of a storage, and its time is not added to the clock of
// the run.
type Defrag struct {
	Kind       string    // one of DefragKinds; empty: slide
	KeepPinned bool      // keep pinned storages in place
	Costs      MoveCosts // zero: DefaultMoveCosts
}

// MoveCosts is the cost model of defragmentation.
type MoveCosts struct {
	PCIe   uint64      // bytes per second between host and device
	HBM    uint64      // bytes per second read from or written to device memory
	Sync   int64       // ns of a device synchronization
	Alloc  int64       // ns to free and reallocate a block
	Launch int64       // ns to launch a copy
	Remap  int64       // ns per block to unmap it and to set access at the new address
	Map    int64       // ns per page to map it
	Page   device.Size // bytes per page
}

// DefaultMoveCosts returns published costs. PCIe is the link of an A100 80 GB, 16 lanes of PCI
// Express 4.0 (16 GT/s, 128b/130b coding), HBM is the data sheet of that card, and the times of
// calls are the table Published of the simulated device. Launching a copy costs as much as a fill.
func DefaultMoveCosts() MoveCosts {
	published, _ := sim.Published.Costs()
	card, _ := cardOf(defaultCard)
	base := func(calls ...device.Call) (ns int64) {
		for _, c := range calls {
			ns += int64(published[c].Base)
		}
		return ns
	}
	return MoveCosts{
		PCIe: card.Link, HBM: card.Bandwidth,
		Sync:   base(device.CallSyncDevice),
		Alloc:  base(device.CallAllocAsync, device.CallFreeAsync),
		Launch: base(device.CallFill),
		Remap:  base(device.CallUnmap, device.CallSetAccess),
		Map:    base(device.CallMap) + int64(published[device.CallUnmap].Page+published[device.CallSetAccess].Page),
		Page:   2 * device.MiB,
	}
}

// Moves summarises the defragmentation of a run.
type Moves struct {
	Defrags int   // defragmentations
	Blocks  int   // blocks copied or remapped
	Bytes   int64 // requested bytes of these blocks
	Time    int64 // ns
}

// defragKind is a way to defragment.
type defragKind struct {
	name string
	by   MoveMode
	// every block is copied, including those whose address stays the same
	copiesAll bool
	order     func(a, b OwnedBlock) int                                // order of the list
	time      func(c *MoveCosts, blocks int, bytes, pages int64) int64 // ns
}

// defragKinds returns all kinds, the default first.
func defragKinds() []defragKind {
	byAddress := func(a, b OwnedBlock) int { return cmp.Compare(a.Block.Addr, b.Block.Addr) }
	// A workspace, Owner 0, wraps around and comes last.
	byAge := func(a, b OwnedBlock) int { return cmp.Compare(a.Owner-1, b.Owner-1) }
	return []defragKind{
		{"slide", SlideDown, false, byAddress, func(c *MoveCosts, blocks int, bytes, _ int64) int64 {
			return 2*transfer(bytes, c.HBM) + int64(blocks)*c.Launch
		}},
		{"bounce", Reallocate, true, byAge, func(c *MoveCosts, blocks int, bytes, _ int64) int64 {
			return 2*transfer(bytes, c.PCIe) + 2*c.Sync + int64(blocks)*c.Alloc
		}},
		{"remap", SlideDown, false, byAddress, func(c *MoveCosts, blocks int, _, pages int64) int64 {
			return int64(blocks)*c.Remap + pages*c.Map
		}},
	}
}

func transfer(bytes int64, perSecond uint64) int64 {
	return int64(math.Ceil(float64(bytes) / float64(perSecond) * 1e9))
}

// DefragKinds returns the ways to defragment:
//
//   - slide copies blocks on the device towards the low end of memory.
//   - bounce copies all blocks to the host, frees them, and copies them back (MegEngine).
//   - remap changes the virtual addresses of blocks and leaves their pages in place.
func DefragKinds() []string {
	names := []string{}
	for _, k := range defragKinds() {
		names = append(names, k.name)
	}
	return names
}

func (d Defrag) kind() (defragKind, MoveCosts, bool) {
	costs := d.Costs
	if costs == (MoveCosts{}) {
		costs = DefaultMoveCosts()
	}
	kinds := defragKinds()
	i := slices.IndexFunc(kinds, func(k defragKind) bool { return k.name == d.Kind || d.Kind == "" })
	if i < 0 {
		return defragKind{}, costs, false
	}
	return kinds[i], costs, true
}

func (d Defrag) check() error {
	_, c, ok := d.kind()
	switch {
	case !ok:
		return fmt.Errorf("defrag %q: want %s", d.Kind, strings.Join(DefragKinds(), ", "))
	case c.PCIe == 0 || c.HBM == 0 || c.Page == 0:
		return fmt.Errorf("defrag: want PCIe, HBM and Page above 0")
	case min(c.Sync, c.Alloc, c.Launch, c.Remap, c.Map) < 0:
		return fmt.Errorf("defrag: want times of at least 0")
	}
	return nil
}

// defrag moves all movable blocks. The blocks of the operator that is about to run move at no cost,
// because they have no contents yet.
func (r *runner) defrag() effect {
	kind, costs, _ := r.c.Defrag.kind()
	list, holders := r.movable()
	if len(list) == 0 {
		return nothing
	}
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return kind.order(list[a], list[b]) })
	moved := make([]OwnedBlock, len(list))
	for i, at := range order {
		moved[i] = list[at]
	}
	if lost := r.addressed.Move(moved, kind.by); lost > 0 {
		r.requested = lost
		return failed
	}
	blocks, bytes, pages := 0, int64(0), int64(0)
	for i, at := range order {
		h := holders[at]
		if *h.block = moved[i].Block; h.hasContents && (kind.copiesAll || moved[i].Block.Addr != list[at].Block.Addr) {
			blocks++
			bytes += int64(moved[i].Size)
			pages += int64((moved[i].Size-1)/costs.Page) + 1
		}
	}
	m := &r.res.Moves
	m.Defrags++
	m.Blocks += blocks
	m.Bytes += bytes
	m.Time += kind.time(&costs, blocks, bytes, pages)
	r.vacated = r.vacated[:0] // the holes of the victims are no longer where they were
	return acted
}

// holder points to the field that holds a block.
type holder struct {
	block       *alloc.Block
	hasContents bool
}

// movable returns the movable blocks and their holders: the blocks of storages in order of
// creation, then the blocks of the operator that is about to run.
func (r *runner) movable() (list []OwnedBlock, holders []holder) {
	for i := range r.stores {
		st, size := &r.stores[i], r.s.Storages[i].Size
		if r.inMemory(int32(i)) && size > 0 && !(st.pinned && r.c.Defrag.KeepPinned) {
			list = append(list, OwnedBlock{ownerOf(int32(i)), size, st.block})
			holders = append(holders, holder{&st.block, true})
		}
	}
	for i := range r.blocks {
		if b := &r.blocks[i]; b.Size > 0 {
			list = append(list, *b)
			holders = append(holders, holder{&b.Block, false})
		}
	}
	return list, holders
}
