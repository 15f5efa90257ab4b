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

// span is a range of memory with the same content.
type span struct {
	from, end device.Addr
	tag       uint64
}

// contents is the content of memory: disjoint spans. Memory that was never written is in none.
type contents []span

// write overwrites a range with a tag.
func (c *contents) write(from, end device.Addr, tag uint64) {
	kept := (*c)[:0:0]
	for _, o := range *c {
		if o.from < min(o.end, from) {
			kept = append(kept, span{o.from, min(o.end, from), o.tag})
		}
		if max(o.from, end) < o.end {
			kept = append(kept, span{max(o.from, end), o.end, o.tag})
		}
	}
	kept = append(kept, span{from, end, tag})
	*c = kept
}

// read returns the spans of a range, by address.
func (c contents) read(from, end device.Addr) (parts []span) {
	for _, o := range c {
		if o.from < end && from < o.end {
			parts = append(parts, span{max(o.from, from), min(o.end, end), o.tag})
		}
	}
	slices.SortFunc(parts, func(a, b span) int { return int(int64(a.from) - int64(b.from)) })
	return parts
}

// contentChecker is a memory that checks that every operator reads the content it read first. Each
// tensor has a tag computed from its operator and from the tags of the inputs. A storage fills its
// block with the tag of its root, and a new block holds garbage. The checker finds blocks by the
// owners and addresses of its own calls. It panics with a failure at the first difference.
type contentChecker struct {
	remat.Addressed
	s            *remat.Schedule
	memory       contents
	blocks       map[remat.Owner][]remat.OwnedBlock // live, oldest first
	garbage      uint64
	freed        remat.Owner          // of the last freed block
	pinConstants bool                 // outputs of fixed operators must not move
	fixed        map[remat.Owner]bool // the owners of these outputs
	resident     map[int32]bool
	away         map[int32]bool // swapped out
	returned     map[int32]bool // it came back once
	forgotten    map[int32]bool
	defined      map[remat.Tensor]uint64
	first        map[remat.Tensor]uint64 // by tensor: its tag at its first run
	written      map[int32]uint64        // by storage: the tag written last
	contentOf    map[remat.Tensor]uint64 // by tensor: the tag in its storage when it was first computed
}

// failure is the panic of a contentChecker.
type failure string

func newContentChecker(s *remat.Schedule, m remat.Addressed) *contentChecker {
	return &contentChecker{Addressed: m, s: s, blocks: map[remat.Owner][]remat.OwnedBlock{}, fixed: map[remat.Owner]bool{},
		resident: map[int32]bool{}, away: map[int32]bool{}, returned: map[int32]bool{}, forgotten: map[int32]bool{},
		defined: map[remat.Tensor]uint64{},
		first:   map[remat.Tensor]uint64{},
		written: map[int32]uint64{}, contentOf: map[remat.Tensor]uint64{}}
}

// ensure panics with a failure unless holds is true.
func ensure(holds bool, format string, args ...any) {
	if !holds {
		panic(failure(fmt.Sprintf(format, args...)))
	}
}

