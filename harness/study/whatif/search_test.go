package whatif_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/internal/units"
	"github.com/vramyard/vramyard/strategies"
)

// quick returns the grid of the command.
func quick(t testing.TB) []setting.Setup {
	t.Helper()
	text, err := os.ReadFile("../../../cli/grids/quick.yaml")
	require.NoError(t, err)
	setups, err := whatif.ReadGrid(bytes.NewReader(text), strategies.All())
	require.NoError(t, err)
	return setups
}

// search asks what a trace would have needed, as a program of PyTorch without settings.
func search(t *testing.T, src trace.Source, grid []setting.Setup, o whatif.Options) *whatif.Result {
	t.Helper()
	w, err := whatif.Survey(src)
	require.NoError(t, err)
	rec := whatif.RecordedIn(w)
	o.Catalogue = strategies.All()
	rec.Setup, err = o.Catalogue.Lookup("caching", nil)
	require.NoError(t, err)
	r, err := whatif.Search(t.Context(), w, rec, grid, o)
	require.NoError(t, err)
	for i := range r.Runs {
		r.Runs[i].NsPerOp = 0
	}
	return r
}

// scattered leaves a block of 4 MiB in every segment that PyTorch takes for five of them, and is
// refused 60 MiB.
func scattered() string {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, "a %d 4MiB\n", i)
	}
	for i := range 40 {
		if i%5 != 0 {
			fmt.Fprintf(&b, "f %d\n", i)
		}
	}
	return b.String() + "refused 60MiB\n"
}

// TestMinimaMatchCompare holds minima against a search that shares no probe with this one.
func TestMinimaMatchCompare(t *testing.T) {
	for _, card := range []device.Size{0, 190 * device.MiB, 300 * device.MiB, 64 * device.MiB} {
		r := search(t, read(t, scattered()), quick(t), whatif.Options{Card: card})
		require.Equal(t, 160*device.MiB, r.LowerBound)
		w, err := whatif.Survey(read(t, scattered()))
		require.NoError(t, err)
		for _, p := range r.Runs {
			s, err := strategies.All().Lookup(p.Strategy, configOf(t, p.Config))
			require.NoError(t, err)
			want, err := compare.Compare(t.Context(), []trace.Source{w}, []setting.Setup{s}, compare.Options{Quick: true})
			require.NoError(t, err)
			require.Equal(t, want.Runs[0].MinCapacity, p.MinCapacity, "%s on %v", p.Label, card)
			if p.MinCapacity != nil && card >= r.LowerBound {
				require.Equal(t, *p.MinCapacity <= card, *p.Carried, "%s on %v", p.Label, card)
			}
		}
	}
}

// configOf returns a configuration without the limit that a capacity gave it.
func configOf(t *testing.T, raw json.RawMessage) json.RawMessage {
	t.Helper()
	var fields map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &fields))
	delete(fields, "limit")
	text, err := json.Marshal(fields)
	require.NoError(t, err)
	return text
}

func TestEquivalentSettingsAreReplayedOnce(t *testing.T) {
	r := search(t, read(t, scattered()), quick(t), whatif.Options{})
	require.Equal(t, 32, r.Points, "thirty-one, and the recorded one")
	alike := len(r.Runs)
	for _, p := range r.Runs {
		alike += len(p.Same)
		if p.Recorded {
			require.Equal(t, "caching", p.Label)
			require.Contains(t, p.Same, "caching garbage_collection_threshold:0.8")
			require.Contains(t, p.Same, "caching max_split_size_mb:64")
		}
	}
	require.Equal(t, 31, alike, "the recorded settings are one of the grid")
}

