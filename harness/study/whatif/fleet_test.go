package whatif_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/harness/trace/flat"
	"github.com/vramyard/vramyard/strategies"
)

// rankOf searches a rank whose program allocates blocks of some sizes, frees most of them, and
// requests a large one.
func rankOf(t *testing.T, name, header string, blocks, large int, grid []setting.Setup, o whatif.Options) whatif.Rank {
	t.Helper()
	var b strings.Builder
	b.WriteString(header)
	for i := range blocks {
		fmt.Fprintf(&b, "a %d 4MiB\n", i)
	}
	for i := range blocks {
		if i%5 != 0 {
			fmt.Fprintf(&b, "f %d\n", i)
		}
	}
	fmt.Fprintf(&b, "a 1000 %dMiB\n", large)
	w, err := whatif.Survey(read(t, b.String()))
	require.NoError(t, err)
	rec := whatif.RecordedIn(w)
	if strings.Contains(header, "config=") {
		rec.Setup, err = strategies.All().Lookup("caching", rec.Config)
		require.NoError(t, err)
	}
	r, err := whatif.Search(t.Context(), w, rec, grid, o)
	require.NoError(t, err)
	return whatif.Rank{Name: name, Result: r}
}

func tableOf(t *testing.T, table *flat.Table) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, table.WriteCSV(&b))
	return b.String()
}

func fleetJSON(t *testing.T, f *whatif.Fleet) string {
	t.Helper()
	text, err := json.Marshal(f)
	require.NoError(t, err)
	return string(text)
}

const (
	plain    = "# vramyard-trace 1\n# framework=PyTorch\n"
	recorded = plain + "# config={\"conf\":\"\"}\n"
	unsplit  = plain + "# config={\"conf\":\"max_split_size_mb:64\"}\n"
)

// TestFleetOfOneRankAnswersAsItsSearch merges one search with itself, once and twice.
func TestFleetOfOneRankAnswersAsItsSearch(t *testing.T) {
	grid := quick(t)
	for _, header := range []string{"", plain, recorded, unsplit} {
		for _, card := range []device.Size{0, 100 * device.MiB, 190 * device.MiB, 300 * device.MiB} {
			r := rankOf(t, "a", header, 40, 60, grid, whatif.Options{Card: card})
			one := whatif.FleetOf([]whatif.Rank{r}, grid, false)
			require.Equal(t, r.Result.Answer, one.All.Answer)
			require.Equal(t, tableOf(t, whatif.Table(r.Result)), tableOf(t, whatif.Table(one.All)))
			require.Empty(t, one.Text)
			two := whatif.FleetOf([]whatif.Rank{r, {Name: "b", Result: r.Result}}, grid, false)
			require.Equal(t, r.Result.Answer.Text, two.All.Answer.Text)
			require.Empty(t, two.Uneven)
			require.Equal(t, one.Ranks[0].Need, two.Median)
		}
	}
}

// TestFleetTakesTheRankThatNeedsMost compares every setting with the searches of the ranks, in any
// order of the ranks.
func TestFleetTakesTheRankThatNeedsMost(t *testing.T) {
	grid := quick(t)
	o := whatif.Options{Card: 200 * device.MiB, Full: true}
	ranks := []whatif.Rank{
		rankOf(t, "run_10", recorded, 40, 60, grid, o), rankOf(t, "run_9", recorded, 30, 130, grid, o),
		rankOf(t, "run_2", recorded, 45, 10, grid, o),
	}
	f := whatif.FleetOf(ranks, grid, false)
	require.Equal(t, "run_2", f.Ranks[0].Name)
	require.Equal(t, "run_10", f.Ranks[2].Name)
	for _, p := range f.All.Runs {
		var most device.Size
		carried := true
		for _, r := range ranks {
			i := slices.IndexFunc(r.Result.Runs, func(q whatif.Point) bool {
				return q.Label == p.Label || slices.Contains(q.Same, p.Label)
			})
			most = max(most, r.Result.Runs[i].Need())
			carried = carried && *r.Result.Runs[i].Carried
		}
		require.Equal(t, most, p.Need(), p.Label)
		require.Equal(t, &most, p.MinCapacity, p.Label)
		require.Equal(t, carried, *p.Carried, p.Label)
	}
	require.Equal(t, "run_9", f.Decides)
	for range 5 {
		rand.Shuffle(len(ranks), func(i, k int) { ranks[i], ranks[k] = ranks[k], ranks[i] })
		require.Equal(t, fleetJSON(t, f), fleetJSON(t, whatif.FleetOf(ranks, grid, false)))
	}
}

