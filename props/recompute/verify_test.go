package recompute_test

import (
	"flag"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/props/recompute"
)

var (
	seed = flag.Int64("recompute.seed", 1, "seed of the first log")
	logs = flag.Int("recompute.logs", 5, "logs for each configuration")
)

// TestInvariantsOfRuns runs every heuristic and plan under every policy for dead tensors, with the
// other settings at their defaults and at random, over counted bytes and over addresses.
func TestInvariantsOfRuns(t *testing.T) {
	names := []string{"mge:time=2:size=0:neighbors=0.5", "mge:measure=time"}
	swaps := []string{":evict=swap:link=0.1", ":evict=cheaper:link=1", ":evict=swap:link=inf",
		":evict=cheaper:link=1:host=40", ":evict=swap:link=1:host=20"}
	for i, h := range remat.Heuristics() {
		names = append(names, h.Name, h.Name+swaps[i%len(swaps)])
	}
	for _, p := range remat.Plans() {
		names = append(names, p.Name)
	}
	r := workload.NewRand(uint64(*seed))
	nonChain := recompute.Log{Ops: []recompute.Op{{Outputs: []recompute.Output{{}}}}}.Schedule()
	for _, name := range names {
		for _, liveness := range remat.Livenesses() {
			plain := remat.Config{Heuristic: name, Liveness: liveness}
			for i, c := range []remat.Config{plain, vary(plain, r), vary(plain, r)} {
				s := recompute.Subject{Name: name + " under " + liveness, Config: c}
				if i == 2 && remat.CanRun(nonChain, name) == nil { // plans count bytes
					s.Memory = func(budget device.Size) remat.Memory { return &firstFit{capacity: budget} }
				}
				_, err := recompute.Verify(t.Context(), s, recompute.Options{Logs: *logs, Seed: *seed, Tries: 2000})
				require.NoError(t, err, "%+v", c)
			}
		}
	}
}

// vary draws the settings beside heuristic and liveness.
func vary(c remat.Config, r *workload.Rand) remat.Config {
	c.Seed, c.Quirks = r.Next(), remat.Quirks(r.Next())&remat.AllQuirks
	c.EagerInRemat, c.ParentOrder = r.Below(2) == 0, remat.ParentOrder(r.Below(3))
	kinds := slices.DeleteFunc(remat.Triggers(), func(kind string) bool { return kind == "reserve" }) // needs a strategy
	c.Trigger = remat.Trigger{Kind: kinds[r.Below(uint64(len(kinds)))], Bytes: device.Size(r.Below(200))}
	if r.Below(2) == 0 {
		c.Sampling = remat.Sampling{Kind: remat.SampleKind(r.Below(4)), K: 1 + int(r.Below(5))}
		c.MinEvictee = remat.Minimum{Size: device.Size(r.Below(15)), Cut: r.Below(2) == 0}
	} else {
		c.MinEvictee.Percent = int(r.Below(101))
	}
	return c
}

// firstFit is a memory that places blocks by first fit in one range.
type firstFit struct {
	capacity device.Size
	blocks   []alloc.Block // by address
}

// Room returns true: only Alloc shows whether there is a hole.
func (m *firstFit) Room(device.Size) bool { return true }

// hole returns the range below block i, or above the last one.
func (m *firstFit) hole(i int) (from, to device.Addr) {
	if to = device.Addr(m.capacity); i < len(m.blocks) {
		to = m.blocks[i].Addr
	}
	if i > 0 {
		from = m.blocks[i-1].Addr.Add(m.blocks[i-1].Size)
	}
	return from, to
}

func (m *firstFit) Alloc(size device.Size, _ remat.Owner) (alloc.Block, bool) {
	for i := range len(m.blocks) + 1 {
		if from, to := m.hole(i); to.Sub(from) >= size {
			b := alloc.Block{Addr: from, Size: size}
			m.blocks = slices.Insert(m.blocks, i, b)
			return b, true
		}
	}
	return alloc.Block{}, false
}

func (m *firstFit) Free(b alloc.Block) {
	i := slices.Index(m.blocks, b) // -1 panics, which the suite reports
	m.blocks = slices.Delete(m.blocks, i, i+1)
}

// FreeNeighbours implements remat.Neighbors.
func (m *firstFit) FreeNeighbours(b alloc.Block) (below, above device.Size) {
	i := slices.Index(m.blocks, b)
	from, at := m.hole(i)
	end, to := m.hole(i + 1)
	return at.Sub(from), to.Sub(end)
}

// TestDetachRestoresViewsAsNeeded has a dead view that shows content from before an in-place write,
// which must stay evicted, and one that another view in a pinned storage is computed from.
func TestDetachRestoresViewsAsNeeded(t *testing.T) {
	for _, log := range []string{
		`
call 1:0 2:0
call 3:0 fixed
call 4:@1 reads 2 3 1
release 4
call 5:=3 fixed reads 3
drop 1
release 2`, `
call 1:0
call 2:0 3:5 reads 1
call 4:0
call 5:@2 reads 4 2
call 6:@3 reads 3 5
release 1
release 5
release 4`,
	} {
		l, err := recompute.Parse(log)
		require.NoError(t, err)
		for _, trigger := range []remat.Trigger{{}, {Kind: "post-op", Bytes: 4}} {
			s := recompute.Subject{Config: remat.Config{Heuristic: "eq", Liveness: "detach", Trigger: trigger}}
			v, err := s.Check(l)
			require.NoError(t, err)
			require.Nil(t, v, log)
		}
	}
}

func TestLogsAreText(t *testing.T) {
	for i := range uint64(50) {
		r := workload.NewRand(i)
		for _, l := range []recompute.Log{recompute.Draw(r, 20), recompute.DrawChain(r, 5, true)} {
			again, err := recompute.Parse(l.String())
			require.NoError(t, err)
			require.Equal(t, l.String(), again.String())
			require.Equal(t, l.Schedule(), again.Schedule())
		}
	}
}

func TestWrongLogsAreRefused(t *testing.T) {
	for _, line := range []string{"call", "call 1", "call 1:x", "call 1:2 reads x", "call 1:2 time 3:4", "drop x",
		"free 1", "drop 1 2", "budget -1"} {
		_, err := recompute.Parse("call 1:2\n" + line)
		require.ErrorContains(t, err, `line 2: "`+line+`": want call, retain, release, drop, keep or budget`)
	}
}
