package caching_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/caching"
)

// draw returns a configuration, of keys that each are there in half of the cases.
func draw(r *rand.Rand) caching.Config {
	c := caching.Config{Rules: []string{caching.Rules26, caching.Rules211}[r.IntN(2)], Mended: r.IntN(8) == 0}
	var keys []string
	some := func(values ...string) {
		if r.IntN(2) == 0 {
			keys = append(keys, values[r.IntN(len(values))])
		}
	}
	some("expandable_segments:True", "expandable_segments:False", "pinned_use_background_threads:True")
	some("max_split_size_mb:21", "max_split_size_mb:32", "max_split_size_mb:64", "max_split_size_mb:4096")
	some("max_non_split_rounding_mb:21", "max_non_split_rounding_mb:64")
	some("garbage_collection_threshold:0.3", "garbage_collection_threshold:0.8")
	some("roundup_power2_divisions:1", "roundup_power2_divisions:4", "roundup_power2_divisions:[1:2,8:4,>:8]")
	if c.Rules == caching.Rules211 {
		some("large_segment_size_mb:12", "large_segment_size_mb:16", "large_segment_size_mb:20")
		some("per_process_memory_fraction:1", "per_process_memory_fraction:0.75")
	}
	c.Conf = strings.Join(keys, ",")
	return c
}

// edges are the sizes at which a rule begins to hold, or one of the settings that draw draws.
var edges = []device.Size{
	512, device.MiB, 2 * device.MiB, 10 * device.MiB, 12 * device.MiB, 16 * device.MiB, 20 * device.MiB, 21 * device.MiB,
	32 * device.MiB, 64 * device.MiB,
}

// drawEdges returns sizes at and just beside edges.
func drawEdges(r *rand.Rand) (d setting.Demand) {
	beside := []int64{-512, -1, 0, 0, 1, 512}
	for range 1 + r.IntN(4) {
		n := int64(edges[r.IntN(len(edges))]) + beside[r.IntN(len(beside))]
		d.Sizes = append(d.Sizes, device.Size(max(n, 1)))
	}
	slices.Sort(d.Sizes)
	d.Sizes = slices.Compact(d.Sizes)
	return d
}

// drawDemand returns some sizes to ask for, often only small or only large ones, or such at edges.
func drawDemand(r *rand.Rand) setting.Demand {
	if r.IntN(3) == 0 {
		return drawEdges(r)
	}
	kinds := []device.Size{600, 64 * device.KiB, 3 * device.MiB, 12 * device.MiB, 24 * device.MiB}
	from := r.IntN(len(kinds))
	to := from + 1 + r.IntN(len(kinds)-from)
	var d setting.Demand
	for range 1 + r.IntN(6) {
		n := kinds[from+r.IntN(to-from)]
		if r.IntN(3) > 0 {
			n += device.Size(r.Int64N(int64(n)))
		}
		if r.IntN(3) == 0 {
			n = promise.PowerOfTwo(n, 512)
		}
		d.Sizes = append(d.Sizes, n)
	}
	slices.Sort(d.Sizes)
	d.Sizes = slices.Compact(d.Sizes)
	return d
}

// differ drives two configurations side by side on small devices and returns the first difference.
func differ(t *testing.T, seed uint64, a, b caching.Config, d setting.Demand) error {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 9))
	capacity := device.AlignUp(d.Largest()*device.Size(2+r.IntN(12)), 2*device.MiB) + 2*device.MiB
	var all [2]*caching.Allocator
	var devices [2]*sim.Device
	for i, c := range []caching.Config{a, b} {
		var err error
		devices[i], err = sim.New(sim.Config{Capacity: capacity})
		require.NoError(t, err)
		all[i], err = caching.New(devices[i], c)
		require.NoError(t, err)
		defer func() { require.NoError(t, all[i].Close()) }()
	}
	var live []device.Addr
	for step := range 300 {
		if len(live) > 0 && r.IntN(100) < 45 {
			k := r.IntN(len(live))
			if r.IntN(4) == 0 {
				used := device.Stream(r.IntN(2))
				require.Equal(t, all[0].RecordStream(live[k], used), all[1].RecordStream(live[k], used))
			}
			x, y := all[0].Free(live[k]), all[1].Free(live[k])
			require.Equal(t, x, y)
			live = slices.Delete(live, k, k+1)
		} else {
			req := alloc.Request{Size: d.Sizes[r.IntN(len(d.Sizes))], Stream: device.Stream(r.IntN(2))}
			x, errX := all[0].Alloc(req)
			y, errY := all[1].Alloc(req)
			if x != y || errX != errY {
				return fmt.Errorf("step %d, %d bytes: %v %w and %v %w", step, req.Size, x, cmp.Or(errX, alloc.ErrClosed), y,
					cmp.Or(errY, alloc.ErrClosed))
			}
			if errX == nil {
				live = append(live, x.Addr)
			}
		}
		if x, y := devices[0].Usage(), devices[1].Usage(); x != y {
			return fmt.Errorf("step %d: device %+v and %+v", step, x, y)
		}
	}
	return nil
}

