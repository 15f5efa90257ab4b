package compare_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/strategies"
)

func read(t *testing.T, text string) *trace.Trace {
	t.Helper()
	tr, err := trace.Read(strings.NewReader(text), "test.trace", trace.Options{})
	require.NoError(t, err)
	return tr
}

func setups(t *testing.T, names ...string) (all []setting.Setup) {
	t.Helper()
	for _, n := range names {
		s, err := strategies.All().Lookup(n, nil)
		require.NoError(t, err)
		all = append(all, s)
	}
	return all
}

func one(t *testing.T, tr *trace.Trace, o compare.Options, s ...setting.Setup) compare.Run {
	t.Helper()
	r, err := compare.Compare(t.Context(), []*trace.Trace{tr}, s, o)
	require.NoError(t, err)
	require.Len(t, r.Runs, len(s))
	return r.Runs[0]
}

// fragmenting leaves holes of 4 MiB between live blocks and then asks for 6 MiB.
func fragmenting() string {
	var b strings.Builder
	for i := range 16 {
		fmt.Fprintf(&b, "a %d 4MiB\n", i)
	}
	for i := 0; i < 16; i += 2 {
		fmt.Fprintf(&b, "f %d\n", i)
	}
	b.WriteString("a 99 6MiB\n")
	return b.String()
}

func TestMinimumCapacityIsExact(t *testing.T) {
	tr := read(t, fragmenting())
	for _, name := range []string{"bfc", "bfc:growth", "buddy:xdl"} {
		s := setups(t, name)[0]
		row := one(t, tr, compare.Options{}, s)
		require.NotNil(t, row.MinCapacity, name)
		completes := func(n device.Size) bool {
			dev, err := sim.New(sim.Config{Capacity: n})
			require.NoError(t, err)
			res, err := replay.Run(tr, s.ForCapacity(n), dev, replay.Options{StopAtOOM: true})
			require.NoError(t, err)
			return res.OOMs == 0
		}
		for n := 64 * device.MiB; n < *row.MinCapacity; n += 2 * device.MiB {
			require.False(t, completes(n), "%s completes on %v, below %v", name, n, *row.MinCapacity)
		}
		require.True(t, completes(*row.MinCapacity), name)
	}
}

func TestFiguresOfAFragmentedPool(t *testing.T) {
	row := one(t, read(t, fragmenting()), compare.Options{}, setups(t, "bfc")...)
	require.Equal(t, 64*device.MiB, row.LowerBound)
	require.Equal(t, 70*device.MiB, *row.MinCapacity, "64 MiB in place and 6 behind them")
	require.Equal(t, *row.MinCapacity, row.Device, "BFC without growth is measured at its minimum")
	require.Equal(t, 70*device.MiB, row.PeakReserved)
	require.Equal(t, 64*device.MiB, row.PeakRequested)
	require.InDelta(t, 1-64./70, row.Waste, 1e-12)
	require.InDelta(t, 1-4./32, row.External, 1e-12, "eight holes of 4 MiB, the tail being taken")
	require.Zero(t, row.OOMs)
	require.Equal(t, uint64(1), row.DeviceCalls)
	require.JSONEq(t, `73400320`, string(field(t, row.Config, "limit")))
}

// field returns one field of a JSON object.
func field(t *testing.T, raw json.RawMessage, name string) json.RawMessage {
	t.Helper()
	var fields map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &fields))
	return fields[name]
}

func TestStrategyThatRefusesASizeHasNoMinimum(t *testing.T) {
	row := one(t, read(t, "a 1 100\na 2 20000\na 3 16384\na 4 16385\n"), compare.Options{}, setups(t, "slab:xdl")...)
	require.Nil(t, row.MinCapacity)
	require.Equal(t, uint64(2), row.Refused)
	require.Zero(t, row.Probes)
}

