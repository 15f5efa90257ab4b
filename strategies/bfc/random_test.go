package bfc_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/internal/invariants"
	"github.com/vramyard/vramyard/strategies/bfc"
)

// worlds are configurations whose rules differ, each with a limit that binds.
var worlds = map[string]bfc.Config{
	"default":        {},
	"growth":         {AllowGrowth: true},
	"gc":             {AllowGrowth: true, GarbageCollection: true},
	"joined gc":      {AllowGrowth: true, GarbageCollection: true, CoalesceRegions: true},
	"fraction":       {FragmentationFraction: 0.0001},
	"tiny fraction":  {FragmentationFraction: 1e-12},
	"timing":         {AllowGrowth: true, Timing: true},
	"timing gc":      {AllowGrowth: true, Timing: true, GarbageCollection: true, CoalesceRegions: true},
	"mended timing":  {AllowGrowth: true, Timing: true, GarbageCollection: true, Mended: true},
	"2016":           {Variant: bfc.V2016},
	"2016 growth":    {Variant: bfc.V2016, AllowGrowth: true},
	"2026":           {Variant: bfc.V2026, AllowGrowth: true},
	"2026 timing":    {Variant: bfc.V2026, Timing: true, Mended: true},
	"spatial":        {Variant: bfc.V2026, Spatial: true},
	"spatial gc":     {Variant: bfc.V2026, Spatial: true, GarbageCollection: true, CoalesceRegions: true},
	"spatial timing": {Variant: bfc.V2026, Spatial: true, Timing: true},
	"spatial mended": {Variant: bfc.V2026, Spatial: true, Timing: true, Mended: true},
}

// eachWorld runs a test in every world, with a few seeds.
func eachWorld(t *testing.T, run func(*testing.T, bfc.Config, uint64)) {
	for name, c := range worlds {
		c.Limit = 24 * mib
		for s := *seed; s < *seed+3; s++ {
			t.Run(fmt.Sprintf("%s/seed=%d", name, s), func(t *testing.T) { run(t, c, s) })
		}
	}
}

// player makes random calls, legal and not, and keeps what is live.
type player struct {
	t    *testing.T
	rng  *rand.Rand
	a    *bfc.Allocator
	dev  *device.Faults
	cfg  bfc.Config
	live []alloc.Block
	log  []alloc.Block // what every request got
}

// newPlayer returns a player over a device of 20 MiB that refuses every fiftieth call.
func newPlayer(t *testing.T, c bfc.Config, seed uint64) *player {
	inner, err := sim.New(sim.Config{Capacity: 20 * mib, Align: 64 * kib})
	require.NoError(t, err)
	dev, err := device.NewFaults(inner, device.FaultPlan{Probability: 0.02, Seed: seed})
	require.NoError(t, err)
	a, err := bfc.New(dev, c)
	require.NoError(t, err)
	return &player{t: t, rng: rand.New(rand.NewPCG(seed, 30)), a: a, dev: dev, cfg: a.Config()}
}

// step makes one call.
func (p *player) step() {
	switch k := p.rng.IntN(100); {
	case k < 52:
		p.alloc()
	case k < 92 && len(p.live) > 0:
		i := p.rng.IntN(len(p.live))
		require.NoError(p.t, p.a.Free(p.live[i].Addr))
		p.live[i] = p.live[len(p.live)-1]
		p.live = p.live[:len(p.live)-1]
	case k < 94:
		p.misuse()
	case k < 98:
		p.a.SetFrontier(p.rng.Uint64N(uint64(2*len(p.log) + 1)))
	case k == 98:
		_, _ = p.a.Trim() // the device may refuse
	default:
		p.a.ClearStats()
	}
}

// alloc makes one request.
func (p *player) alloc() {
	r := alloc.Request{
		Size: device.Size(math.Exp(math.Log(8192)+2*p.rng.NormFloat64())) + 1,
		Hint: alloc.Hint(p.rng.IntN(3)),
		Tag:  uint64(p.rng.IntN(2)),
	}
	if p.rng.IntN(4) == 0 {
		r.Before = p.rng.Uint64N(uint64(len(p.log) + 1))
	}
	if p.cfg.Variant == bfc.V2026 && p.rng.IntN(4) == 0 {
		r.Align = 1 << p.rng.IntN(18)
	}
	b, err := p.a.Alloc(r)
	p.log = append(p.log, b)
	if err == nil {
		require.True(p.t, b.Addr.IsAligned(max(r.Align, 256)))
		p.live = append(p.live, b)
	} else {
		require.ErrorIs(p.t, err, alloc.ErrOutOfMemory)
	}
}

// misuse makes calls that must be refused.
func (p *player) misuse() {
	addr := sim.Base.Add(device.Size(p.rng.Uint64N(uint64(24 * mib))))
	if !slices.ContainsFunc(p.live, func(b alloc.Block) bool { return b.Addr == addr }) {
		require.ErrorIs(p.t, p.a.Free(addr), alloc.ErrInvalidFree)
	}
	_, err := p.a.Alloc(alloc.Request{Size: math.MaxUint64 - device.Size(p.rng.IntN(255))})
	require.ErrorIs(p.t, err, alloc.ErrInvalidRequest)
}

