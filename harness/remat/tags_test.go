package remat_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/strategies"
)

// cell is bytes of memory that hold the same.
type cell struct {
	from, end device.Addr
	tag       uint64
}

// contents is what memory holds, by address. What was never written holds 0.
type contents []cell

// write puts a tag over whatever it overlaps.
func (c *contents) write(from, end device.Addr, tag uint64) {
	kept := (*c)[:0:0]
	for _, o := range *c {
		if o.from < min(o.end, from) {
			kept = append(kept, cell{o.from, min(o.end, from), o.tag})
		}
		if max(o.from, end) < o.end {
			kept = append(kept, cell{max(o.from, end), o.end, o.tag})
		}
	}
	kept = append(kept, cell{from, end, tag})
	*c = kept
}

// read returns the parts of a range, in order.
func (c contents) read(from, end device.Addr) (parts []cell) {
	for _, o := range c {
		if o.from < end && from < o.end {
			parts = append(parts, cell{max(o.from, from), min(o.end, end), o.tag})
		}
	}
	slices.SortFunc(parts, func(a, b cell) int { return int(int64(a.from) - int64(b.from)) })
	return parts
}

// vault is a memory that holds something: every tensor has a tag made of its operator and of what
// that read, and every storage fills its bytes with the tag it was made with. Fresh blocks hold
// rubbish. It looks up where things lie by the labels of the blocks that it handed out, and throws
// a mistake at whatever does not agree.
type vault struct {
	remat.Addressed
	s        *remat.Schedule
	memory   contents
	blocks   map[remat.Owner][]remat.OwnedBlock // live, the oldest first
	rubbish  uint64
	freed    remat.Owner          // of the block that was freed last
	stays    bool                 // what is pinned from the first may not move
	stay     map[remat.Owner]bool // which these are
	resident map[int32]bool
	gone     map[int32]bool
	defined  map[remat.Tensor]uint64
	first    map[remat.Tensor]uint64
	holds    map[int32]uint64        // by storage: what was written there last
	shows    map[remat.Tensor]uint64 // by tensor: what its storage held when it was first made
}

// mistake is what a vault has found.
type mistake string

func newVault(s *remat.Schedule, m remat.Addressed) *vault {
	return &vault{Addressed: m, s: s, blocks: map[remat.Owner][]remat.OwnedBlock{}, stay: map[remat.Owner]bool{},
		resident: map[int32]bool{}, gone: map[int32]bool{}, defined: map[remat.Tensor]uint64{},
		first: map[remat.Tensor]uint64{},
		holds: map[int32]uint64{}, shows: map[remat.Tensor]uint64{}}
}

// agree throws a mistake unless something holds.
func agree(holds bool, format string, args ...any) {
	if !holds {
		panic(mistake(fmt.Sprintf(format, args...)))
	}
}

// check runs a schedule and returns what was wrong, or how it ended.
func (v *vault) check(c remat.Config) (res remat.Result, found string) {
	defer func() {
		if p := recover(); p != nil {
			m, ok := p.(mistake)
			if !ok {
				panic(p)
			}
			found = string(m)
		}
	}()
	if c.Observer == nil {
		c.Observer = v
	}
	res, err := remat.Run(v.s, v, c)
	agree(err == nil, "%v", err)
	return res, ""
}

// ownerOf returns the owner that stands for a storage.
func ownerOf(storage int32) remat.Owner { return remat.Owner(storage) + 1 }

func (v *vault) Alloc(size device.Size, owner remat.Owner) (alloc.Block, bool) {
	b, ok := v.Addressed.Alloc(size, owner)
	if ok {
		agree(b.Size >= size, "a block of %v for %v", b.Size, size)
		v.rubbish++
		v.memory.write(b.Addr, b.Addr.Add(b.Size), v.rubbish)
		v.blocks[owner] = append(v.blocks[owner], remat.OwnedBlock{Owner: owner, Size: size, Block: b})
	}
	return b, ok
}

// holder returns who holds a block.
func (v *vault) holder(b alloc.Block) (remat.Owner, int) {
	for owner, list := range v.blocks {
		for i, m := range list {
			if m.Block == b {
				return owner, i
			}
		}
	}
	panic(mistake(fmt.Sprintf("no block lies at %v", b)))
}

func (v *vault) Free(b alloc.Block) {
	owner, i := v.holder(b)
	v.freed = owner
	v.blocks[owner] = slices.Delete(v.blocks[owner], i, i+1)
	v.Addressed.Free(b)
}

