package workload_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// yardsticks are the check values. Those of w1, w2 and w3 are published: generators in C++ and
// in Go agree on them. Those of the mixes are ours, held here so that they never change.
var yardsticks = []struct {
	shape      string
	live       int // 0 for the default
	pairs      int
	slots      int
	peakBlocks int
	peak       device.Size
	hash       workload.Hash
}{
	{"w1", 1_000, 1_000_000, 1_000, 1_000, 877_266_432, 0x4dcbe3d1d3fd68d1},
	{"w1", 10_000, 1_000_000, 10_000, 10_000, 6_547_101_696, 0xd31b355017deee3f},
	{"w1", 100_000, 1_000_000, 100_000, 100_000, 60_339_871_488, 0xb9483d9cfb27f841},
	{"w1", 1_000_000, 1_000_000, 1_000_000, 1_000_000, 589_355_471_104, 0x7e6487711b926536},
	{"w2", 0, 269_079, 824, 824, 27_646_918_656, 0x8d2ee42fd5f1c978},
	{"w3", 0, 1_000_000, 512, 257, 9_946_808_320, 0x85092d50e1ef519f},
	{"lognormal", 1_000, 1_000_000, 1_000, 1_000, 17_758_464, 0x11810789e8cdde5a},
	{"lognormal", 10_000, 1_000_000, 10_000, 10_000, 141_658_112, 0x928c912fcd075d8e},
	{"lognormal", 100_000, 1_000_000, 100_000, 100_000, 1_324_505_856, 0xeae08fe894ac31cf},
	{"lognormal", 1_000_000, 1_000_000, 1_000_000, 1_000_000, 13_021_172_992, 0x5e28995be0c54dad},
	{"loguniform", 1_000, 1_000_000, 1_000, 1_000, 161_289_681, 0x2c17f9ef94ede26d},
	{"uniform", 1_000, 1_000_000, 1_000, 1_000, 8_731_912, 0xe839884427a40a92},
}

// settled returns a workload whose parameters are the default ones but for what set changes.
func settled(t testing.TB, name string, set func(*workload.Params)) workload.Workload {
	t.Helper()
	s, err := workload.Lookup(name)
	require.NoError(t, err)
	p := s.Default
	if set != nil {
		set(&p)
	}
	w, err := s.New(p)
	require.NoError(t, err)
	return w
}

// eachYardstick calls f for every row of the table.
func eachYardstick(t *testing.T, f func(t *testing.T, w workload.Workload, want workload.Summary)) {
	for _, y := range yardsticks {
		w := settled(t, y.shape, func(p *workload.Params) {
			if y.live > 0 {
				p.Live = y.live
			}
		})
		t.Run(w.Name(), func(t *testing.T) {
			f(t, w, workload.Summary{
				Slots: y.slots, Pairs: y.pairs, PeakLive: y.peak, PeakBlocks: y.peakBlocks, Hash: y.hash,
			})
		})
	}
}

func TestYardsticksAreBitForBit(t *testing.T) {
	eachYardstick(t, func(t *testing.T, w workload.Workload, want workload.Summary) {
		require.Equal(t, want, w.Summary())
	})
}

func TestPageHoldsTheCheckValues(t *testing.T) {
	page, err := os.ReadFile("../../../docs/workloads.md")
	require.NoError(t, err)
	eachYardstick(t, func(t *testing.T, w workload.Workload, s workload.Summary) {
		row := fmt.Sprintf("| %s | %s | %s | %s | %v |",
			grouped(s.Pairs), grouped(s.Slots), grouped(s.PeakBlocks), grouped(int(s.PeakLive)), s.Hash)
		require.Contains(t, string(page), row, "docs/workloads.md, %v", w)
	})
}

// grouped writes a number with a comma between groups of three digits.
func grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// TestHashFollowsItsDefinition hashes as a reader of the definition would, from scratch.
func TestHashFollowsItsDefinition(t *testing.T) {
	w := settled(t, "w3", func(p *workload.Params) { p.Pairs = 1000 })
	h := workload.Hash(0xcbf29ce484222325)
	for o := range w.Ops {
		for _, word := range []uint64{uint64(o.Slot()), uint64(o.Size())} {
			for shift := 0; shift < 64; shift += 8 {
				h ^= workload.Hash(word >> shift & 0xff)
				h *= 0x100000001b3
			}
		}
	}
	require.Equal(t, h, w.Summary().Hash)
}