func TestRandomCallsKeepEveryInvariant(t *testing.T) {
	eachWorld(t, func(t *testing.T, c bfc.Config, seed uint64) {
		p := newPlayer(t, c, seed)
		for i := range 1500 {
			p.step()
			if invariants.Enabled || i%50 == 0 {
				require.NoError(t, p.a.Check(), "step %d", i)
				s := p.a.Stats()
				require.Equal(t, p.dev.Usage().Held, s.Reserved+s.Forgotten, "step %d", i)
			}
		}
		requireDisjoint(t, p.live)
		for _, b := range p.live {
			require.NoError(t, p.a.Free(b.Addr))
		}
		require.NoError(t, p.a.Check())
		for err := p.a.Close(); err != nil; err = p.a.Close() {
			require.NoError(t, p.a.Check())
		}
		require.Zero(t, p.dev.Usage().Held)
	})
}

func TestSameCallsGiveTheSameAddresses(t *testing.T) {
	eachWorld(t, func(t *testing.T, c bfc.Config, seed uint64) {
		p, q := newPlayer(t, c, seed), newPlayer(t, c, seed)
		for range 1000 {
			p.step()
			q.step()
		}
		require.Equal(t, p.log, q.log)
		require.Equal(t, slices.Collect(p.a.Walk), slices.Collect(q.a.Walk))
		require.Equal(t, p.a.Stats(), q.a.Stats())
	})
}

// TestPlacementIsBestFit compares every placement with the definition, over the chunks
// that Walk showed before.
func TestPlacementIsBestFit(t *testing.T) {
	p := newPlayer(t, bfc.Config{Limit: 16 * mib}, *seed)
	for range 3000 {
		before := slices.Collect(p.a.Walk)
		n := len(p.log)
		p.step()
		if len(p.log) == n || p.log[n].Size == 0 || len(before) == 0 {
			continue
		}
		got := p.log[n]
		var best *alloc.Chunk
		for i, c := range before {
			if c.State == alloc.Free && c.Size >= got.Size && (best == nil || c.Size < best.Size) {
				best = &before[i]
			}
		}
		if best != nil { // otherwise it came from a new region
			require.Equal(t, best.Addr, got.Addr)
		}
	}
}

func TestDrainedRegionsAreOneChunkEach(t *testing.T) {
	for name, c := range worlds {
		if c.Timing {
			continue
		}
		c.Limit = 24 * mib
		p := newPlayer(t, c, *seed)
		for range 1000 {
			p.step()
		}
		for _, b := range p.live {
			require.NoError(t, p.a.Free(b.Addr))
		}
		require.Len(t, slices.Collect(p.a.Walk), p.a.Stats().Regions, name)
	}
}

func TestLabelsFollowTheirBlock(t *testing.T) {
	r := newRig(t, bfc.Config{Limit: mib}, sim.Config{})
	plain := r.alloc(256)
	r.request(alloc.Request{Size: 256, Tag: 7, Stream: 9})
	r.free(plain)
	r.request(alloc.Request{Size: 300})
	all := r.chunks()
	require.Equal(t, [2]uint64{7, 9}, [2]uint64{all[1].Tag, uint64(all[1].Stream)})
	require.Equal(t, [2]uint64{0, 0}, [2]uint64{all[2].Tag, uint64(all[2].Stream)})
}

// TestSlackAboveFourGiB grants more than 32 bits of slack, which the chunk records cannot
// express.
func TestSlackAboveFourGiB(t *testing.T) {
	c := bfc.Config{Limit: 16 * gib, FragmentationFraction: 1}
	r := newRig(t, c, sim.Config{})
	b := r.alloc(9 * gib)
	require.Equal(t, 16*gib, b.Size)
	require.Equal(t, 9*gib, r.chunks()[0].Requested)
	require.Equal(t, 9*gib, r.Stats().Requested)
	r.free(b)
	require.Zero(t, r.Stats().Requested)
	require.NoError(t, r.Check())
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for name, c := range map[string]bfc.Config{
		"default": {Limit: gib},
		"timing":  {Limit: gib, Timing: true},
		"spatial": {Limit: gib, Variant: bfc.V2026, Spatial: true},
		"gc":      {Limit: 64 * mib, AllowGrowth: true, GarbageCollection: true},
	} {
		r := newRig(t, c, sim.Config{})
		rng := rand.New(rand.NewPCG(*seed, 31))
		slots := make([]device.Addr, 1000)
		replace := func() {
			i := rng.IntN(len(slots))
			if slots[i] != 0 {
				r.Free(slots[i]) // it is live
			}
			b, _ := r.Alloc(alloc.Request{Size: 1 + device.Size(rng.Uint64N(100_000)), Hint: alloc.Hint(i % 3), Tag: uint64(i)})
			slots[i] = b.Addr
		}
		for range 20000 {
			replace()
		}
		r.SetFrontier(1 << 40)
		for range 20000 {
			replace()
		}
		require.Zero(t, testing.AllocsPerRun(5000, replace), name)
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			_, _ = r.Alloc(alloc.Request{Size: 2 * gib}) // it must fail
		}), name+", failing")
	}
}

func TestMetadataFollowsTheChunks(t *testing.T) {
	r := newRig(t, bfc.Config{Limit: device.TiB}, sim.Config{})
	for range 100_000 {
		r.alloc(256)
		if invariants.Enabled && r.Stats().Live > 1000 {
			break // Check after each makes it quadratic
		}
	}
	require.Less(t, r.MetadataBytes(), 100*device.Size(r.Stats().Live)+4096)
}