func (v *vault) Move(list []remat.OwnedBlock, by remat.MoveMode) device.Size {
	var held [][]cell
	old := slices.Clone(list)
	for _, m := range list {
		owner, i := v.holder(m.Block)
		agree(owner == m.Owner && v.blocks[owner][i].Size == m.Size, "%v is moved as %v", v.blocks[owner][i], m)
		agree(i > 0 || !v.stay[owner], "the block of %d moves", owner) // one that an operator is about to fill may
		held = append(held, v.memory.read(m.Block.Addr, m.Block.Addr.Add(m.Size)))
	}
	lost := v.Addressed.Move(list, by)
	if lost > 0 {
		return lost
	}
	for i, m := range list {
		for j := range v.blocks[m.Owner] {
			if v.blocks[m.Owner][j].Block == old[i].Block {
				v.blocks[m.Owner][j].Block.Addr += 1 << 60 // a new address may be an old one of another
			}
		}
		v.memory.write(m.Block.Addr, m.Block.Addr.Add(m.Block.Size), 0)
	}
	for i, m := range list {
		was := old[i].Block
		was.Addr += 1 << 60
		owner, at := v.holder(was)
		v.blocks[owner][at].Block = m.Block
		for _, c := range held[i] {
			v.memory.write(m.Block.Addr.Add(c.from.Sub(old[i].Block.Addr)),
				m.Block.Addr.Add(c.end.Sub(old[i].Block.Addr)), c.tag)
		}
	}
	return 0
}

// verify compares all bytes of a storage with the tag that it was made with.
func (v *vault) verify(storage int32) {
	size := v.s.Storages[storage].Size
	if size == 0 {
		return
	}
	list := v.blocks[ownerOf(storage)]
	agree(len(list) == 1, "storage %d lies in %d blocks", storage, len(list))
	at, end := list[0].Block.Addr, list[0].Block.Addr.Add(size)
	for _, c := range v.memory.read(at, end) {
		agree(c.from == at && c.tag == v.holds[storage], "storage %d holds something else at %v", storage, c.from)
		at = c.end
	}
	agree(at == end, "storage %d is cut off at %v", storage, at)
}

func (v *vault) OnRun(number int32, of remat.Tensor, again bool) {
	op := &v.s.Ops[number]
	sum := uint64(number)
	for _, p := range op.Args {
		tag, ok := v.defined[p]
		agree(ok && v.resident[v.s.Tensors[p].Storage], "operator %d reads %d, which is gone", number, p)
		v.verify(v.s.Tensors[p].Storage)
		agree(v.shows[p] == v.holds[v.s.Tensors[p].Storage], "operator %d reads %d, which was written over", number, p)
		sum = workload.NewRand(sum ^ tag).Next()
	}
	for i := range op.Outputs {
		out := op.First + remat.Tensor(i)
		storage := v.s.Tensors[out].Storage
		tag := workload.NewRand(sum + uint64(i)).Next()
		if !again {
			v.first[out] = tag
		}
		agree(v.first[out] == tag, "tensor %d comes back as another", out)
		if v.gone[storage] {
			continue // thrown away
		}
		made := v.s.Storages[storage].Root == out && !v.resident[storage]
		if made || v.s.Tensors[out].Written {
			v.holds[storage] = tag
		}
		if !again {
			v.shows[out] = v.holds[storage]
		}
		if list := v.blocks[ownerOf(storage)]; (made || v.s.Tensors[out].Written) && len(list) > 0 {
			v.memory.write(list[0].Block.Addr, list[0].Block.Addr.Add(list[0].Size), tag)
		}
		v.defined[out], v.resident[storage] = tag, true
		v.stay[ownerOf(storage)] = v.stay[ownerOf(storage)] || op.Fixed && v.stays
	}
	v.account()
}

// account compares what is resident with the blocks.
func (v *vault) account() {
	resident, blocks := device.Size(0), device.Size(0)
	for s, is := range v.resident {
		if is {
			v.verify(s)
			resident += v.s.Storages[s].Size
		}
	}
	for _, list := range v.blocks {
		for _, m := range list {
			blocks += m.Block.Size
		}
	}
	p, ok := v.Addressed.(*remat.Space)
	if !ok {
		return
	}
	agree(p.Stats().Requested == resident, "%v are resident, and %v requested", resident, p.Stats().Requested)
	agree(p.Stats().Allocated == blocks && blocks >= resident, "%v are allocated, and %v granted",
		p.Stats().Allocated, blocks)
}

func (v *vault) OnEvict(storage int32, _ remat.Cause) {
	agree(v.resident[storage], "storage %d is evicted twice", storage)
	agree(v.s.Storages[storage].Size == 0 || v.freed == ownerOf(storage), "for storage %d the block of %d is freed",
		storage, v.freed)
	v.resident[storage] = false
	for t := range v.s.Tensors {
		if v.s.Tensors[t].Storage == storage {
			delete(v.defined, remat.Tensor(t))
		}
	}
}

func (v *vault) OnForget(storage int32) { v.gone[storage] = true }

