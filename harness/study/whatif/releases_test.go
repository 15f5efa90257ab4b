package whatif_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/vectors"
	"github.com/vramyard/vramyard/strategies"
	"github.com/vramyard/vramyard/strategies/caching"
)

// allReleases returns a configuration under the rules of every range of releases.
func allReleases(t *testing.T, c caching.Config, d setting.Demand) whatif.Releases {
	t.Helper()
	of := whatif.Releases{Settings: "with these settings"}
	for _, rules := range caching.RuleSets() {
		c.Rules = rules.Name
		text, err := json.Marshal(c)
		require.NoError(t, err)
		r := whatif.ReleaseRange{From: rules.From, To: rules.To, Changes: rules.ChangesFor(c, d)}
		if r.Setup, err = strategies.All().Lookup("caching", text); err != nil {
			r.Refused = err.Error()
		}
		of.Ranges = append(of.Ranges, r)
	}
	return of
}

func acrossReleases(t *testing.T, src trace.Source, c caching.Config, o whatif.Options) *whatif.Result {
	t.Helper()
	w, err := whatif.Survey(src)
	require.NoError(t, err)
	of := allReleases(t, c, w.Demand)
	rec := whatif.RecordedIn(w)
	rec.Setup = of.Ranges[len(of.Ranges)-1].Setup
	r, err := whatif.AcrossReleases(t.Context(), w, rec, []whatif.Releases{of}, o)
	require.NoError(t, err)
	require.Len(t, r.Releases, len(of.Ranges))
	return r
}

// placed matches the line of a request in the answers of a release.
var placed = regexp.MustCompile(`^\d+ `)

// TestFirstDifferenceIsThatOfTheReleases finds the first request that two releases of PyTorch
// placed differently on a device, as they did it themselves.
func TestFirstDifferenceIsThatOfTheReleases(t *testing.T) {
	_, all, err := vectors.Releases()
	require.NoError(t, err)
	own, err := vectors.Torch()
	require.NoError(t, err)
	expected := func(id string) []string {
		for _, v := range slices.Concat(all, own) {
			if v.ID() == id {
				lines, err := v.Expected()
				require.NoError(t, err)
				return slices.DeleteFunc(lines, func(l string) bool { return !placed.MatchString(l) })
			}
		}
		t.Fatal(id)
		return nil
	}
	for _, name := range []string{"small_mixed", "max_split_64", "expandable_kv_growth", "fuzz_14"} {
		before, after := expected("torch_2.11/"+name), expected("torch_2.12.1/"+name)
		i := slices.IndexFunc(own, func(v vectors.Vector) bool { return v.ID() == "torch_2.11/"+name })
		v := own[i]
		events, err := v.Trace()
		require.NoError(t, err)
		var c caching.Config
		require.NoError(t, json.Unmarshal(v.Config, &c))
		cfg, err := sim.ParseConfig(v.Sim)
		require.NoError(t, err)
		o := whatif.Options{Device: cfg, Card: cfg.Capacity}
		o.Device.Capacity = 0
		got := acrossReleases(t, events, c, o).Releases[2].Differs

		k := 0
		for before[k] == after[k] {
			k++
		}
		event := 0
		for n := 0; ; event++ {
			if events.Events[event].Kind != trace.Alloc {
				continue
			}
			if n == k {
				break
			}
			n++
		}
		require.NotNil(t, got, name)
		require.Equal(t, event, got.Event, name)
		require.Equal(t, events.Events[event].Size, got.Size, name)
		require.Equal(t, cfg.Capacity, got.On, name)
	}
}

// TestReleasesThatDifferOnSmallerDevicesOnly has a request that only fits if the cache was emptied
// for it, which 2.13 does while requests go to a MemPool.
func TestReleasesThatDifferOnSmallerDevicesOnly(t *testing.T) {
	const mempool = "a 1 24MiB\nf 1\npool begin 1\na 2 30MiB\npool end 1\n"
	r := acrossReleases(t, read(t, mempool), caching.Config{}, whatif.Options{})
	last := r.Releases[len(r.Releases)-1]
	require.Equal(t, 30*device.MiB, last.Need)
	require.Equal(t, last.Label, r.Pools.Label, "of the recorded settings")
	require.Equal(t, 54*device.MiB, r.Releases[2].Need)
	require.Equal(t, last.Peak, r.Releases[2].Peak, "with room to spare nothing is released")
	require.Equal(t, &whatif.Difference{Event: 3, Size: 30 * device.MiB, On: 30 * device.MiB, Refused: "before"},
		last.Differs)
	require.Equal(t, "Releases 2.4 to 2.12 need 24.00 MiB more than 2.13 to 2.15 with these settings: 54.00 MiB, not "+
		"30.00 MiB.", r.Answer.Text[0])
	require.Contains(t, strings.Join(r.Answer.Changes, "\n"), "2.13 completes frees that wait for streams and empties")
}

// TestNoReleaseMakesADifference has no choice to make.
func TestNoReleaseMakesADifference(t *testing.T) {
	r := acrossReleases(t, read(t, "a 1 24MiB\nf 1\na 2 30MiB\n"), caching.Config{}, whatif.Options{})
	require.Equal(t, whatif.ByRelease, r.Answer.Verdict)
	require.Equal(t, []string{"No release makes a difference with these settings: releases 2.4 to 2.15 need 30.00 MiB."},
		r.Answer.Text)
	for i, result := range r.Releases {
		require.Nil(t, result.Differs)
		require.Equal(t, 30*device.MiB, result.Need)
		require.Equal(t, 54*device.MiB, result.Peak)
		require.True(t, result.Exact)
		if i > 0 {
			require.Contains(t, r.Answer.Changes[i-1], "every request is placed alike")
		}
	}
	require.Equal(t, "2.4 to 2.11 with these settings", r.Runs[0].Label)
}

// TestReleasesWithoutASetting has a key that 2.9 does not know.
func TestReleasesWithoutASetting(t *testing.T) {
	c := caching.Config{Conf: "large_segment_size_mb:32"}
	r := acrossReleases(t, read(t, "a 1 4MiB\na 2 24MiB\n"), c, whatif.Options{})
	require.Contains(t, r.Releases[0].Refused, "no such key")
	require.Zero(t, r.Releases[0].Peak)
	require.Nil(t, r.Releases[1].Differs)
	require.True(t, slices.ContainsFunc(r.Answer.Text, func(s string) bool {
		return strings.HasPrefix(s, "Releases 2.4 to 2.9 refuse these settings: ")
	}), r.Answer.Text)
	require.Len(t, r.Answer.Changes, 2)
}

// TestARefusalSeparatesItsNeighbours has a range that refuses the settings between two that need
// the same.
func TestARefusalSeparatesItsNeighbours(t *testing.T) {
	w, err := whatif.Survey(read(t, "a 1 24MiB\n"))
	require.NoError(t, err)
	of := allReleases(t, caching.Config{}, w.Demand)
	of.Ranges[1].Setup, of.Ranges[1].Refused = setting.Setup{}, "they came with 2.12"
	r, err := whatif.AcrossReleases(t.Context(), w, whatif.RecordedIn(w), []whatif.Releases{of}, whatif.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{
		"No release makes a difference with these settings: releases 2.4 to 2.9 and 2.12 to 2.15 need 24.00 MiB.",
		"Releases 2.10 to 2.11 refuse these settings: they came with 2.12.",
	}, r.Answer.Text)
}
