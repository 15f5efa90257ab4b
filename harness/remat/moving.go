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

// Defrag is how blocks are moved so that free memory becomes one piece. Between two operators all
// of them may move, those of inputs that are locked too: no operator runs. Moving is no use, so
// nothing looks younger for it, and its time is on a clock of its own.
type Defrag struct {
	Kind  string    // of DefragKinds; empty: slide
	Stay  bool      // pinned storages stay where they are, as if others knew their addresses
	Costs MoveCosts // the zero value: those of DefaultMoveCosts
}

// MoveCosts is what moving takes.
type MoveCosts struct {
	PCIe   uint64      // bytes a second between host and device
	HBM    uint64      // bytes a second that memory of the device reads or writes
	Sync   int64       // ns to wait for the device
	Alloc  int64       // ns to free a block and have another
	Launch int64       // ns to start a copy
	Remap  int64       // ns of the calls that unmap a block and give access to it elsewhere
	Map    int64       // ns for each page of it
	Page   device.Size // bytes of a page
}

// DefaultMoveCosts returns costs that others have measured or stated. PCIe is what 16 lanes of PCI
// Express 4.0 carry, 16 GT/s in 128 of 130 bits; HBM is the data sheet of an A100 of 80 GB; the
// rest are calls of the simulated device's table of published costs, a copy being started like a
// fill.
func DefaultMoveCosts() MoveCosts {
	published, _ := sim.Published.Costs()
	base := func(calls ...device.Call) (ns int64) {
		for _, c := range calls {
			ns += int64(published[c].Base)
		}
		return ns
	}
	return MoveCosts{
		PCIe: 31_507_692_307, HBM: 2039e9,
		Sync:   base(device.CallSyncDevice),
		Alloc:  base(device.CallAllocAsync, device.CallFreeAsync),
		Launch: base(device.CallFill),
		Remap:  base(device.CallUnmap, device.CallSetAccess),
		Map:    base(device.CallMap) + int64(published[device.CallUnmap].Page+published[device.CallSetAccess].Page),
		Page:   2 * device.MiB,
	}
}

// Moves is what was moved in a run.
type Moves struct {
	Defrags int   // times that blocks were moved
	Blocks  int   // that were copied or mapped elsewhere
	Bytes   int64 // theirs, as asked for
	Time    int64 // ns
}

// defragKind is a way to move blocks.
type defragKind struct {
	name string
	by   Move
	// every block is copied, not only what lies elsewhere then
	all   bool
	order func(a, b Moving) int                                    // of the list that is moved
	time  func(c *MoveCosts, blocks int, bytes, pages int64) int64 // ns
}

// defragKinds returns all kinds. The first is the default.
func defragKinds() []defragKind {
	byAddress := func(a, b Moving) int { return cmp.Compare(a.Block.Addr, b.Block.Addr) }
	byAge := func(a, b Moving) int { return cmp.Compare(a.Owner-1, b.Owner-1) } // a workspace is the youngest
	return []defragKind{
		{"slide", Down, false, byAddress, func(c *MoveCosts, blocks int, bytes, _ int64) int64 {
			return 2*transfer(bytes, c.HBM) + int64(blocks)*c.Launch
		}},
		{"bounce", Anew, true, byAge, func(c *MoveCosts, blocks int, bytes, _ int64) int64 {
			return 2*transfer(bytes, c.PCIe) + 2*c.Sync + int64(blocks)*c.Alloc
		}},
		{"remap", Down, false, byAddress, func(c *MoveCosts, blocks int, _, pages int64) int64 {
			return int64(blocks)*c.Remap + pages*c.Map
		}},
	}
}

func transfer(bytes int64, perSecond uint64) int64 {
	return int64(math.Ceil(float64(bytes) / float64(perSecond) * 1e9))
}

// DefragKinds returns the ways to move: slide copies blocks within the device towards the low end,
// bounce copies all of them to the host and back into memory that was emptied (MegEngine), remap
// moves the addresses and leaves the pages where they are.
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
		return fmt.Errorf("defrag: bandwidths and the page must be above 0")
	case min(c.Sync, c.Alloc, c.Launch, c.Remap, c.Map) < 0:
		return fmt.Errorf("defrag: times must not be below 0")
	}
	return nil
}

// defrag moves all that may move, blocks of the operator that is about to run included; these hold
// nothing yet that would be copied.
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
	moved := make([]Moving, len(list))
	for i, at := range order {
		moved[i] = list[at]
	}
	if lost := r.space.Move(moved, kind.by); lost > 0 {
		r.want = lost
		return failed
	}
	blocks, bytes, pages := 0, int64(0), int64(0)
	for i, at := range order {
		h := holders[at]
		if *h.block = moved[i].Block; h.full && (kind.all || moved[i].Block.Addr != list[at].Block.Addr) {
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
	r.vacated = r.vacated[:0] // what was evicted has become part of the hole, wherever it lay
	return acted
}

// holder is who knows where a block lies, and whether it holds anything.
type holder struct {
	block *alloc.Block
	full  bool
}

// movable returns the blocks that may move: of storages by age, then those of the operator that is
// about to run.
func (r *runner) movable() (list []Moving, holders []holder) {
	for i := range r.stores {
		st, size := &r.stores[i], r.s.Storages[i].Size
		if st.resident && size > 0 && !(st.pinned && r.c.Defrag.Stay) {
			list = append(list, Moving{ownerOf(int32(i)), size, st.block})
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
