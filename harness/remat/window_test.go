package remat_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/strategies"
)

// randomHeap describes a space after some calls. It can be built several times.
type randomHeap struct {
	name    string
	budget  device.Size
	steps   []func(p *remat.Space, live map[remat.Owner]alloc.Block)
	costs   map[remat.Owner]float64 // of evicting a block; absent: it is kept
	request device.Size             // size of the refused request
}

// build returns the space and its live blocks by owner.
func (s *randomHeap) build(t *testing.T) (*remat.Space, map[remat.Owner]alloc.Block) {
	p, live := over(t, s.name, s.budget), map[remat.Owner]alloc.Block{}
	for _, call := range s.steps {
		call(p, live)
	}
	return p, live
}

// fitsWithout reports whether the request fits once some blocks have been freed.
func (s *randomHeap) fitsWithout(t *testing.T, victims []remat.Owner) bool {
	p, live := s.build(t)
	for _, o := range victims {
		p.Free(live[o])
	}
	_, ok := p.Alloc(s.request, 0)
	return ok
}

// drawHeap returns a heap of at most twelve blocks, and whether it refuses the request.
func drawHeap(t *testing.T, name string, r *workload.Rand) (*randomHeap, bool) {
	unit := device.Size(512) << (2 * r.Below(6))
	s := &randomHeap{name: name, budget: unit * 64, costs: map[remat.Owner]float64{}}
	for owner := range remat.Owner(5 + r.Below(8)) {
		owner, size := owner+1, unit*device.Size(1+r.Below(12))-device.Size(r.Below(uint64(unit)))
		s.steps = append(s.steps, func(p *remat.Space, live map[remat.Owner]alloc.Block) {
			if b, ok := p.Alloc(size, owner); ok {
				live[owner] = b
			}
		})
		if r.Below(6) > 0 {
			s.costs[owner] = float64(r.Below(50))
		}
		if freed := 1 + remat.Owner(r.Below(uint64(owner))); r.Below(2) == 0 {
			s.steps = append(s.steps, func(p *remat.Space, live map[remat.Owner]alloc.Block) {
				if b, ok := live[freed]; ok {
					p.Free(b)
					delete(live, freed)
				}
			})
		}
	}
	s.request = unit * device.Size(1+r.Below(40))
	return s, !s.fitsWithout(t, nil)
}

// cheapest returns the cost of the cheapest window that makes the request fit, by trying all of
// them, or infinity.
func (s *randomHeap) cheapest(t *testing.T) float64 {
	p, live := s.build(t)
	chunks, least := []alloc.Chunk{}, math.Inf(1)
	for c := range p.Walk {
		chunks = append(chunks, c)
	}
	for from := range chunks {
		sum, victims := 0.0, []remat.Owner{}
		for _, c := range chunks[from:] {
			owner := remat.Owner(c.Tag)
			cost, may := s.costs[owner]
			if c.Region != chunks[from].Region || c.State != alloc.Free && !(c.State == alloc.Live && may) {
				break
			}
			if c.State == alloc.Live {
				require.Equal(t, c.Addr, live[owner].Addr)
				sum += cost
				victims = append(victims, owner)
			}
			if sum < least && len(victims) > 0 && s.fitsWithout(t, victims) {
				least = sum
			}
		}
	}
	return least
}

// window returns the result of Window after the refusal, and its total cost.
func (s *randomHeap) window(t *testing.T) (victims []remat.Owner, emptiesRegions bool, sum float64) {
	p, live := s.build(t)
	_, ok := p.Alloc(s.request, 0)
	require.False(t, ok)
	victims, emptiesRegions = p.Window(s.request, func(o remat.Owner, at device.Addr) (float64, bool) {
		cost, may := s.costs[o]
		require.Equal(t, live[o].Addr, at)
		return cost, may
	})
	for _, o := range victims {
		sum += s.costs[o]
	}
	return victims, emptiesRegions, sum
}

// mayMissWindows reports whether Window may overlook a cheaper window of a strategy. Such a
// strategy returns free regions or pages to the device, and does not promise that the device then
// has enough memory for the request.
func mayMissWindows(name string) bool {
	base, _, _ := strings.Cut(name, ":")
	return name == "bfc:gc" || slices.Contains([]string{"buddy", "slabbuddy", "vmm"}, base)
}