// TestFleetSaysWhatIsUneven has ranks with the same live bytes, and ranks with the same holes.
func TestFleetSaysWhatIsUneven(t *testing.T) {
	grid := quick(t)
	o := whatif.Options{}
	small := rankOf(t, "a", recorded, 10, 200, grid, o)
	for want, ranks := range map[whatif.Uneven][]whatif.Rank{
		whatif.UnevenLive: {small, rankOf(t, "b", recorded, 10, 300, grid, o), rankOf(t, "c", recorded, 10, 200, grid, o)},
		whatif.UnevenRest: {small, rankOf(t, "b", recorded, 50, 170, grid, o), rankOf(t, "c", recorded, 10, 200, grid, o)},
		"":                {small, rankOf(t, "b", recorded, 10, 201, grid, o), rankOf(t, "c", recorded, 10, 200, grid, o)},
	} {
		f := whatif.FleetOf(ranks, grid, false)
		require.Equal(t, "b", f.Decides)
		require.Equal(t, want, f.Uneven, f.Text)
		first := "b decides the card: it needs "
		if want == "" {
			first = "No rank stands out: of 3 ranks b needs the most with the recorded settings, "
		}
		require.True(t, strings.HasPrefix(f.Text[0], first), f.Text)
	}
}

// TestFleetOfDifferentRanks has ranks with other settings, of another framework, and one that
// cannot answer.
func TestFleetOfDifferentRanks(t *testing.T) {
	grid := quick(t)
	o := whatif.Options{Card: 300 * device.MiB}
	a, b := rankOf(t, "a", recorded, 40, 60, grid, o), rankOf(t, "b", unsplit, 40, 60, grid, o)
	f := whatif.FleetOf([]whatif.Rank{a, b}, grid, false)
	require.Equal(t, whatif.Carried, f.All.Answer.Verdict)
	i := slices.IndexFunc(f.All.Runs, func(p whatif.Point) bool { return p.Recorded })
	require.Equal(t, "as recorded in each rank", f.All.Runs[i].Label)
	require.Equal(t, max(f.Ranks[0].Need, f.Ranks[1].Need), f.All.Runs[i].Need())
	require.Contains(t, f.All.Answer.Text[1], "With the recorded settings the run completes on a card of 300.00 MiB")
	require.Empty(t, f.All.Answer.Constraints, "all permit the recorded settings")
	unknown := rankOf(t, "c", plain, 40, 60, grid, o)
	f = whatif.FleetOf([]whatif.Rank{a, b, unknown, rankOf(t, "d", unsplit, 40, 60, grid, o)}, grid, false)
	require.Contains(t, f.Text, "The recorded settings differ: the defaults of PyTorch in a; "+
		"PYTORCH_ALLOC_CONF=max_split_size_mb:64 in b, d; none that is known in c.")
	require.Contains(t, f.All.Answer.Sure, "A file has no addresses, so the accuracy of the replay is unknown.")
	require.NotContains(t, f.All.Answer.Sure, "A file records neither the allocator nor its settings.")
	f = whatif.FleetOf([]whatif.Rank{a, rankOf(t, "b", recorded, 40, 60, grid, o)}, grid, false)
	require.NotContains(t, strings.Join(f.Text, " "), "settings differ")

	other := rankOf(t, "c", "# vramyard-trace 1\n# framework=TensorFlow\n", 40, 60, grid, o)
	f = whatif.FleetOf([]whatif.Rank{a, other}, grid, false)
	require.Empty(t, f.All.Answer.Environment)
	require.Contains(t, strings.Join(f.Text, " "), "The ranks are recorded by PyTorch and TensorFlow, so no setting ")

	cut := rankOf(t, "d", recorded+"# wrapped=the ring is full\n", 40, 60, grid, o)
	require.NotEmpty(t, cut.Result.Cannot)
	f = whatif.FleetOf([]whatif.Rank{a, b, cut}, grid, false)
	require.Contains(t, strings.Join(f.Text, " "), "1 of 3 ranks cannot answer and are left out: d.")
	require.NotEqual(t, whatif.CannotTell, f.All.Answer.Verdict)
	f = whatif.FleetOf([]whatif.Rank{cut}, grid, false)
	require.Equal(t, cut.Result.Answer, f.All.Answer)
	require.Empty(t, f.Decides)

	f = whatif.FleetOf([]whatif.Rank{a, rankOf(t, "huge", recorded, 1, 3<<20, grid, o)}, grid, false)
	require.Equal(t, whatif.TooLittle, f.All.Answer.Verdict)
	require.Empty(t, f.Decides)
	require.Contains(t, f.Text[0], "is unknown")
}

