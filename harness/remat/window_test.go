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

// scene is a space in some state, which can be built again.
type scene struct {
	name   string
	budget device.Size
	calls  []func(p *remat.Space, live map[remat.Owner]alloc.Block)
	worth  map[remat.Owner]float64 // of blocks that may go
	want   device.Size             // of the request that is refused
}

// build returns the space, and what is live in it by owner.
func (s *scene) build(t *testing.T) (*remat.Space, map[remat.Owner]alloc.Block) {
	p, live := over(t, s.name, s.budget), map[remat.Owner]alloc.Block{}
	for _, call := range s.calls {
		call(p, live)
	}
	return p, live
}

// works reports whether the request has a place in the scene without some blocks.
func (s *scene) works(t *testing.T, goes []remat.Owner) bool {
	p, live := s.build(t)
	for _, o := range goes {
		p.Free(live[o])
	}
	_, ok := p.Alloc(s.want, 0)
	return ok
}

// drawScene returns a scene of at most a dozen blocks in which a request is refused, or false.
func drawScene(t *testing.T, name string, r *workload.Rand) (*scene, bool) {
	unit := device.Size(512) << (2 * r.Below(6))
	s := &scene{name: name, budget: unit * 64, worth: map[remat.Owner]float64{}}
	for owner := range remat.Owner(5 + r.Below(8)) {
		owner, size := owner+1, unit*device.Size(1+r.Below(12))-device.Size(r.Below(uint64(unit)))
		s.calls = append(s.calls, func(p *remat.Space, live map[remat.Owner]alloc.Block) {
			if b, ok := p.Alloc(size, owner); ok {
				live[owner] = b
			}
		})
		if r.Below(6) > 0 {
			s.worth[owner] = float64(r.Below(50))
		}
		if gone := 1 + remat.Owner(r.Below(uint64(owner))); r.Below(2) == 0 {
			s.calls = append(s.calls, func(p *remat.Space, live map[remat.Owner]alloc.Block) {
				if b, ok := live[gone]; ok {
					p.Free(b)
					delete(live, gone)
				}
			})
		}
	}
	s.want = unit * device.Size(1+r.Below(40))
	return s, !s.works(t, nil)
}

// best returns what the best window is worth that works, found by trying all, and infinity if none
// does.
func (s *scene) best(t *testing.T) float64 {
	p, live := s.build(t)
	chunks, least := []alloc.Chunk{}, math.Inf(1)
	for c := range p.Walk {
		chunks = append(chunks, c)
	}
	for from := range chunks {
		sum, goes := 0.0, []remat.Owner{}
		for _, c := range chunks[from:] {
			owner := remat.Owner(c.Tag)
			worth, may := s.worth[owner]
			if c.Region != chunks[from].Region || c.State != alloc.Free && !(c.State == alloc.Live && may) {
				break
			}
			if c.State == alloc.Live {
				require.Equal(t, c.Addr, live[owner].Addr)
				sum += worth
				goes = append(goes, owner)
			}
			if sum < least && len(goes) > 0 && s.works(t, goes) {
				least = sum
			}
		}
	}
	return least
}

// window returns the space's own answer, after the request was refused.
func (s *scene) window(t *testing.T) (goes []remat.Owner, whole bool, sum float64) {
	p, live := s.build(t)
	_, ok := p.Alloc(s.want, 0)
	require.False(t, ok)
	goes, whole = p.Window(s.want, func(o remat.Owner, at device.Addr) (float64, bool) {
		worth, may := s.worth[o]
		require.Equal(t, live[o].Addr, at)
		return worth, may
	})
	for _, o := range goes {
		sum += s.worth[o]
	}
	return goes, whole, sum
}

// guess reports whether windows may be missed: a strategy that gives regions or pages back as they
// become free, or lets the device take a request for itself, does not say that the device will then
// have enough.
func guess(name string) bool {
	base, _, _ := strings.Cut(name, ":")
	return name == "bfc:gc" || slices.Contains([]string{"buddy", "slabbuddy", "vmm"}, base)
}

func TestAWindowIsTheCheapestThatMakesRoom(t *testing.T) {
	found := 0
	for i, name := range strategies.All().Names() {
		r := workload.NewRand(*seed*1000 + uint64(i))
		for range 8 {
			s, refused := drawScene(t, name, r)
			if !refused {
				continue
			}
			goes, whole, sum := s.window(t)
			if len(goes) > 0 && !whole {
				found++
				require.True(t, s.works(t, goes), "%s: the request has no place after its window went", name)
			}
			if best := s.best(t); len(goes) == 0 {
				require.True(t, guess(name) || math.IsInf(best, 1), "%s: there is a window worth %v", name, best)
			} else {
				require.True(t, guess(name) || sum <= best, "%s: a window is worth %v, and %v another", name, sum, best)
			}
		}
	}
	require.Greater(t, found, 40)
}

func TestWholeRegionsMakeRoomWhereNoWindowDoes(t *testing.T) {
	p := over(t, "caching", 64<<20)
	worth := map[remat.Owner]float64{}
	for owner := remat.Owner(1); ; owner++ { // segments of their own, which never join
		if _, ok := p.Alloc(12<<20, owner); !ok {
			break
		}
		worth[owner] = float64(owner % 3)
	}
	require.Len(t, worth, 5)
	_, ok := p.Alloc(30<<20, 0)
	require.False(t, ok)
	goes, whole := p.Window(30<<20, func(o remat.Owner, _ device.Addr) (float64, bool) { return worth[o], true })
	require.True(t, whole)
	require.ElementsMatch(t, []remat.Owner{1, 3, 4}, goes, "4 MiB are left, and these are worth least")
}

func TestBlocksLieAtTheirEndsWhileTheyFit(t *testing.T) {
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
	require.True(t, ok, "what has no place at the high end lies at the low one")
	require.Equal(t, addrs[0], b.Addr)
}

func TestExpensiveBlocksLieAtTheOtherEnd(t *testing.T) {
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
	require.Positive(t, wasted, "eq evicts what the request has no use for")
}