// TestSettingsThatFollowHaveTheirOwnFigures compares settings that take another one's replays with
// searches of their own, on cards on which the threshold and the limit are reached and not.
func TestSettingsThatFollowHaveTheirOwnFigures(t *testing.T) {
	for card, follow := range map[device.Size]int{
		190 * device.MiB: 0, 264 * device.MiB: 0, 300 * device.MiB: 1, device.GiB: 2,
	} {
		all, following := search(t, read(t, scattered()), quick(t), whatif.Options{Card: card}), 0
		for _, p := range all.Runs {
			if !strings.Contains(p.Label, "fraction") && !strings.HasPrefix(p.Label, "async") {
				continue
			}
			w, err := whatif.Survey(read(t, scattered()))
			require.NoError(t, err)
			alone, err := whatif.Search(t.Context(), w, whatif.Recorded{}, []setting.Setup{p.Setup(0)},
				whatif.Options{Card: card})
			require.NoError(t, err)
			want, got := alone.Runs[0].Run, p.Run
			want.NsPerOp, got.NsPerOp = 0, 0
			if got.MetadataBytes == nil {
				want.MetadataBytes = nil
				following++
			}
			require.Equal(t, want, got, "%s on %v", p.Label, card)
		}
		require.Equal(t, follow, following, card)
	}
}

// TestRecordedSettingsAreMeasuredOnce compares the cost of a search with and without the check that
// the recorded settings hold about as much in the replay as they did in the recorded run.
func TestRecordedSettingsAreMeasuredOnce(t *testing.T) {
	w, err := whatif.Survey(read(t, scattered()))
	require.NoError(t, err)
	for _, o := range []whatif.Options{{}, {Card: 300 * device.MiB}, {Full: true}, {Full: true, Card: 300 * device.MiB}} {
		rec := whatif.RecordedIn(w)
		rec.Capacity = o.Card
		rec.Setup, err = strategies.All().Lookup("caching", nil)
		require.NoError(t, err)
		var replayed []uint64
		for range 2 {
			r, err := whatif.Search(t.Context(), w, rec, quick(t)[:4], o)
			require.NoError(t, err)
			require.Empty(t, r.Cannot)
			replayed = append(replayed, r.Replayed)
			rec.Peak = 220 * device.MiB
		}
		require.Equal(t, replayed[0], replayed[1], "%+v", o)
	}
}

func TestSameResultOnAnyNumberOfWorkers(t *testing.T) {
	tr, err := workload.OpenRecording("cpu_resnet50_train")
	require.NoError(t, err)
	grid := quick(t)[:12]
	if testing.Short() { // the workers are the same for less
		tr, grid = long(t, 2_000), grid[:4]
	}
	for _, full := range []bool{false, true} {
		if full { // a search of one trial has many capacities to replay at once
			tr = long(t, 2_000)
		}
		var want []byte
		for _, workers := range []int{1, 2, 7} {
			o := whatif.Options{Workers: workers, Full: full, Card: tr.LowerBound() + 30*device.MiB}
			got, err := json.Marshal(search(t, tr, grid, o))
			require.NoError(t, err)
			if want == nil {
				want = got
			}
			require.Equal(t, string(want), string(got), "%d workers", workers)
		}
	}
}

// long is a trace of n events with memory to fragment.
func long(t *testing.T, n int) *trace.Trace {
	t.Helper()
	b := trace.NewBuilder(trace.Header{Name: "long"})
	for i := range n / 2 {
		require.NoError(t, b.Alloc(uint64(i), device.Size(1+i*7919%31)*device.MiB, 0))
		if i >= 50 {
			require.NoError(t, b.Free(uint64(i-50)))
		}
	}
	return b.Trace()
}

// TestBudgetIsKept takes a trace that is too long to search everything, and makes sure that
// something was left undone, that nothing was overspent, and that what was left shows as a bracket.
func TestBudgetIsKept(t *testing.T) {
	tr := long(t, 400_000)
	r := search(t, tr, quick(t), whatif.Options{})
	n := uint64(tr.Head().Events)
	require.Equal(t, n*uint64(r.Points)+10_000_000-7*n, r.Budget)
	require.LessOrEqual(t, r.Replayed+r.Spared, r.Budget)
	require.Greater(t, r.Replayed+r.Spared, r.Budget-n, "as long as a replay can be paid for, one is made")
	brackets := 0
	for _, p := range r.Runs {
		if p.MinCapacity == nil && p.CompletesAt != nil {
			brackets++
		}
	}
	require.NotZero(t, brackets)
}