// TestReducedConfigurationsDecideAlike holds configurations and what they reduce to against each
// other, on devices that run out.
func TestReducedConfigurationsDecideAlike(t *testing.T) {
	reduced := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		c, d := draw(r), drawDemand(r)
		full, err := c.WithDefaults()
		if err != nil {
			continue
		}
		short := full.Reduced(d)
		require.Equal(t, short, short.Reduced(d), "seed %d: reducing again changes nothing", seed)
		if _, err = short.WithDefaults(); err != nil {
			t.Fatalf("seed %d: %+v: %v", seed, short, err)
		}
		if short == full {
			continue
		}
		reduced++
		require.NoError(t, differ(t, seed, full, short, d), "seed %d: %+v\nreduced: %+v\ndemand: %v", seed, full,
			short, d.Sizes)
	}
	require.Greater(t, reduced, 1000)
}

// TestWrongReductionsAreSeen makes sure that the test above would notice what must not be left out.
func TestWrongReductionsAreSeen(t *testing.T) {
	for key, without := range map[string]string{
		"max_split_size_mb:21":                                              "",
		"large_segment_size_mb:12":                                          "",
		"roundup_power2_divisions:4":                                        "",
		"expandable_segments:True":                                          "",
		"per_process_memory_fraction:0.75":                                  "",
		"garbage_collection_threshold:0.3,per_process_memory_fraction:0.75": "per_process_memory_fraction:0.75",
		"max_split_size_mb:21,max_non_split_rounding_mb:64":                 "max_split_size_mb:21",
	} {
		seen := false
		for seed := uint64(0); seed < 400 && !seen; seed++ {
			d := drawDemand(rand.New(rand.NewPCG(seed, 1)))
			seen = differ(t, seed, caching.Config{Conf: key}, caching.Config{Conf: without}, d) != nil
		}
		require.True(t, seen, "without %q nothing differs from %q", without, key)
	}
}

func TestReducedLeavesOutWhatMakesNoDifference(t *testing.T) {
	for name, c := range map[string]struct {
		conf, want string
		sizes      []device.Size
	}{
		"nothing":                      {"", "", []device.Size{512}},
		"host memory":                  {"pinned_use_background_threads:True", "", []device.Size{512}},
		"a threshold without a bound":  {"garbage_collection_threshold:0.8", "", []device.Size{512}},
		"a segment that nobody shares": {"large_segment_size_mb:64", "", []device.Size{512, 12 * device.MiB}},
		"a segment that somebody uses": {"large_segment_size_mb:64", "large_segment_size_mb:64",
			[]device.Size{2 * device.MiB}},
		"a split size above all":    {"max_split_size_mb:128", "", []device.Size{100 * device.MiB}},
		"a split size that matters": {"max_split_size_mb:100", "max_split_size_mb:100", []device.Size{100 * device.MiB}},
		"steps on powers of two": {"roundup_power2_divisions:8", "",
			[]device.Size{512, 4096, device.MiB, 64 * device.MiB}},
		"growing is kept": {"expandable_segments:True,garbage_collection_threshold:0.8",
			"expandable_segments:True", []device.Size{512}},
	} {
		full, err := caching.Config{Conf: c.conf}.WithDefaults()
		require.NoError(t, err)
		require.Equal(t, c.want, full.Reduced(setting.Demand{Sizes: c.sizes}).Conf, name)
	}
}

// TestUnboundConfigurationsNeedWhatTheyHold replays on a device that has exactly what is held at
// most on an ample one.
func TestUnboundConfigurationsNeedWhatTheyHold(t *testing.T) {
	unbound := 0
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 1))
		c, d := draw(r), drawDemand(r)
		full, err := c.WithDefaults()
		if err != nil || !full.Unbound() {
			continue
		}
		unbound++
		want, used := churn(t, seed, full, d, ample)
		got, _ := churn(t, seed, full, d, used.PeakHeld)
		require.Equal(t, want, got, "seed %d: %+v", seed, full)
	}
	require.Greater(t, unbound, 100)
}