func TestRequestAboveTheRegionIsRefused(t *testing.T) {
	s, err := strategies.All().Lookup("buddy:xdl", json.RawMessage(`{"region_bytes":"2MiB"}`))
	require.NoError(t, err)
	row := one(t, read(t, "a 1 3MiB\n"), compare.Options{}, s)
	require.Nil(t, row.MinCapacity)
	require.Equal(t, uint64(1), row.Refused)
}

func TestFiguresAreMeasuredAtTheGivenCapacity(t *testing.T) {
	row := one(t, read(t, fragmenting()), compare.Options{Capacity: 68 * device.MiB}, setups(t, "bfc")...)
	require.Equal(t, uint64(1), row.OOMs)
	require.Equal(t, 68*device.MiB, row.Device)
	require.Equal(t, 68*device.MiB, row.PeakReserved)
	require.Equal(t, 70*device.MiB, *row.MinCapacity, "the search does not depend on it")
}

func TestDeviceTooSmallForTheStrategy(t *testing.T) {
	row := one(t, read(t, "a 1 100\n"), compare.Options{Capacity: device.MiB}, setups(t, "slab:blaze")...)
	require.Zero(t, row.PeakReserved)
	require.False(t, row.Starts)
	require.Equal(t, device.GiB, *row.MinCapacity)
}

func TestSameFiguresOnAnyNumberOfWorkers(t *testing.T) {
	tr, err := workload.OpenRecording("meta_resnet50_b256")
	require.NoError(t, err)
	all := setups(t, strategies.All().Default(setting.Compared)...)
	if testing.Short() { // what the pool does is the same for fewer
		all = setups(t, "bfc", "caching", "buddy:xdl")
	}
	var want []compare.Run
	for _, workers := range []int{1, 3, 16} {
		var done atomic.Int32
		r, err := compare.Compare(t.Context(), []*trace.Trace{tr}, all,
			compare.Options{Workers: workers, Done: func(int, *compare.Run) { done.Add(1) }})
		require.NoError(t, err)
		require.Equal(t, compare.Schema, r.Schema)
		require.Equal(t, len(all), int(done.Load()))
		for i := range r.Runs {
			r.Runs[i].NsPerOp, r.Runs[i].NsPerOpByRef = 0, nil
		}
		if want == nil {
			want = r.Runs
		}
		require.Equal(t, want, r.Runs, "%d workers", workers)
	}
}

// moody is a strategy that completes only on some capacities.
type moody struct {
	wrap.Forwarder
	ok bool
}

func (m *moody) Alloc(r alloc.Request) (alloc.Block, error) {
	if !m.ok {
		return alloc.Block{}, alloc.ErrOutOfMemory
	}
	return m.Forwarder.Alloc(r)
}

// moodyConfig is fitted to the capacity that is tried.
type moodyConfig struct {
	Limit device.Size `json:"limit"`
}

func (c moodyConfig) ForCapacity(n device.Size) moodyConfig {
	c.Limit = n
	return c
}

// Has hides the span of the wrapped strategy, which does not know the mood.
func (m *moody) Has(p power.Power) bool { return p != power.PowerSpanned && m.Forwarder.Has(p) }

// moodySetup completes on capacities for which good returns true.
func moodySetup(t *testing.T, good func(device.Size) bool) setting.Setup {
	t.Helper()
	inner := setups(t, "bfc:growth")[0]
	spec := setting.SpecOf("moody", "", func(src device.Source, c moodyConfig) (*moody, error) {
		s, err := inner.ForCapacity(max(c.Limit, device.GiB)).New(src)
		if err != nil {
			return nil, err
		}
		return &moody{wrap.Forward(s, nil), good(c.Limit)}, nil
	})
	s, err := setting.Catalogue{spec}.Lookup("moody", nil)
	require.NoError(t, err)
	return s
}