// TestKnownOutcomesAreNotReplayed counts the replays of a recording whose memory grows to its end,
// on a card that is too small: most searches for minima ask for capacities between a peak and a
// refusal of an earlier replay.
func TestKnownOutcomesAreNotReplayed(t *testing.T) {
	src, err := formats.Open("../../../examples/oom/leftovers.trace.gz", formats.Options{})
	require.NoError(t, err)
	r := search(t, src, quick(t), whatif.Options{Card: 16 * device.GiB})
	require.Less(t, 2*r.Replayed, r.Spared+r.Replayed)
}

func TestFullGridSearchesToTheEnd(t *testing.T) {
	r := search(t, read(t, scattered()), quick(t)[:4], whatif.Options{Full: true, Card: 300 * device.MiB})
	require.Zero(t, r.Budget)
	require.NotZero(t, r.Replayed)
	for _, p := range r.Runs {
		require.NotNil(t, p.MinCapacity, p.Label)
		require.Equal(t, p.MinCapacity, p.CompletesAt)
		require.Equal(t, *p.MinCapacity <= 300*device.MiB, *p.Carried)
		require.Greater(t, p.Probes, 10)
	}
}

// TestProgressForeseesItsEnd compares the totals that are told on the way with the events that were
// replayed in the end, with and without a card on which a request finds no memory.
func TestProgressForeseesItsEnd(t *testing.T) {
	for _, full := range []bool{false, true} {
		for _, o := range []whatif.Options{{}, {Card: 190 * device.MiB}} {
			var done, total []uint64
			o.Workers, o.Full = 1, full
			o.Progress = func(d, n uint64) { done, total = append(done, d), append(total, n) }
			r := search(t, read(t, scattered()), quick(t), o)
			end, all := len(done)-1, r.Replayed+r.Spared
			require.Equal(t, all, done[end])
			require.Equal(t, all, total[end], "the total is reached")
			for i := range done {
				require.LessOrEqual(t, done[i], total[i])
				require.LessOrEqual(t, total[i], 2*all)
				if done[i] >= all/2 {
					require.InEpsilon(t, all, total[i], 0.3, "full %v on %v: after %d of %d events", full, o.Card, done[i],
						r.Replayed)
				}
			}
		}
	}
}

func TestNothingToAllocateIsAnError(t *testing.T) {
	w, err := whatif.Survey(read(t, "mark x\n"))
	require.NoError(t, err)
	_, err = whatif.Search(t.Context(), w, whatif.Recorded{}, quick(t), whatif.Options{})
	require.EqualError(t, err, "test: the trace has no allocations")
}

func TestWritersAgree(t *testing.T) {
	r := search(t, read(t, scattered()), quick(t), whatif.Options{Card: 190 * device.MiB})
	var text, table bytes.Buffer
	require.NoError(t, report.WhatIf(&text, r))
	for i := range r.Runs {
		require.Contains(t, strings.ReplaceAll(text.String(), "\n", ""), strings.Split(r.Runs[i].Label, ",")[0])
	}
	require.NoError(t, whatif.Table(r).WriteCSV(&table))
	rows, err := csv.NewReader(&table).ReadAll()
	require.NoError(t, err)
	settings := len(r.Runs)
	for i := range r.Runs {
		settings += len(r.Runs[i].Same)
	}
	require.Len(t, rows, 1+settings, "a row for each setting, also of those that decide alike")
	for line := range strings.SplitSeq(strings.Split(text.String(), "┌")[0], "\n") {
		require.LessOrEqual(t, len([]rune(line)), 100, line)
	}
}

// TestImpossibleDemandIsNotReplayed asks for more than there is by far: page by page that would
// take hours.
func TestImpossibleDemandIsNotReplayed(t *testing.T) {
	r := search(t, read(t, "a 1 1MiB\nrefused 8000000000GiB\nrefused 8000000000GiB\na 2 1MiB\n"), quick(t),
		whatif.Options{})
	require.Empty(t, r.Runs)
	require.Zero(t, r.Replayed)
	require.Equal(t, whatif.TooLittle, r.Answer.Verdict)
	var text, asJSON strings.Builder
	require.NoError(t, report.WhatIf(&text, r))
	require.Contains(t, text.String(), "None: the live bytes alone need 7.45 EiB")
	require.NotContains(t, text.String(), "settings, 0 of them different")
	require.NoError(t, json.NewEncoder(&asJSON).Encode(r))
	require.Contains(t, asJSON.String(), `"runs":[]`)
}