// TestBoundsThatAreNotReached replays configurations with a bound or a threshold and without, where
// the one without holds too little to reach either.
func TestBoundsThatAreNotReached(t *testing.T) {
	reached, not := 0, 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		c, d := draw(r), drawDemand(r)
		full, err := c.WithDefaults()
		if err != nil {
			continue
		}
		loosely := d
		loosely.Held, loosely.Capacity = 1, ample
		without := full.Reduced(loosely)
		if without == full.Reduced(d) {
			continue
		}
		want, used := churn(t, seed, without, d, ample)
		d.Held, d.Capacity = used.PeakHeld, used.PeakHeld+used.PeakHeld/100*device.Size(r.IntN(300))
		if full.Reduced(d) != without {
			reached++
			continue
		}
		not++
		got, other := churn(t, seed, full, d, d.Capacity)
		require.Equal(t, want, got, "seed %d: %+v", seed, full)
		require.Equal(t, used.Calls, other.Calls, "seed %d: %+v", seed, full)
	}
	require.Greater(t, reached, 100)
	require.Greater(t, not, 100)
}

// ample is the capacity of a device that no test exhausts.
const ample = 1 << 50

// churn allocates and frees on a device of some bytes, and returns all blocks and
// the usage of the device.
func churn(t *testing.T, seed uint64, c caching.Config, d setting.Demand, capacity device.Size) (
	all []alloc.Block, used device.Usage) {
	t.Helper()
	dev, err := sim.New(sim.Config{Capacity: capacity})
	require.NoError(t, err)
	a, err := caching.New(dev, c)
	require.NoError(t, err)
	defer func() { require.NoError(t, a.Close()) }()
	r := rand.New(rand.NewPCG(seed, 2))
	var live []device.Addr
	for range 200 {
		if len(live) > 0 && r.IntN(100) < 45 {
			k := r.IntN(len(live))
			require.NoError(t, a.Free(live[k]))
			live = slices.Delete(live, k, k+1)
			continue
		}
		b, err := a.Alloc(alloc.Request{Size: d.Sizes[r.IntN(len(d.Sizes))], Stream: device.Stream(r.IntN(2))})
		require.NoError(t, err)
		live, all = append(live, b.Addr), append(all, b)
	}
	return all, dev.Usage()
}

func TestExport(t *testing.T) {
	for _, c := range []struct {
		c    caching.Config
		want []string
		from string
		ok   bool
	}{
		{caching.Config{}, nil, "", true},
		{caching.Config{Conf: "expandable_segments:True"}, []string{"PYTORCH_ALLOC_CONF=expandable_segments:True"},
			"2.1", true},
		{caching.Config{Conf: "max_split_size_mb:64", Rules: caching.Rules26},
			[]string{"PYTORCH_ALLOC_CONF=max_split_size_mb:64"}, "", true},
		{caching.Config{Conf: "large_segment_size_mb:32"}, []string{"PYTORCH_ALLOC_CONF=large_segment_size_mb:32"},
			"2.11", true},
		{caching.Config{Conf: "per_process_memory_fraction:0.5"},
			[]string{"PYTORCH_ALLOC_CONF=per_process_memory_fraction:0.5"}, "2.11", true},
		{caching.Config{MemoryFraction: 0.5}, nil, "", true},
		{caching.Config{MemoryFraction: 0.5, Conf: "max_split_size_mb:64", Rules: caching.Rules26},
			[]string{"PYTORCH_ALLOC_CONF=max_split_size_mb:64"}, "", true},
		{caching.Config{Mended: true}, nil, "", false},
	} {
		full, err := c.c.WithDefaults()
		require.NoError(t, err)
		exports := full.Exports()
		require.Equal(t, c.ok, len(exports) == 1, "%+v", c.c)
		if !c.ok {
			require.Empty(t, exports)
			continue
		}
		e := exports[0]
		require.Equal(t, "PyTorch", e.Framework)
		require.Equal(t, c.want, e.Environment)
		require.Equal(t, c.from, e.From)
		require.Equal(t, len(c.want) > 0 && c.from != "2.11", len(e.Before) > 0)
		if c.c.MemoryFraction != 0 {
			require.Equal(t, []string{"per_process_memory_fraction=0.5"}, e.Options)
			require.Equal(t, []string{"torch.cuda.set_per_process_memory_fraction(0.5)"}, e.Python)
		} else {
			require.Empty(t, e.Options)
		}
	}
}