func TestWindowIsTheCheapestThatMakesRoom(t *testing.T) {
	found := 0
	for i, name := range strategies.All().Names() {
		r := workload.NewRand(*seed*1000 + uint64(i))
		for range 8 {
			s, refused := drawHeap(t, name, r)
			if !refused {
				continue
			}
			victims, emptiesRegions, sum := s.window(t)
			if len(victims) > 0 && !emptiesRegions {
				found++
				require.True(t, s.fitsWithout(t, victims), "%s: the request does not fit after its window was evicted", name)
			}
			if best := s.cheapest(t); len(victims) == 0 {
				require.True(t, mayMissWindows(name) || math.IsInf(best, 1), "%s: a window of cost %v was missed", name, best)
			} else {
				require.True(t, mayMissWindows(name) || sum <= best, "%s: the window costs %v, another %v", name, sum, best)
			}
		}
	}
	require.Greater(t, found, 40)
}

func TestWholeRegionsMakeRoomWhereNoWindowDoes(t *testing.T) {
	p := over(t, "caching", 64<<20)
	costs := map[remat.Owner]float64{}
	for owner := remat.Owner(1); ; owner++ { // each has a segment of its own, and segments do not merge
		if _, ok := p.Alloc(12<<20, owner); !ok {
			break
		}
		costs[owner] = float64(owner % 3)
	}
	require.Len(t, costs, 5)
	_, ok := p.Alloc(30<<20, 0)
	require.False(t, ok)
	victims, emptiesRegions := p.Window(30<<20, func(o remat.Owner, _ device.Addr) (float64, bool) {
		return costs[o], true
	})
	require.True(t, emptiesRegions)
	require.ElementsMatch(t, []remat.Owner{1, 3, 4}, victims, "4 MiB of the device are free, and these cost least")
}

func TestBlocksArePlacedAtTheirEnds(t *testing.T) {
	p := over(t, "bfc:spatial", 64<<10)
	p.SetHints(func(o remat.Owner) alloc.Hint { return alloc.HintLow + alloc.Hint(o%2) })
	addrs := []device.Addr{}
	for _, owner := range []remat.Owner{2, 3, 4, 5, 7, 9, 11, 13} {
		b, ok := p.Alloc(8<<10, owner)
		require.True(t, ok, "owner %d", owner)
		addrs = append(addrs, b.Addr)
	}
	require.Equal(t, device.Size(56<<10), addrs[1].Sub(addrs[0]))
	require.Equal(t, device.Size(8<<10), addrs[2].Sub(addrs[0]))
	require.Equal(t, device.Size(48<<10), addrs[3].Sub(addrs[0]))
	p.Free(alloc.Block{Addr: addrs[0], Size: 8 << 10})
	b, ok := p.Alloc(8<<10, 15)
	require.True(t, ok, "a block that does not fit at the high end is placed at the low end")
	require.Equal(t, addrs[0], b.Addr)
}

func TestExpensiveBlocksArePlacedAtTheHighEnd(t *testing.T) {
	s := logOf(t, "syn_resnet20")
	peak := peakOf(t, s, "eager")
	seen := map[string]string{}
	for _, h := range []string{"coop", "coop-ends"} {
		for _, strategy := range []string{"bestfit", "bfc:spatial"} {
			res, err := remat.Run(s, over(t, strategy, peak*8/10), remat.Config{Heuristic: h, Liveness: "eager", Limit: s.Cost})
			require.NoError(t, err)
			require.Equal(t, remat.OK, res.Verdict)
			seen[h+" "+strategy] = res.VictimsSHA256
		}
	}
	require.Equal(t, seen["coop bestfit"], seen["coop-ends bestfit"], "bestfit has no ends")
	require.NotEqual(t, seen["coop bfc:spatial"], seen["coop-ends bfc:spatial"])
}

func TestWindowEvictsNoUnneededBlock(t *testing.T) {
	windows, wasted := 0, int64(0)
	for _, model := range []string{"syn_unet4", "syn_resnet20", "syn_transformer6"} {
		s := logOf(t, model)
		peak := peakOf(t, s, "eager")
		for tenths := device.Size(4); tenths < 10; tenths++ {
			run := func(h string) remat.Result {
				res, err := remat.Run(s, over(t, "bestfit:strict", peak*tenths/10),
					remat.Config{Heuristic: h, Liveness: "eager", Limit: s.Cost})
				require.NoError(t, err)
				return res
			}
			wasted += run("eq").WastedBytes
			if res := run("coop"); res.WindowEvictions == res.Evictions[remat.Pressure] {
				windows += res.WindowEvictions
				require.Zero(t, res.WastedBytes, "%s within %d tenths", model, tenths)
			}
		}
	}
	require.Greater(t, windows, 100)
	require.Positive(t, wasted, "eq evicts blocks that the request does not need")
}