func TestReadsReturnTheLastWrite(t *testing.T) {
	moved, windows := map[string]int{}, 0
	schedules(t, 4, func(t *testing.T, s *remat.Schedule, r *workload.Rand) {
		for _, name := range strategies.All().Names() {
			for _, ladder := range []string{"none", "evict-first", "defrag-first", "defrag,release,evict,fail"} {
				kind := remat.DefragKinds()[r.Below(3)]
				times := device.Size(1) << (3 * r.Below(8))
				v := newVault(scaled(s, times), nil)
				v.stays = r.Below(4) == 0
				budget := device.Size(r.Below(uint64(peakOf(t, v.s, "eager")) * 5 / 4))
				p := over(t, name, budget)
				v.Addressed = p
				triggers := remat.Triggers()
				heuristics := []string{"eq", "coop", "dte", "mge", "lru", "coop-ends"}
				livenesses := []string{"none", "eager", "mge-refcount"}
				c := remat.Config{Heuristic: heuristics[r.Below(6)], Liveness: livenesses[r.Below(3)], Limit: s.Cost + 1,
					Ladder:      ladder,
					Defrag:      remat.Defrag{Kind: kind, KeepPinned: v.stays},
					Trigger:     remat.Trigger{Kind: triggers[r.Below(uint64(len(triggers)))], Bytes: budget},
					ParentOrder: remat.ParentOrder(r.Below(3)), EagerInRemat: r.Below(2) == 0}
				res, found := v.check(c)
				require.Empty(t, found, "%s %+v", name, c)
				require.NoError(t, p.Check())
				require.NotEqual(t, remat.OOM, res.Verdict)
				moved[kind] += res.Moves.Blocks
				windows += res.WindowEvictions
				again, err := remat.Run(v.s, over(t, name, budget), c)
				require.NoError(t, err)
				require.Equal(t, res, again)
			}
		}
	})
	for _, kind := range remat.DefragKinds() {
		require.Positive(t, moved[kind], kind)
	}
	require.Positive(t, windows)
}

// crooked is a memory with a planted mistake.
type crooked struct {
	remat.Addressed
	onto  bool // some blocks lie half on another
	stale bool // a block that moved is still said to lie where it was
	last  alloc.Block
	truth map[device.Addr]device.Addr // where blocks really lie
	n     int
}

func (c *crooked) Alloc(size device.Size, owner remat.Owner) (alloc.Block, bool) {
	b, ok := c.Addressed.Alloc(size, owner)
	if c.n++; ok && c.onto && c.n%7 == 0 && c.last.Size > 0 {
		said := c.last.Addr.Add(c.last.Size / 2)
		c.truth[said] = b.Addr
		b.Addr = said
		c.last = alloc.Block{}
	} else if ok {
		c.last = b
	}
	return b, ok
}

func (c *crooked) Free(b alloc.Block) {
	if b == c.last {
		c.last = alloc.Block{}
	}
	if at, ok := c.truth[b.Addr]; ok {
		delete(c.truth, b.Addr)
		b.Addr = at
	}
	c.Addressed.Free(b)
}

func (c *crooked) Move(list []remat.OwnedBlock, by remat.MoveMode) device.Size {
	old := slices.Clone(list)
	lost := c.Addressed.Move(list, by)
	for i := range list {
		if c.stale && list[i].Block != old[i].Block {
			list[i].Block = old[i].Block
			break
		}
	}
	return lost
}

// hasty tells of an operator before the one that it waited for.
type hasty struct {
	*vault
	held func()
}

func (h *hasty) OnRun(number int32, of remat.Tensor, again bool) {
	if again && h.held == nil {
		h.held = func() { h.vault.OnRun(number, of, again) }
		return
	}
	h.vault.OnRun(number, of, again)
	if h.held != nil {
		h.held()
		h.held = nil
	}
}

func TestVaultFindsPlantedBugs(t *testing.T) {
	found := map[string]int{}
	schedules(t, 12, func(t *testing.T, s *remat.Schedule, r *workload.Rand) {
		big := scaled(s, 512)
		budget := peakOf(t, big, "eager") * 3 / 4
		for name, m := range map[string]*crooked{"none": {}, "onto": {onto: true}, "stale": {stale: true}, "hasty": {}} {
			setup, err := strategies.All().Lookup("bestfit", nil)
			require.NoError(t, err)
			p, err := remat.Over(setup, budget)
			require.NoError(t, err)
			m.Addressed, m.truth = p, map[device.Addr]device.Addr{}
			v := newVault(big, m)
			c := remat.Config{Heuristic: "eq", Liveness: "eager", Limit: s.Cost + 1, Ladder: "defrag-first"}
			switch name {
			case "onto":
				c.Ladder = "none"
			case "hasty":
				c.Observer = &hasty{vault: v}
			}
			if _, what := v.check(c); what != "" || p.Close() != nil { // which tells of a block that is not there
				found[name]++
			}
		}
	})
	require.Zero(t, found["none"])
	for _, name := range []string{"onto", "stale", "hasty"} {
		require.Greater(t, found[name], 3, name)
	}
}