// TestFleetPermitsWhatEveryRankMay has recorded settings that differ, and a rule for one of them.
func TestFleetPermitsWhatEveryRankMay(t *testing.T) {
	grid := quick(t)
	const rounded = plain + "# config={\"conf\":\"roundup_power2_divisions:8\"}\n"
	for feature, kind := range map[string]whatif.RuleKind{"stats": "", "rdma": "", "weight-loading": whatif.Ignored} {
		o := whatif.Options{Needs: whatif.Needs{Features: []string{feature}}}
		a, b := rankOf(t, "a", recorded, 40, 60, grid, o), rankOf(t, "b", rounded, 40, 60, grid, o)
		f := whatif.FleetOf([]whatif.Rank{a, b}, grid, false)
		i := slices.IndexFunc(f.All.Runs, func(p whatif.Point) bool { return p.Recorded })
		require.Equal(t, kind, f.All.Runs[i].Permit, feature)
	}
}

// TestFleetHasNoPoolsOfOneRank has two ranks with private pools.
func TestFleetHasNoPoolsOfOneRank(t *testing.T) {
	grid := quick(t)
	var ranks []whatif.Rank
	for _, name := range []string{"a", "b"} {
		r := rankOf(t, name, recorded+"pool begin 7\na 5000 24MiB\npool end 7\n", 10, 60, grid, whatif.Options{})
		require.NotNil(t, r.Result.Pools)
		ranks = append(ranks, r)
	}
	require.Nil(t, whatif.FleetOf(ranks, grid, true).All.Pools)
	require.NotNil(t, whatif.FleetOf(ranks[:1], grid, true).All.Pools)
}

// TestFleetWithoutRecordedSettings compares the ranks under the setting of the answer.
func TestFleetWithoutRecordedSettings(t *testing.T) {
	grid := quick(t)
	for header, want := range map[string]string{
		"":    "with the strategy ",
		plain: "without any setting",
	} {
		o := whatif.Options{Card: 300 * device.MiB}
		f := whatif.FleetOf([]whatif.Rank{
			rankOf(t, "a", header, 40, 60, grid, o), rankOf(t, "b", header, 40, 30, grid, o),
		}, grid, false)
		require.True(t, strings.HasPrefix(f.Ranks[0].Setting, want), f.Ranks[0].Setting)
		require.Equal(t, "a", f.Decides)
	}
}

func TestNaturalOrder(t *testing.T) {
	sorted := []string{"", "01", "1", "2", "10", "99999999999999999999999", "a", "run", "run_2", "run_10", "run_10b",
		"run_x"}
	for i, a := range sorted {
		for k, b := range sorted {
			c := whatif.NaturalOrder(a, b)
			require.Equal(t, i < k, c < 0, "%q %q", a, b)
			require.Equal(t, i == k, c == 0, "%q %q", a, b)
		}
	}
}