// check runs a schedule. It returns the result, or the first failure.
func (v *contentChecker) check(c remat.Config) (res remat.Result, found string) {
	defer func() {
		if p := recover(); p != nil {
			m, ok := p.(failure)
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
	ensure(err == nil, "%v", err)
	return res, ""
}

// ownerOf returns the owner of the blocks of a storage.
func ownerOf(storage int32) remat.Owner { return remat.Owner(storage) + 1 }

func (v *contentChecker) Alloc(size device.Size, owner remat.Owner) (alloc.Block, bool) {
	b, ok := v.Addressed.Alloc(size, owner)
	if ok {
		ensure(b.Size >= size, "a block of %v for %v", b.Size, size)
		v.garbage++
		v.memory.write(b.Addr, b.Addr.Add(b.Size), v.garbage)
		v.blocks[owner] = append(v.blocks[owner], remat.OwnedBlock{Owner: owner, Size: size, Block: b})
	}
	return b, ok
}

// findBlock returns the owner of a live block, and its index among the blocks of the owner.
func (v *contentChecker) findBlock(b alloc.Block) (remat.Owner, int) {
	for owner, list := range v.blocks {
		for i, m := range list {
			if m.Block == b {
				return owner, i
			}
		}
	}
	panic(failure(fmt.Sprintf("there is no live block %v", b)))
}

func (v *contentChecker) Free(b alloc.Block) {
	owner, i := v.findBlock(b)
	v.freed = owner
	v.blocks[owner] = slices.Delete(v.blocks[owner], i, i+1)
	v.Addressed.Free(b)
}

func (v *contentChecker) Move(list []remat.OwnedBlock, by remat.MoveMode) device.Size {
	var held [][]span
	old := slices.Clone(list)
	for _, m := range list {
		owner, i := v.findBlock(m.Block)
		ensure(owner == m.Owner && v.blocks[owner][i].Size == m.Size, "block %v is moved as %v", v.blocks[owner][i], m)
		ensure(i > 0 || !v.fixed[owner], "the fixed block of %d moves", owner) // its second block, a temporary one, may move
		held = append(held, v.memory.read(m.Block.Addr, m.Block.Addr.Add(m.Size)))
	}
	lost := v.Addressed.Move(list, by)
	if lost > 0 {
		return lost
	}
	for i, m := range list {
		for j := range v.blocks[m.Owner] {
			if v.blocks[m.Owner][j].Block == old[i].Block {
				v.blocks[m.Owner][j].Block.Addr += 1 << 60 // the new address may be the old one of another block
			}
		}
		v.memory.write(m.Block.Addr, m.Block.Addr.Add(m.Block.Size), 0)
	}
	for i, m := range list {
		was := old[i].Block
		was.Addr += 1 << 60
		owner, at := v.findBlock(was)
		v.blocks[owner][at].Block = m.Block
		for _, c := range held[i] {
			v.memory.write(m.Block.Addr.Add(c.from.Sub(old[i].Block.Addr)),
				m.Block.Addr.Add(c.end.Sub(old[i].Block.Addr)), c.tag)
		}
	}
	return 0
}

// verify checks that all bytes of a storage hold the tag written last.
func (v *contentChecker) verify(storage int32) {
	size := v.s.Storages[storage].Size
	if size == 0 {
		return
	}
	list := v.blocks[ownerOf(storage)]
	ensure(len(list) == 1, "storage %d has %d blocks, want 1", storage, len(list))
	at, end := list[0].Block.Addr, list[0].Block.Addr.Add(size)
	for _, c := range v.memory.read(at, end) {
		ensure(c.from == at && c.tag == v.written[storage], "storage %d has another content at %v", storage, c.from)
		at = c.end
	}
	ensure(at == end, "storage %d has no content from %v on", storage, at)
}

func (v *contentChecker) OnRun(number int32, of remat.Tensor, again bool) {
	v.freed = 0
	op := &v.s.Ops[number]
	sum := uint64(number)
	for _, p := range op.Args {
		tag, ok := v.defined[p]
		storage := v.s.Tensors[p].Storage
		ensure(ok && v.resident[storage] && !v.away[storage], "operator %d reads tensor %d, which is not resident", number, p)
		v.verify(v.s.Tensors[p].Storage)
		ensure(v.contentOf[p] == v.written[v.s.Tensors[p].Storage],
			"operator %d reads tensor %d, which was overwritten", number, p)
		sum = workload.NewRand(sum ^ tag).Next()
	}
	for i := range op.Outputs {
		out := op.First + remat.Tensor(i)
		storage := v.s.Tensors[out].Storage
		tag := workload.NewRand(sum + uint64(i)).Next()
		if !again {
			v.first[out] = tag
		}
		ensure(v.first[out] == tag, "tensor %d is recomputed with another content", out)
		if v.forgotten[storage] {
			continue // the output is discarded
		}
		made := v.s.Storages[storage].Root == out && !v.resident[storage]
		if made || v.s.Tensors[out].Written {
			v.written[storage] = tag
		}
		if !again {
			v.contentOf[out] = v.written[storage]
		}
		if list := v.blocks[ownerOf(storage)]; (made || v.s.Tensors[out].Written) && len(list) > 0 {
			v.memory.write(list[0].Block.Addr, list[0].Block.Addr.Add(list[0].Size), tag)
		}
		v.defined[out], v.resident[storage] = tag, true
		v.fixed[ownerOf(storage)] = v.fixed[ownerOf(storage)] || op.Fixed && v.pinConstants
	}
	v.checkTotals()
}

// checkTotals compares the bytes of resident storages and of blocks with the counters of the space.
func (v *contentChecker) checkTotals() {
	resident, blocks := device.Size(0), device.Size(0)
	for s, is := range v.resident {
		if is && !v.away[s] {
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
	for owner, list := range v.blocks { // of storages on their way to the host
		if s := int32(owner) - 1; owner >= leftover || s >= 0 && v.away[s] {
			for _, m := range list {
				resident += m.Size
			}
		}
	}
	ensure(p.Stats().Requested == resident, "%v are resident, and %v requested", resident, p.Stats().Requested)
	ensure(p.Stats().Allocated == blocks && blocks >= resident, "%v are allocated, and %v granted",
		p.Stats().Allocated, blocks)
}

// leftover plus the owner of a block is the owner of the block of a storage that was given up while
// it was copied.
const leftover remat.Owner = 1 << 40

func (v *contentChecker) OnEvict(storage int32, why remat.Cause) {
	ensure(v.resident[storage], "storage %d is evicted twice", storage)
	owner := ownerOf(storage)
	switch {
	case why == remat.Swapped:
		ensure(!v.away[storage], "storage %d is swapped out twice", storage)
		if len(v.blocks[owner]) == 1 { // its operator may be about to run, with a temporary block
			v.verify(storage)
		}
		v.away[storage] = true
		return
	case v.away[storage] || v.returned[storage] && v.freed != owner:
		if list := v.blocks[owner]; len(list) > 0 {
			v.blocks[leftover+owner] = append(v.blocks[leftover+owner], list[0])
			v.blocks[owner] = list[1:]
		}
		v.away[storage], v.freed = false, owner
	}
	ensure(v.s.Storages[storage].Size == 0 || v.freed == ownerOf(storage),
		"the eviction of storage %d freed a block of %d",
		storage, v.freed)
	v.freed = 0
	v.resident[storage] = false
	for t := range v.s.Tensors {
		if v.s.Tensors[t].Storage == storage {
			delete(v.defined, remat.Tensor(t))
		}
	}
}

// OnReturn copies the content back, even if the storage still has its old block.
func (v *contentChecker) OnReturn(storage int32, _ bool) {
	ensure(v.away[storage], "storage %d returns and was not swapped out", storage)
	v.away[storage], v.returned[storage] = false, true
	list := v.blocks[ownerOf(storage)]
	ensure(len(list) == 1, "storage %d returns to %d blocks, want 1", storage, len(list))
	v.memory.write(list[0].Block.Addr, list[0].Block.Addr.Add(list[0].Size), v.written[storage])
}

func (v *contentChecker) OnForget(storage int32) { v.forgotten[storage] = true }

func TestReadsReturnTheLastWrite(t *testing.T) {
	moved, windows := map[string]int{}, 0
	schedules(t, 4, func(t *testing.T, s *remat.Schedule, r *workload.Rand) {
		for _, name := range strategies.All().Names() {
			for _, ladder := range []string{"none", "evict-first", "defrag-first", "defrag,release,evict,fail"} {
				kind := remat.DefragKinds()[r.Below(3)]
				times := device.Size(1) << (3 * r.Below(8))
				v := newContentChecker(scaled(s, times), nil)
				v.pinConstants = r.Below(4) == 0
				budget := device.Size(r.Below(uint64(peakOf(t, v.s, "eager")) * 5 / 4))
				p := over(t, name, budget)
				v.Addressed = p
				triggers := remat.Triggers()
				heuristics := []string{"eq", "coop", "dte", "mge", "lru", "coop-ends"}
				livenesses := []string{"none", "eager", "mge-refcount"}
				c := remat.Config{Heuristic: heuristics[r.Below(6)], Liveness: livenesses[r.Below(3)], Limit: s.Cost + 1,
					Ladder:      ladder,
					Defrag:      remat.Defrag{Kind: kind, KeepPinned: v.pinConstants},
					Trigger:     remat.Trigger{Kind: triggers[r.Below(uint64(len(triggers)))], Bytes: budget},
					ParentOrder: remat.ParentOrder(r.Below(3)), EagerInRemat: r.Below(2) == 0}
				if r.Below(2) == 0 {
					c.Heuristic += swapping(r)
					c.Limit <<= 20
					c.Ladder = []string{ladder, ladder, "swap,defrag,drop"}[r.Below(3)]
				}
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

// faultySpace is a memory with a planted bug.
type faultySpace struct {
	remat.Addressed
	overlap bool // some blocks are returned as if they overlapped the block before
	stale   bool // Move reports the old address of a moved block
	last    alloc.Block
	actual  map[device.Addr]device.Addr // the real addresses of these blocks
	n       int
}

func (c *faultySpace) Alloc(size device.Size, owner remat.Owner) (alloc.Block, bool) {
	b, ok := c.Addressed.Alloc(size, owner)
	if c.n++; ok && c.overlap && c.n%7 == 0 && c.last.Size > 0 {
		said := c.last.Addr.Add(c.last.Size / 2)
		c.actual[said] = b.Addr
		b.Addr = said
		c.last = alloc.Block{}
	} else if ok {
		c.last = b
	}
	return b, ok
}

func (c *faultySpace) Free(b alloc.Block) {
	if b == c.last {
		c.last = alloc.Block{}
	}
	if at, ok := c.actual[b.Addr]; ok {
		delete(c.actual, b.Addr)
		b.Addr = at
	}
	c.Addressed.Free(b)
}

func (c *faultySpace) Move(list []remat.OwnedBlock, by remat.MoveMode) device.Size {
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

// reorderedRuns reports a rerun after the run that needed it.
type reorderedRuns struct {
	*contentChecker
	delayed func()
}

func (h *reorderedRuns) OnRun(number int32, of remat.Tensor, again bool) {
	if again && h.delayed == nil {
		h.delayed = func() { h.contentChecker.OnRun(number, of, again) }
		return
	}
	h.contentChecker.OnRun(number, of, again)
	if h.delayed != nil {
		h.delayed()
		h.delayed = nil
	}
}

func TestContentCheckerFindsPlantedBugs(t *testing.T) {
	found := map[string]int{}
	schedules(t, 12, func(t *testing.T, s *remat.Schedule, r *workload.Rand) {
		big := scaled(s, 512)
		budget := peakOf(t, big, "eager") * 3 / 4
		for name, m := range map[string]*faultySpace{
			"none": {}, "overlap": {overlap: true}, "stale": {stale: true}, "reordered": {},
		} {
			setup, err := strategies.All().Lookup("bestfit", nil)
			require.NoError(t, err)
			p, err := remat.Over(setup, budget)
			require.NoError(t, err)
			m.Addressed, m.actual = p, map[device.Addr]device.Addr{}
			v := newContentChecker(big, m)
			c := remat.Config{Heuristic: "eq", Liveness: "eager", Limit: s.Cost + 1, Ladder: "defrag-first"}
			switch name {
			case "overlap":
				c.Ladder = "none"
			case "reordered":
				c.Observer = &reorderedRuns{contentChecker: v}
			}
			if _, what := v.check(c); what != "" || p.Close() != nil { // Close reports a free of an unknown block
				found[name]++
			}
		}
	})
	require.Zero(t, found["none"])
	for _, name := range []string{"overlap", "stale", "reordered"} {
		require.Greater(t, found[name], 3, name)
	}
}