// TestOneSettingGivesOnePoint tries nothing but what was recorded.
func TestOneSettingGivesOnePoint(t *testing.T) {
	tr, err := trace.Read(strings.NewReader("a 1 3MiB\nf 1\n"), "one.trace", trace.Options{})
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, report.WhatIf(&b, search(t, tr, nil, whatif.Options{})))
	require.Contains(t, b.String(), "\n1 setting; ")
}

func TestAStoppedSearchHasWhatIsMeasured(t *testing.T) {
	grid := quick(t)
	w, err := whatif.Survey(read(t, scattered()))
	require.NoError(t, err)
	for _, full := range []bool{false, true} {
		ctx, stop := context.WithCancel(t.Context())
		var tried atomic.Int64
		r, err := whatif.Search(ctx, w, whatif.RecordedIn(w), grid,
			whatif.Options{Workers: 1, Full: full, Card: 190 * device.MiB, Progress: func(uint64, uint64) {
				if tried.Add(1) == 3 {
					stop()
				}
			}})
		require.ErrorIs(t, err, context.Canceled)
		require.GreaterOrEqual(t, len(r.Runs), 3)
		require.Less(t, r.Points, len(grid))
		for _, p := range r.Runs {
			require.NotEmpty(t, p.Trace, p.Label)
			require.NotNil(t, p.Carried, p.Label)
		}
		require.NotEmpty(t, r.Answer.Text)
		require.NoError(t, report.WhatIf(io.Discard, r))
	}
}

// TestAnAmpleDeviceIsNotReportedAsNeeded replays a trace that is too long to search everything:
// where nothing but an ample device is known to complete, no figure of that device stands in the
// table, nor in the answer.
func TestAnAmpleDeviceIsNotReportedAsNeeded(t *testing.T) {
	var grid []setting.Setup
	for _, s := range quick(t) {
		if s.Name == "bfc" || s.Name == "tlsf" || s.Name == "async" {
			grid = append(grid, s)
		}
	}
	r := search(t, long(t, 1_500_000), grid, whatif.Options{}) // the budget has no probe
	ample := compare.Ample(r.LowerBound)
	unsearched := 0
	for _, p := range r.Runs {
		if p.CompletesAt != nil {
			require.Less(t, *p.CompletesAt, ample, p.Label)
		} else {
			unsearched++
		}
	}
	require.NotZero(t, unsearched)
	var text strings.Builder
	require.NoError(t, report.WhatIf(&text, r))
	require.Contains(t, text.String(), "not searched")
	for line := range strings.SplitSeq(text.String(), "\n") {
		require.NotContains(t, strings.Split(line, "on "+units.Bytes(ample))[0], units.Bytes(ample), line)
	}
}

// TestPeakFollowsTheOrderOfAddresses replays requests of which one takes the lower of two equal
// holes: where addresses fall that leaves a segment empty, which serves a later request.
func TestPeakFollowsTheOrderOfAddresses(t *testing.T) {
	t.Parallel()
	const text = "a 1 8MiB\na 2 8MiB\na 3 8MiB\na 4 8MiB\nf 2\nf 4\na 5 9MiB\nf 1\na 6 18MiB\n"
	src, err := trace.Read(strings.NewReader(text), "x.txt", trace.Options{})
	require.NoError(t, err)
	caching, err := strategies.All().Lookup("caching", nil)
	require.NoError(t, err)
	for policy, want := range map[sim.Policy]device.Size{sim.TopDown: 40 * device.MiB, sim.FirstFit: 58 * device.MiB} {
		o := whatif.Options{Card: device.GiB, Device: sim.Config{Charge: 2 * device.MiB, Policy: policy}}
		n, err := whatif.Peak(t.Context(), src, caching, o)
		require.NoError(t, err)
		require.Equal(t, want, n, policy)
	}
}