func TestSearchWhereCompletingIsNotMonotone(t *testing.T) {
	tr := read(t, "a 1 2MiB\n")
	for name, c := range map[string]struct {
		good       func(device.Size) bool
		minimum    device.Size
		failsAbove *device.Size
		safe       device.Size
	}{
		"everything completes": {func(device.Size) bool { return true }, 2 * device.MiB, nil, 2 * device.MiB},
		"a threshold": {func(n device.Size) bool { return n >= 122*device.MiB }, 122 * device.MiB, nil,
			122 * device.MiB},
		"a failure 4 MiB above the minimum": {
			func(n device.Size) bool { return n >= 122*device.MiB && n != 126*device.MiB }, 122 * device.MiB,
			ptr(126 * device.MiB), 128 * device.MiB,
		},
		"a gap in the quarter above": {
			func(n device.Size) bool { return n >= 122*device.MiB && (n < 134*device.MiB || n > 148*device.MiB) },
			122 * device.MiB, ptr(148 * device.MiB), 150 * device.MiB,
		},
		"two gaps, the second one above the quarter": {
			func(n device.Size) bool {
				return n >= 122*device.MiB && n != 124*device.MiB && (n < 154*device.MiB || n > 156*device.MiB)
			},
			122 * device.MiB, ptr(156 * device.MiB), 158 * device.MiB,
		},
		"a success far below": {
			func(n device.Size) bool {
				return n >= 900*device.MiB || n >= 90*device.MiB && n < 210*device.MiB
			}, 90 * device.MiB, ptr(898 * device.MiB), 90 * device.MiB,
		},
	} {
		row := one(t, tr, compare.Options{}, moodySetup(t, c.good))
		require.NotNil(t, row.MinCapacity, name)
		require.Equal(t, c.minimum, *row.MinCapacity, name)
		require.Equal(t, c.failsAbove, row.FailsAbove, name)
		require.NotNil(t, row.SafeFrom, name)
		require.Equal(t, c.safe, *row.SafeFrom, name)
	}
}

// TestSafeCapacityHasNoFailureAbove holds the capacity to every one that was tried, where
// completing is erratic.
func TestSafeCapacityHasNoFailureAbove(t *testing.T) {
	for _, fan := range []int{1, 3} {
		for seed := range uint64(300) {
			good := func(n device.Size) bool {
				x := (uint64(n/compare.Grid) + seed) * 0x9e3779b97f4a7c15
				return n >= 2*device.GiB || n >= 64*device.MiB && x>>61 != 0
			}
			tried := map[device.Size]bool{}
			s := compare.NewSearch(compare.Bounds{Floor: 32 * device.MiB, First: 4 * device.GiB, CompletesFrom: 2 * device.GiB},
				compare.Effort{Fan: fan, Safe: 16})
			for len(s.Points()) > 0 {
				require.Nil(t, s.SafeFrom())
				var answers []bool
				for _, n := range s.Points() {
					require.NotContains(t, tried, n, "nothing is tried twice")
					tried[n] = good(n)
					answers = append(answers, tried[n])
				}
				s.Answer(answers)
			}
			safe := s.SafeFrom()
			if safe == nil {
				continue // failures go on
			}
			require.GreaterOrEqual(t, *safe, *s.Minimum())
			require.True(t, good(*safe))
			for n, ok := range tried {
				require.True(t, ok || n < *safe || n > *safe+*safe/4, "seed %d: %v fails, safe from %v", seed, n, *safe)
			}
		}
	}
}

func TestSearchGivesUp(t *testing.T) {
	row := one(t, read(t, "a 1 2MiB\n"), compare.Options{}, moodySetup(t, func(device.Size) bool { return false }))
	require.Nil(t, row.MinCapacity)
	require.Equal(t, 64*device.GiB, row.SearchedUpTo, "one GiB, doubled six times")
	require.Equal(t, uint64(1), row.OOMs)
}

func TestSearchBeginsAboveTheAmpleDeviceIfNeedBe(t *testing.T) {
	row := one(t, read(t, "a 1 2MiB\n"), compare.Options{},
		moodySetup(t, func(n device.Size) bool { return n >= 5*device.GiB }))
	require.Equal(t, 5*device.GiB, *row.MinCapacity)
}

func ptr(n device.Size) *device.Size { return &n }
