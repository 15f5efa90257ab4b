package pluggable_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/cmd/libvramyard/pluggable"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

// env is an environment: names and values in turn.
func env(pairs ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return m[name] }
}

// library returns a library whose real GPUs are simulated ones of which the test decides what has
// finished.
func library(devices *[]*sim.Device, pairs ...string) *pluggable.Library {
	return pluggable.New(pluggable.Host{
		Env: env(pairs...), Pid: 7, Strategies: strategies.All(),
		Open: func(ordinal int) (device.Device, error) {
			d, err := sim.New(sim.Config{Capacity: 8 * device.GiB, Ordinal: uint8(ordinal), Memory: sim.Filled})
			if devices != nil {
				*devices = append(*devices, d)
			}
			return d, err
		},
	})
}

// stats returns the statistics of the only GPU that was used.
func stats(t *testing.T, l *pluggable.Library) pluggable.DeviceStats {
	t.Helper()
	s, err := l.Stats()
	require.NoError(t, err)
	require.Len(t, s.Devices, 1)
	return s.Devices[0]
}

func TestEveryStrategyServesStreamsAndThreads(t *testing.T) {
	for _, name := range strategies.All().Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			serve(t, name)
		})
	}
}

// held is a block of a program.
type held struct {
	start device.Addr
	size  device.Size
}