func TestFirstOperationsOfW1(t *testing.T) {
	p := settled(t, "w1", nil).Program()
	for slot, size := range []device.Size{69120, 24320, 15104, 21504, 183040, 87296, 224000, 15360} {
		require.Equal(t, uint32(slot), p.Fill[slot].Slot())
		require.Equal(t, size, p.Fill[slot].Size())
	}
	for i, want := range []struct {
		slot uint32
		size device.Size
	}{{199, 24064}, {740, 615936}, {241, 1529088}, {772, 30976}} {
		free, alloc := p.Churn[2*i], p.Churn[2*i+1]
		require.True(t, free.IsFree())
		require.False(t, alloc.IsFree())
		require.Equal(t, want.slot, free.Slot())
		require.Equal(t, want.slot, alloc.Slot())
		require.Equal(t, want.size, alloc.Size())
	}
}

// TestFirstStepsOfW2 finds the length of the sequences in the first activation of each step,
// which follows the frees of the step before.
func TestFirstStepsOfW2(t *testing.T) {
	const weights, moments, pairsOfStep = 193, 2 * 193, 895
	churn := settled(t, "w2", func(p *workload.Params) { p.Steps = 6 }).Program().Churn
	at := weights
	for step, seq := range []device.Size{1664, 768, 896, 1024, 512, 1920} {
		require.Equal(t, 4*seq*2048*2, churn[at].Size(), "step %d", step)
		if at += 2 * pairsOfStep; step == 0 {
			at += moments
		}
	}
	require.Len(t, churn, at)
}

// TestOperationsKeepTheRules walks every shape at several parameters: only live slots are
// freed, only empty ones are filled, sizes are within the bounds, and each part is as long as
// stated.
func TestOperationsKeepTheRules(t *testing.T) {
	for _, s := range workload.All() {
		for seed := range uint64(8) {
			p := s.Default
			p.Seed = seed
			if p.Live > 0 {
				p.Live = 1 + int(seed*seed)
			}
			p.Pairs = min(p.Pairs, 2000)
			p.Steps = min(p.Steps, 1+int(seed))
			w, err := s.New(p)
			require.NoError(t, err)
			t.Run(w.Name(), func(t *testing.T) { keepsTheRules(t, w.Program()) })
		}
	}
}

func keepsTheRules(t *testing.T, p *workload.Program) {
	parts := p.Workload.Parts()
	require.Equal(t, parts, workload.Parts{Fill: len(p.Fill), Settle: len(p.Settle), Churn: len(p.Churn)})
	require.Equal(t, p.Summary, p.Workload.Summary())
	live := map[uint32]device.Size{}
	var bytes, peak device.Size
	slots, n, allocs := 0, 0, 0
	for o := range p.Workload.Ops {
		slots = max(slots, int(o.Slot())+1)
		_, isLive := live[o.Slot()]
		require.Equal(t, isLive, o.IsFree(), "operation %d: %v", n, o)
		if o.IsFree() {
			require.GreaterOrEqual(t, n, parts.Fill, "the fill frees nothing")
			bytes -= live[o.Slot()]
			delete(live, o.Slot())
		} else {
			if n >= parts.Fill+parts.Settle {
				allocs++
			}
			bytes += o.Size()
			live[o.Slot()] = o.Size()
		}
		peak = max(peak, bytes)
		require.LessOrEqual(t, len(live), p.Summary.PeakBlocks)
		n++
	}
	require.Equal(t, parts.Total(), n)
	require.Equal(t, p.Summary.Slots, slots)
	require.Equal(t, p.Summary.Pairs, allocs)
	require.Equal(t, p.Summary.PeakLive, peak)
	if live := p.Workload.Params().Live; live > 0 {
		require.Equal(t, live, p.Summary.PeakBlocks)
	}
}

func TestOtherSeedsAreOtherWorkloads(t *testing.T) {
	for _, name := range workload.Names() {
		seen := map[workload.Hash]bool{}
		for seed := range uint64(4) {
			w := settled(t, name, func(p *workload.Params) {
				p.Seed, p.Pairs, p.Steps = seed, min(p.Pairs, 100), min(p.Steps, 10)
			})
			require.False(t, seen[w.Summary().Hash], w)
			seen[w.Summary().Hash] = true
		}
	}
}

func TestIterationStopsOnBreak(t *testing.T) {
	for _, name := range workload.Names() {
		all := settled(t, name, func(p *workload.Params) { p.Pairs, p.Steps = min(p.Pairs, 100), min(p.Steps, 2) }).Program()
		ops := append(append(append([]workload.Op{}, all.Fill...), all.Settle...), all.Churn...)
		for _, stop := range []int{1, 2, 300, len(ops) - 1, len(ops)} {
			n := 0
			for o := range all.Workload.Ops {
				require.Equal(t, ops[n], o)
				if n++; n == stop {
					break
				}
			}
			require.Equal(t, stop, n, name)
		}
	}
}

func BenchmarkProgram(b *testing.B) {
	for _, name := range workload.Names() {
		w := settled(b, name, func(p *workload.Params) { p.Live *= 1000 })
		b.Run(strings.ReplaceAll(w.Name(), "-", "/"), func(b *testing.B) {
			for b.Loop() {
				w.Program()
			}
		})
	}
}
