package remat_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/strategies"
	"github.com/vramyard/vramyard/strategies/bestfit"
)

// over returns a space in which a strategy of the catalogue places blocks.
func over(t testing.TB, name string, budget device.Size) *remat.Space {
	t.Helper()
	setup, err := strategies.All().Lookup(name, nil)
	require.NoError(t, err)
	p, err := remat.Over(setup, budget)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

func TestEveryStrategyRunsEveryScheduleToAVerdict(t *testing.T) {
	schedules(t, 2, func(t *testing.T, s *remat.Schedule, _ *workload.Rand) {
		peak := peakOf(t, s, "eager")
		for _, name := range strategies.All().Names() {
			for _, h := range []string{"mge", "dte-cap"} { // which ask for free neighbours
				c := remat.Config{Heuristic: h, Liveness: "eager", Limit: 3*s.Cost + 1, Quirks: remat.AllQuirks}
				for _, budget := range []device.Size{0, 1, peak / 2, peak, 512 * peak, 1 << 40} {
					res, err := remat.Run(s, over(t, name, budget), c)
					require.NoError(t, err)
					require.NotEqual(t, remat.OOM, res.Verdict)
					if budget == 1<<40 {
						require.Equal(t, remat.OK, res.Verdict, name)
						require.Zero(t, res.Remats+res.Evictions[remat.Pressure])
						require.Equal(t, peak, res.Peak)
					}
				}
			}
		}
	})
}

func TestAdjacentFreeMemoryMayNotMerge(t *testing.T) {
	const size = 30 << 20 // a segment of its own
	for name, merges := range map[string]bool{"caching": false, "bestfit": true} {
		p := over(t, name, 1<<30)
		blocks := []alloc.Block{}
		for i := range 3 {
			b, ok := p.Alloc(size, remat.Owner(i+1))
			require.True(t, ok)
			blocks = append(blocks, b)
		}
		below, above := p.AdjacentFree(blocks[1])
		require.Zero(t, below+above)
		p.Free(blocks[0])
		below, above = p.AdjacentFree(blocks[1])
		require.Equal(t, []device.Size{size, 0}, []device.Size{below, above}, name)
		below, above = p.FreeNeighbours(blocks[1])
		require.Zero(t, above)
		require.Equal(t, merges, below == size, name)
		p.Free(blocks[1])
		below, _ = p.AdjacentFree(blocks[2])
		require.Equal(t, map[bool]device.Size{true: 2 * size, false: size}[merges], below, "one hole, or two")
	}
}

// scaled returns a schedule whose sizes are so many times as large.
func scaled(s *remat.Schedule, times device.Size) *remat.Schedule {
	c := *s
	c.Ops, c.Storages = slices.Clone(s.Ops), slices.Clone(s.Storages)
	for i := range c.Ops {
		c.Ops[i].OutputBytes *= times
		c.Ops[i].Workspace *= times
	}
	for i := range c.Storages {
		c.Storages[i].Size *= times
	}
	return &c
}

func TestDefragmentedSpaceRunsAsACounter(t *testing.T) {
	moved := 0
	schedules(t, 60, func(t *testing.T, s *remat.Schedule, r *workload.Rand) {
		big := scaled(s, 512)
		for _, kind := range remat.DefragKinds() {
			for _, h := range []string{"eq", "local", "lru"} {
				c := remat.Config{Heuristic: h, Liveness: "eager", Limit: 2*s.Cost + 1, Ladder: "defrag-first",
					Defrag: remat.Defrag{Kind: kind}}
				budget := device.Size(r.Below(uint64(peakOf(t, s, "eager"))+1)) * 512
				got, err := remat.Run(big, over(t, "bestfit:strict", budget), c)
				require.NoError(t, err)
				moved += got.Moves.Defrags
				c.Ladder = ""
				want := play(t, big, budget, c)
				if want.Verdict == remat.OOM {
					require.Equal(t, remat.OOMCapacity, got.Verdict)
					got.Verdict = remat.OOM
				}
				got.Refusals, got.WastedBytes, got.Moves = want.Refusals, want.WastedBytes, want.Moves
				require.Equal(t, want, got)
			}
		}
	})
	require.Positive(t, moved)
}

func TestRefusalsAreClassifiedByCause(t *testing.T) {
	const kib = 1 << 10
	for name, c := range map[string]struct {
		strategy string
		budget   device.Size
		blocks   []device.Size // asked for in this order
		freed    []int         // which of them go again
		want     device.Size
		verdict  remat.Verdict
	}{
		"too little": {"bestfit", 64 * kib, []device.Size{40 * kib}, nil, 25 * kib, remat.OOMCapacity},
		"scattered": {"bestfit", 64 * kib, []device.Size{20 * kib, 20 * kib, 20 * kib}, []int{0, 2}, 30 * kib,
			remat.OOMFragmentation},
		"no aligned place":         {"buddy:whole", 64 * kib, []device.Size{1 * kib}, nil, 40 * kib, remat.OOMFragmentation},
		"larger than all":          {"buddy", 64 * kib, nil, nil, 65 * kib, remat.OOMCapacity},
		"a power of two too large": {"slab:xdl", 64 * kib, nil, nil, 40 * kib, remat.OOMRounding},
		"rounding of others":       {"bestfit", 64 * kib, repeat(200, 160), nil, 30 * kib, remat.OOMRounding},
		"nothing to begin with":    {"bestfit", 100, nil, nil, 90, remat.OOMRounding},
		"nothing at all":           {"bestfit", 100, nil, nil, 300, remat.OOMCapacity},
	} {
		p := over(t, c.strategy, c.budget)
		blocks := []alloc.Block{}
		for i, size := range c.blocks {
			b, ok := p.Alloc(size, remat.Owner(i))
			require.True(t, ok, name)
			blocks = append(blocks, b)
		}
		for _, i := range c.freed {
			p.Free(blocks[i])
		}
		_, ok := p.Alloc(c.want, 0)
		require.False(t, ok, name)
		require.Equal(t, c.verdict, p.Classify(c.want), name)
	}
}

// repeat returns a size so many times.
func repeat(size device.Size, times int) []device.Size {
	return slices.Repeat([]device.Size{size}, times)
}

// mortal is a strategy that answers only so many calls, as a plug-in whose process ends.
type mortal struct {
	alloc.Strategy
	left int
}

var errDied = errors.New("it died")

func (m *mortal) call() error {
	if m.left == 0 {
		return errDied
	}
	m.left--
	return nil
}

func (m *mortal) Alloc(r alloc.Request) (alloc.Block, error) {
	if err := m.call(); err != nil {
		return alloc.Block{}, err
	}
	return m.Strategy.Alloc(r)
}

func (m *mortal) Free(a device.Addr) error {
	if err := m.call(); err != nil {
		return err
	}
	return m.Strategy.Free(a)
}

func TestStrategyErrorEndsTheRun(t *testing.T) {
	for _, left := range []int{0, 1, 40, 41, 42, 43} {
		build := func(src device.Source, c bestfit.Config) (alloc.Strategy, error) {
			s, err := bestfit.New(src, c)
			return &mortal{s, left}, err
		}
		setup, err := setting.Catalogue{setting.SpecOf("mortal", "dies", build)}.Lookup("mortal", nil)
		require.NoError(t, err)
		p, err := remat.Over(setup, 100<<20)
		require.NoError(t, err)
		s := logOf(t, "syn_resnet20")
		res, err := remat.Run(s, p, remat.Config{Heuristic: "eq", Liveness: "eager", Limit: s.Cost, Ladder: "defrag-first"})
		require.NoError(t, err)
		require.NotEqual(t, remat.OK, res.Verdict)
		require.ErrorIs(t, p.Close(), errDied)
	}
}