// serve lets threads with a stream each allocate, free and share blocks.
func serve(t *testing.T, name string) {
	const threads, steps = 4, 300
	path := filepath.Join(t.TempDir(), "run.trace")
	l := pluggable.New(pluggable.Host{
		Env:        env(pluggable.EnvStrategy, name, pluggable.EnvDevice, "sim:4GiB", pluggable.EnvTrace, path),
		Strategies: strategies.All(),
	})
	var mu sync.Mutex // the table must see blocks come and go in the order in which the library does
	var live []held
	var granted, refused, uses int
	var wg sync.WaitGroup
	for id := range threads {
		rng := rand.New(rand.NewPCG(1, uint64(id)))
		wg.Go(func() {
			var mine []held
			for range steps {
				if len(mine) > 20 || len(mine) > 0 && rng.IntN(2) == 0 {
					i := rng.IntN(len(mine))
					mu.Lock()
					if rng.IntN(4) == 0 && l.RecordStream(mine[i].start, device.Stream((id+1)%threads)) == nil {
						uses++
					}
					at := slices.Index(live, mine[i])
					live = slices.Delete(live, at, at+1)
					if err := l.Free(mine[i].start, 0); err != nil {
						t.Error(err)
					}
					mu.Unlock()
					mine = slices.Delete(mine, i, i+1)
					continue
				}
				h := held{size: 1 + device.Size(rng.IntN(1<<rng.IntN(24)))}
				mu.Lock()
				var err error
				if h.start, err = l.Alloc(h.size, 0, device.Stream(id), 0); err != nil {
					refused++
				} else {
					granted++
					if !h.start.IsAligned(pluggable.Align) {
						t.Errorf("%v is not aligned", h.start)
					}
					for _, o := range live {
						if h.start < o.start.Add(o.size) && o.start < h.start.Add(h.size) {
							t.Errorf("%v of %d bytes overlaps %v of %d bytes", h.start, h.size, o.start, o.size)
						}
					}
					live = append(live, h)
					mine = append(mine, h)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	s := stats(t, l)
	require.Equal(t, uint64(granted), s.Allocs)
	require.Equal(t, uint64(refused), s.OOMs)
	require.Equal(t, uint64(uses), s.Uses)
	require.Equal(t, len(live), s.Live)
	require.NotZero(t, granted)
	require.NoError(t, l.Reset())
	require.NoError(t, l.Finish())
	told(t, name, path, map[trace.Kind]int{
		trace.Alloc: granted, trace.Free: granted - len(live), trace.Refused: refused, trace.Use: uses, trace.Trim: 1,
	})
}

// told reads the trace of a strategy, counts what is in it, and replays it.
func told(t *testing.T, name, path string, want map[trace.Kind]int) {
	t.Helper()
	tr, err := trace.Open(path, trace.Options{})
	require.NoError(t, err)
	counts := map[trace.Kind]int{}
	for _, e := range tr.Events {
		counts[e.Kind]++
	}
	for kind, n := range want {
		require.Equal(t, n, counts[kind], kind)
	}
	got, ok := tr.Header.Get("strategy")
	require.True(t, ok)
	require.Equal(t, name, got)
	setup, err := strategies.All().Lookup(name, nil)
	require.NoError(t, err)
	dev, err := sim.New(sim.Config{Capacity: 8 * device.GiB}) // twice as much, because a replay waits for no stream
	require.NoError(t, err)
	again, err := replay.Run(tr, setup.ForCapacity(8*device.GiB), dev, replay.Options{})
	require.NoError(t, err)
	require.Equal(t, uint64(want[trace.Alloc]), again.Allocs)
}

// TestNoStreamGetsMemoryThatAnotherStillUses frees a block on one stream whose work has not
// finished, and asks on another until that would have to be reused.
func TestNoStreamGetsMemoryThatAnotherStillUses(t *testing.T) {
	for _, name := range strategies.All().Names() {
		t.Run(name, func(t *testing.T) {
			var gpus []*sim.Device
			l := library(&gpus, pluggable.EnvStrategy, name)
			const size = 1000
			a, err := l.Alloc(size, 0, 1, 0)
			if err != nil {
				require.ErrorContains(t, err, "never grants")
				return
			}
			require.NoError(t, gpus[0].Work(1, 1e6))
			require.NoError(t, l.Free(a, 0))
			waits := gpus[0].Usage().Calls[device.CallWait].Done // rmm has waited for the stream of its first region
			b, err := l.Alloc(size, 0, 1, 0)
			require.NoError(t, err)
			require.Equal(t, waits, gpus[0].Usage().Calls[device.CallWait].Done, "its own stream does not wait")
			require.NoError(t, l.Free(b, 0))
			c, err := l.Alloc(size, 0, 2, 0)
			require.NoError(t, err)
			if c == b {
				require.Greater(t, gpus[0].Usage().Calls[device.CallWait].Done, waits, "the other one waits")
			}
		})
	}
}

func TestUsedBlocksArePendingUntilTheirStreamsPassed(t *testing.T) {
	for _, name := range []string{"caching", "tlsf", "async"} {
		t.Run(name, func(t *testing.T) {
			var gpus []*sim.Device
			path := filepath.Join(t.TempDir(), "t.trace")
			l := library(&gpus, pluggable.EnvStrategy, name, pluggable.EnvTrace, path)
			a, err := l.Alloc(5000, 0, 1, 0)
			require.NoError(t, err)
			require.NoError(t, gpus[0].Work(9, 1e6))
			require.NoError(t, l.RecordStream(a, 9))
			require.NoError(t, l.Free(a, 0))
			s := stats(t, l)
			require.Equal(t, 0, s.Live)
			require.Greater(t, s.Active, s.Allocated)
			b, err := l.Alloc(5000, 0, 1, 0)
			require.NoError(t, err)
			require.NotEqual(t, a, b)
			require.NoError(t, gpus[0].Drain(9))
			_, err = l.Alloc(5000, 0, 1, 0)
			require.NoError(t, err)
			s = stats(t, l)
			require.Equal(t, s.Active, s.Allocated)
			require.NoError(t, l.DumpTrace(""))
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Regexp(t, `(?s)a 0 5000 stream=1 .*use 0 9 .*f 0 .*a 1 5000.*done 0 `, string(text))
		})
	}
}

func TestMisuseByAProgramIsReportedAndChangesNothing(t *testing.T) {
	l := library(nil)
	require.ErrorContains(t, l.RecordStream(512, 1), "no live block")
	a, err := l.Alloc(0, 0, 0, 0)
	require.NoError(t, err)
	require.Zero(t, a)
	require.NoError(t, l.Free(0, 0))
	require.NoError(t, l.RecordStream(0, 1))
	a, err = l.Alloc(100, 0, 0, 0)
	require.NoError(t, err)
	require.ErrorContains(t, l.Free(a+1, 0), "no live block")
	require.NoError(t, l.Free(a, 5), "the GPU that has it takes it")
	require.ErrorContains(t, l.Free(a, 0), "no live block")
	require.ErrorContains(t, l.RecordStream(a, 1), "no live block")
	s := stats(t, l)
	require.Equal(t, []uint64{1, 1, 2, 1, 1}, []uint64{s.Allocs, s.Frees, s.BadFrees, s.BadUses, s.Zero})
	_, err = l.Alloc(1, -1, 0, 0)
	require.ErrorContains(t, err, "device -1")
	require.NoError(t, l.Init(2))
	_, err = l.Alloc(1, 2, 0, 0)
	require.ErrorContains(t, err, "there are 2")
	require.ErrorContains(t, l.DumpTrace("x"), pluggable.EnvTrace)
}

func TestOutOfMemoryMessageHasPyTorchsForm(t *testing.T) {
	l := library(nil, pluggable.EnvStrategy, "bfc")
	_, err := l.Alloc(device.GiB, 0, 0, 0)
	require.NoError(t, err)
	_, err = l.Alloc(9*device.GiB, 0, 0, 0)
	var oom *pluggable.OutOfMemoryError
	require.ErrorAs(t, err, &oom)
	require.Equal(t, 9*device.GiB, oom.Size)
	require.Contains(t, err.Error(), "CUDA out of memory. Tried to allocate 9.00 GiB. GPU 0 has a total capacity of "+
		"8.00 GiB of which")
	_, err = l.Alloc(10*device.GiB, 0, 0, 0)
	require.Error(t, err)
	require.Equal(t, 10*device.GiB, stats(t, l).Refused, "the last request that failed")
	_, err = l.Alloc(5*device.GiB, 0, 0, 0)
	require.NoError(t, err, "what is left can be had")
}

func TestMemoryFractionBoundsReservedBytes(t *testing.T) {
	for _, name := range []string{"caching", "bfc", "vmm"} {
		l := library(nil, pluggable.EnvStrategy, name)
		require.NoError(t, l.MemoryFraction(0.25, 0))
		a, err := l.Alloc(device.GiB, 0, 0, 0)
		require.NoError(t, err, name)
		_, err = l.Alloc(device.GiB+device.MiB, 0, 0, 0)
		require.Error(t, err, name)
		require.LessOrEqual(t, stats(t, l).Reserved, 2*device.GiB, name)
		require.NoError(t, l.Free(a, 0))
	}
	for _, bad := range []float64{0, -1, 1.5} {
		require.ErrorContains(t, library(nil).MemoryFraction(bad, 0), "want a share")
	}
}

func TestMemoryComesBackBeforeARequestFails(t *testing.T) {
	var gpus []*sim.Device
	l := library(&gpus, pluggable.EnvStrategy, "slab")
	a, err := l.Alloc(5*device.GiB, 0, 1, 0)
	require.NoError(t, err)
	require.NoError(t, gpus[0].Work(2, 1e9))
	require.NoError(t, l.RecordStream(a, 2))
	require.NoError(t, l.Free(a, 0))
	_, err = l.Alloc(6*device.GiB, 0, 1, 0)
	require.NoError(t, err, "the other stream is waited for")
}

func TestInvalidEnvironmentIsReportedAtFirstUse(t *testing.T) {
	for _, c := range [][3]string{
		{pluggable.EnvStrategy, "bcf", `unknown strategy "bcf"`},
		{pluggable.EnvConfig, `{"conf"`, "configuration of caching"},
		{pluggable.EnvConfig, `{"limt":1}`, "limt"},
		{pluggable.EnvDevice, "gpu", `device "gpu"`},
		{pluggable.EnvDevice, "sim:0", "more than 0"},
		{pluggable.EnvPoison, "yes", "want 0 or 1"},
		{pluggable.EnvEvents, "0", "from 1 on"},
		{pluggable.EnvTrace, "-", "name of a file"},
	} {
		l := library(nil, c[0], c[1])
		for range 2 {
			_, err := l.Alloc(1, 0, 0, 0)
			require.ErrorContains(t, err, c[0])
			require.ErrorContains(t, err, c[2])
		}
		require.NoError(t, l.Finish())
		require.Contains(t, string(l.StatsJSON()), c[0])
	}
	l := pluggable.New(pluggable.Host{Env: env(), Strategies: strategies.All()})
	_, err := l.Alloc(1, 0, 0, 0)
	require.ErrorContains(t, err, "no real devices")
}

func TestAPanicDisablesTheLibraryButNotTheProgram(t *testing.T) {
	l := library(nil, pluggable.EnvPanic, "2")
	a, err := l.Alloc(1, 0, 0, 0)
	require.NoError(t, err)
	for range 2 {
		_, err = l.Alloc(1, 0, 0, 0)
		require.ErrorContains(t, err, "internal error, nothing is allocated any more")
	}
	require.Error(t, l.Free(a, 0))
	require.Contains(t, string(l.StatsJSON()), "internal error")
}

func TestGPUsDoNotShareAddresses(t *testing.T) {
	l := pluggable.New(pluggable.Host{Env: env(pluggable.EnvDevice, "sim:1GiB", pluggable.EnvStrategy, "bfc"),
		Strategies: strategies.All()})
	seen := map[device.Addr]bool{}
	for gpu := range 4 {
		a, err := l.Alloc(100, gpu, 3, 0)
		require.NoError(t, err)
		require.False(t, seen[a])
		seen[a] = true
		require.NoError(t, l.RecordStream(a, 4))
		base, size, ok := l.Base(a + 5)
		require.True(t, ok)
		require.LessOrEqual(t, base, a)
		require.Equal(t, device.GiB, size)
		require.NoError(t, l.Free(a, 0), "whatever GPU is named")
	}
	s, err := l.Stats()
	require.NoError(t, err)
	for gpu, d := range s.Devices {
		require.Equal(t, []uint64{uint64(gpu), 1, 1, 0}, []uint64{uint64(d.Device), d.Frees, d.Uses, d.BadFrees})
	}
	_, _, ok := l.Base(1)
	require.False(t, ok)
}

func TestPrivatePoolsOfStrategiesThatHaveThem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pools.trace")
	l := library(nil, pluggable.EnvTrace, path)
	k := pluggable.PoolKey{First: 0, Second: 1}
	id, err := l.BeginPool(0, k)
	require.NoError(t, err)
	_, err = l.BeginPool(0, k)
	require.ErrorContains(t, err, "begun already")
	inside, err := l.Alloc(100, 0, 5, id)
	require.NoError(t, err)
	second, err := l.Alloc(100, 0, 6, id)
	require.NoError(t, err)
	outside, err := l.Alloc(100, 0, 7, 0)
	require.NoError(t, err)
	require.NoError(t, l.Free(inside, 0))
	require.NoError(t, l.EndPool(0, k))
	require.ErrorContains(t, l.EndPool(0, k), "has not begun")
	_, err = l.Alloc(100, 0, 5, id)
	require.ErrorContains(t, err, "not open")
	later, err := l.Alloc(100, 0, 5, 0)
	require.NoError(t, err)
	require.NotEqual(t, inside, later, "the memory of a pool is nobody else's")
	for _, a := range []device.Addr{second, outside, later} {
		require.NoError(t, l.Free(a, 0))
	}
	require.NoError(t, l.ReleasePool(0, k))
	require.ErrorContains(t, l.ReleasePool(0, k), "no such pool")
	require.NoError(t, l.Reset())
	require.Zero(t, stats(t, l).Reserved)
	require.NoError(t, l.DumpTrace(""))
	_, err = trace.Open(path, trace.Options{})
	require.NoError(t, err)

	_, err = library(nil, pluggable.EnvStrategy, "tlsf").BeginPool(0, k)
	require.ErrorContains(t, err, "has no private pools")
	_, err = library(nil, pluggable.EnvPoison, "1").BeginPool(0, k)
	require.ErrorContains(t, err, pluggable.EnvPoison)
}

func TestPoisonFindsWritesAfterFree(t *testing.T) {
	for _, name := range strategies.All().Names() {
		t.Run(name, func(t *testing.T) {
			var gpus []*sim.Device
			l := library(&gpus, pluggable.EnvStrategy, name, pluggable.EnvPoison, "1")
			a, err := l.Alloc(4096, 0, 0, 0)
			if err != nil {
				require.ErrorContains(t, err, "never grants")
				return
			}
			keep, err := l.Alloc(4096, 0, 0, 0)
			require.NoError(t, err)
			require.NoError(t, gpus[0].Fill(a, 4096, 1), "a program may write what is its own")
			require.NoError(t, l.Free(a, 0))
			b, err := l.Alloc(4096, 0, 0, 0)
			require.NoError(t, err)
			require.NoError(t, l.Free(b, 0))
			if gpus[0].Fill(b+1024, 4, 1) != nil {
				require.NoError(t, l.Free(keep, 0)) // a strategy that gives memory back at once: the GPU itself refuses
				return
			}
			err = l.Finish()
			require.ErrorContains(t, err, fmt.Sprintf("%v was written after it was freed", b+1024))
			for tries := 0; ; tries++ { // some take other memory first
				if _, err = l.Alloc(4096, 0, 0, 0); err != nil {
					break
				}
				require.Less(t, tries, 1000)
			}
			require.ErrorContains(t, err, "was written after it was freed")
			_, err = l.Alloc(4096, 0, 0, 0)
			require.NoError(t, err, "it is told once")
			p := stats(t, l).Poison
			require.NotNil(t, p)
			require.Equal(t, uint64(2), p.Violations)
			require.False(t, p.Blind)
		})
	}
}

func TestStatisticsAreJSON(t *testing.T) {
	dir := t.TempDir()
	l := library(nil, pluggable.EnvStats, filepath.Join(dir, "s-%p.json"), pluggable.EnvTrace,
		filepath.Join(dir, "t.trace.gz"))
	for gpu := range 2 {
		_, err := l.Alloc(100, gpu, 0, 0)
		require.NoError(t, err)
	}
	require.NoError(t, l.Finish())
	text, err := os.ReadFile(filepath.Join(dir, "s-7.json"))
	require.NoError(t, err)
	var s pluggable.Stats
	require.NoError(t, json.Unmarshal(text, &s))
	require.Equal(t, pluggable.Schema, s.Schema)
	require.Equal(t, int64(512), s.Devices[1].Counters["allocated_bytes.all.current"])
	for i, name := range []string{"t.trace.gz", "t-gpu1.trace.gz"} {
		tr, err := trace.Open(filepath.Join(dir, name), trace.Options{})
		require.NoError(t, err)
		got, _ := tr.Header.Get("ordinal")
		require.Equal(t, strconv.Itoa(i), got)
		require.Equal(t, alloc.Request{Size: 100}.Size, tr.Events[0].Size)
	}
}

func TestLongTracesAreCutAtABound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "short.trace")
	l := library(nil, pluggable.EnvTrace, path, pluggable.EnvEvents, "3")
	for range 3 {
		a, err := l.Alloc(1, 0, 0, 0)
		require.NoError(t, err)
		require.NoError(t, l.Free(a, 0))
	}
	require.NoError(t, l.DumpTrace(""))
	tr, err := trace.Open(path, trace.Options{})
	require.NoError(t, err)
	require.Len(t, tr.Events, 3)
	lost, _ := tr.Header.Get("events_lost_at_end")
	require.Equal(t, "3", lost)
}
