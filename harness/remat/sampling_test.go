package remat

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// samples returns many samples of n candidates.
func samples(n int, c Config) [][]int32 {
	all := make([]int32, n)
	for i := range all {
		all[i] = int32(i)
	}
	r, list := &runner{c: c, random: workload.NewRand(1)}, [][]int32{}
	for range 500 {
		list = append(list, slices.Clone(r.sample(all)))
	}
	return list
}

// seen returns how often each candidate was looked at.
func seen(n int, samples [][]int32) []int {
	counts := make([]int, n)
	for _, list := range samples {
		for _, s := range list {
			counts[s]++
		}
	}
	return counts
}

func TestSamplesReachEveryCandidate(t *testing.T) {
	const n = 100
	for _, c := range []Sampling{{Kind: SampleStride}, {Kind: SampleMGE}, {Kind: SampleK, K: 7}} {
		for of, times := range seen(n, samples(n, Config{Sampling: c})) {
			require.Positive(t, times, "%v never looks at %d", c, of)
		}
	}
	for of, times := range seen(n, samples(n, Config{Sampling: Sampling{Kind: SampleMGE}, Quirks: QuirkHalf})) {
		if of > 9*10 {
			require.Zero(t, times, "ten looks with steps below ten cannot come to %d", of)
		}
	}
}

func TestSamplesHaveTheirSize(t *testing.T) {
	looks, twice := 0, 0
	for _, list := range samples(100, Config{Sampling: Sampling{Kind: SampleMGE}}) {
		require.Len(t, list, 10)
		for i := 1; i < 10; i++ {
			require.Equal(t, list[i-1]+10, list[i])
		}
	}
	for _, list := range samples(100, Config{Sampling: Sampling{Kind: SampleMGE}, Quirks: QuirkHalf}) {
		require.Len(t, list, 10)
		if len(slices.Compact(list)) < 10 {
			twice++
		}
	}
	require.Positive(t, twice, "steps of 0 look at one twice")
	for _, list := range samples(100, Config{Sampling: Sampling{Kind: SampleStride}}) {
		looks += len(list)
		require.True(t, slices.IsSorted(list))
		require.Len(t, slices.Compact(slices.Clone(list)), len(list))
	}
	require.InDelta(t, 2*10*500, looks, 500*3, "about twice the root")
	for _, list := range samples(100, Config{Sampling: Sampling{Kind: SampleK, K: 7}}) {
		slices.Sort(list)
		require.Len(t, slices.Compact(list), 7)
	}
	for _, list := range samples(3, Config{Sampling: Sampling{Kind: SampleK, K: 7}}) {
		require.Len(t, list, 3)
	}
	for _, kind := range []SampleKind{SampleNone, SampleStride, SampleMGE} {
		for _, list := range samples(1, Config{Sampling: Sampling{Kind: kind}}) {
			require.Equal(t, []int32{0}, list)
		}
	}
}

// three has three candidates of 10, 20 and 1000 bytes, of which the smallest are the cheapest.
var three = example{
	{"k", []device.Size{1}, nil},
	{"small", []device.Size{10}, []string{"k"}},
	{"middle", []device.Size{20}, []string{"k"}},
	{"large", []device.Size{1000}, []string{"k"}},
}

func TestSmallStoragesAreEvictedWhenNothingElseIsLeft(t *testing.T) {
	for least, want := range map[Minimum][]string{
		{}:            {"small", "middle", "large"},
		{Size: 9}:     {"small", "middle", "large"},
		{Size: 10}:    {"middle", "large", "small"},
		{Size: 20}:    {"large", "small", "middle"},
		{Size: 9999}:  {"small", "middle", "large"}, // all are too small
		{Percent: 2}:  {"small", "middle", "large"}, // of 343
		{Percent: 4}:  {"middle", "large", "small"},
		{Percent: 90}: {"large", "middle", "small"}, // then of 15
	} {
		st := three.play(t, &Counter{Budget: Unlimited}, Config{Heuristic: "lru", MinEvictee: least})
		got := []string{}
		for range want {
			v := st.victim()
			st.evict(v)
			got = append(got, v)
		}
		require.Equal(t, want, got, "%+v", least)
	}
}

func TestSmallStoragesStayResident(t *testing.T) {
	st := three.play(t, &Counter{Budget: Unlimited}, Config{Heuristic: "lru", MinEvictee: Minimum{Size: 20, Cut: true}})
	require.Equal(t, []int32{st.storage("large")}, st.pool.list())
}

func TestSmallStoragesPinNothing(t *testing.T) {
	for cut, want := range map[bool]device.Size{true: 10, false: 110} {
		var b Builder
		k, err := b.Constant(100)
		require.NoError(t, err)
		_, err = b.Call(Call{Args: []Tensor{k}, Outputs: []Output{{Size: 10, Alias: NoAlias}}})
		require.NoError(t, err)
		require.NoError(t, b.Release(k)) // nothing that can be made again is made of it, if cut
		m := &Counter{Budget: Unlimited}
		_, err = Run(b.Schedule(), m, Config{Heuristic: "mge", Liveness: "mge-refcount",
			MinEvictee: Minimum{Size: 10, Cut: cut}})
		require.NoError(t, err)
		require.Equal(t, want, m.used)
	}
}
