package sweep_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/cell"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/remat/grid"
	"github.com/vramyard/vramyard/harness/study/sweep"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/budget"
	"github.com/vramyard/vramyard/strategies"
)

// study is a study of two traces, which [opened] has.
const study = `
traces: [short, long]
strategies:
  - bestfit
  - strategy: caching
    conf: ["", "expandable_segments:True"]
  - strategy: bfc
    config: {allow_growth: [true, false]}
devices: [sim, sim:80MiB]
searches: [quick, replay]
`

// opened opens the traces of [study].
func opened(spec string) (sweep.Opened, error) {
	n, ok := map[string]int{"short": 12, "long": 60}[spec]
	if !ok {
		return sweep.Opened{}, fmt.Errorf("%s: no such trace", spec)
	}
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "a %d %dKiB\n", i, 700+300*(i%7))
		if i >= 4 && i%3 > 0 {
			fmt.Fprintf(&b, "f %d\n", i-4)
		}
	}
	t, err := trace.Read(strings.NewReader(b.String()), spec+".trace", trace.Options{})
	return sweep.Opened{Source: t}, err
}

// files opens the traces and logs of the tests.
var files = sweep.Open{Trace: opened, Log: func(spec string) (*grid.Log, error) {
	s, err := remat.ReadFile("../../remat/testdata/"+spec+".log.gz", nil)
	return &grid.Log{Model: spec, Schedule: s}, err
}}

func planOf(t *testing.T, text string) *sweep.Plan {
	t.Helper()
	s, err := sweep.ReadStudy(strings.NewReader(text), strategies.All())
	require.NoError(t, err)
	p, err := sweep.Make(t.Context(), s, files, nil)
	require.NoError(t, err)
	return p
}

func storeIn(t *testing.T) cell.Dir {
	t.Helper()
	d, err := cell.OpenDir(t.TempDir())
	require.NoError(t, err)
	return d
}

func worker(d cell.Store) sweep.Worker {
	return sweep.Worker{Catalogue: strategies.All(), Open: files, Store: d, Workers: 2}
}

// merged returns the merged results of a store as a file.
func merged(t *testing.T, p *sweep.Plan, d cell.Store) []byte {
	t.Helper()
	m, err := p.Merge(t.Context(), d)
	require.NoError(t, err)
	require.Empty(t, m.Missing)
	require.Empty(t, m.Disputed)
	var b bytes.Buffer
	require.NoError(t, m.Write(&b))
	return b.Bytes()
}

func TestAPlanSurvivesItsFile(t *testing.T) {
	p := planOf(t, study)
	require.Len(t, p.Rows, 2*5*2*2)
	var first, second bytes.Buffer
	require.NoError(t, p.Write(&first))
	require.NoError(t, planOf(t, study).Write(&second))
	require.Equal(t, first.Bytes(), second.Bytes())
	got, err := sweep.ReadPlan(bytes.NewReader(first.Bytes()), int64(first.Len()), "plan.parquet", budget.New(0))
	require.NoError(t, err)
	require.Equal(t, p, got)
}

// TestShardsMergeIntoTheSameFile computes a study in one shard, in seven at once, and in three of
// which each is stopped after every cell and started again.
func TestShardsMergeIntoTheSameFile(t *testing.T) {
	p := planOf(t, study)
	one := storeIn(t)
	s, err := p.Run(t.Context(), sweep.Shard{Count: 1}, worker(one))
	require.NoError(t, err)
	require.Equal(t, s.Cells, s.Computed)
	require.Equal(t, len(p.Rows), s.Cells)
	want := merged(t, p, one)

	seven := storeIn(t)
	var running sync.WaitGroup
	for i := range 7 {
		running.Go(func() {
			_, err := p.Run(t.Context(), sweep.Shard{Index: i, Count: 7}, worker(seven))
			require.NoError(t, err)
		})
	}
	running.Wait()
	require.Equal(t, want, merged(t, p, seven))

	stopping := storeIn(t)
	for i := range 3 {
		for left := 1; left > 0; {
			stop := make(chan struct{})
			w := worker(stopping)
			w.Stop, w.Workers = stop, 1
			w.Done = func() {
				select {
				case <-stop:
				default:
					close(stop)
				}
			}
			s, err := p.Run(t.Context(), sweep.Shard{Index: i, Count: 3}, w)
			require.NoError(t, err)
			require.LessOrEqual(t, s.Computed, 1)
			left = s.Left()
		}
	}
	require.Equal(t, want, merged(t, p, stopping))
}

// TestALaterStrategyCostsOnlyItsCells adds a strategy to a study.
func TestALaterStrategyCostsOnlyItsCells(t *testing.T) {
	d := storeIn(t)
	_, err := planOf(t, study).Run(t.Context(), sweep.Shard{Count: 1}, worker(d))
	require.NoError(t, err)
	more := planOf(t, strings.Replace(study, "  - bestfit\n", "  - bestfit\n  - tlsf\n", 1))
	s, err := more.Run(t.Context(), sweep.Shard{Count: 1}, worker(d))
	require.NoError(t, err)
	require.Equal(t, 2*2*2, s.Computed)
	require.Equal(t, 2*5*2*2, s.Present)
}

func TestAFailureIsAResult(t *testing.T) {
	c := append(strategies.All(), setting.SpecOf("broken", "", func(device.Source, struct{}) (alloc.Strategy, error) {
		return nil, errors.New("broken: no table")
	}))
	s, err := sweep.ReadStudy(strings.NewReader("traces: [short]\nstrategies: [bestfit, broken]\n"), c)
	require.NoError(t, err)
	p, err := sweep.Make(t.Context(), s, files, nil)
	require.NoError(t, err)
	d := storeIn(t)
	for i := range 2 {
		w := worker(d)
		w.Catalogue = c
		s, err := p.Run(t.Context(), sweep.Shard{Count: 1}, w)
		require.NoError(t, err)
		require.Equal(t, []int{2, 1, 2 * (1 - i), 2 * i}, []int{s.Cells, s.Failed, s.Computed, s.Present})
	}
	m, err := p.Merge(t.Context(), d)
	require.NoError(t, err)
	require.Equal(t, map[int]string{1: "broken: no table"}, m.Failures)
	require.Equal(t, m.Failures[1], m.Traces[1].Failed)
	var b strings.Builder
	require.NoError(t, p.Status(&b, m))
	require.Regexp(t, `^Done: 2 of 2 cells, 100.0 % of the predicted time; 1 failed, 0 missing.\n`+
		`[0-9a-f]{12}: broken on short, sim, minimum: broken: no table\n$`, b.String())
}

func TestWorkersThatDisagreeAreReported(t *testing.T) {
	p := planOf(t, "traces: [short]\nstrategies: [bestfit]\n")
	d := storeIn(t)
	_, err := p.Run(t.Context(), sweep.Shard{Count: 1}, worker(d))
	require.NoError(t, err)
	name := cell.Name(p.Rows[0].Cell)
	body, err := d.Get(t.Context(), name)
	require.NoError(t, err)
	other := strings.Replace(string(body), `"device_calls":1,`, `"device_calls":2,`, 1)
	require.NotEqual(t, string(body), other)
	late := &lateStore{Dir: storeIn(t), hidden: name}
	require.NoError(t, late.Dir.Put(t.Context(), name, []byte(other)))
	s, err := p.Run(t.Context(), sweep.Shard{Count: 1}, worker(late))
	require.NoError(t, err)
	require.Len(t, s.Disagreed, 1)
	m, err := p.Merge(t.Context(), late.Dir)
	require.NoError(t, err)
	require.Equal(t, []string{p.Rows[0].Cell}, m.Disputed)
}

// lateStore hides an object until one is written, as if another worker had been faster.
type lateStore struct {
	cell.Dir
	hidden string
}

func (s *lateStore) Get(ctx context.Context, name string) ([]byte, error) {
	if name == s.hidden {
		return nil, cell.ErrMissing
	}
	return s.Dir.Get(ctx, name)
}

func (s *lateStore) Put(ctx context.Context, name string, body []byte) error {
	if name == s.hidden {
		s.hidden = ""
	}
	return s.Dir.Put(ctx, name, body)
}

// TestWorkersThatDisagreeOnAProbeAreReported has a search that several shards share.
func TestWorkersThatDisagreeOnAProbeAreReported(t *testing.T) {
	p := planOf(t, "traces: [long]\nstrategies: [bfc]\n")
	d, shared := storeIn(t), sweep.Shard{Count: 4}
	_, err := p.Run(t.Context(), shared, worker(d))
	require.NoError(t, err)
	names, err := d.Names(t.Context(), "cells/")
	require.NoError(t, err)
	late := &lateStore{Dir: storeIn(t)}
	for _, name := range names {
		body, err := d.Get(t.Context(), name)
		require.NoError(t, err)
		other := strings.Replace(string(body), `"completes":true`, `"completes":false`, 1)
		if late.hidden == "" && other != string(body) {
			late.hidden = name
			require.NoError(t, late.Dir.Put(t.Context(), name, []byte(other)))
		}
	}
	require.NotEmpty(t, late.hidden)
	s, err := p.Run(t.Context(), shared, worker(late))
	require.NoError(t, err)
	require.Len(t, s.Disagreed, 1)
	require.NotEqual(t, p.Rows[0].Cell, s.Disagreed[0].Cell)
	m, err := p.Merge(t.Context(), late.Dir)
	require.NoError(t, err)
	require.Equal(t, []string{p.Rows[0].Cell}, m.Disputed)
}

func TestAChangedInputIsRefused(t *testing.T) {
	p := planOf(t, study)
	run := func(change func(*sweep.Plan, *sweep.Worker)) error {
		w, q := worker(storeIn(t)), &sweep.Plan{Seed: p.Seed, Rows: slices.Clone(p.Rows)}
		change(q, &w)
		_, err := q.Run(t.Context(), sweep.Shard{Count: 1}, w)
		return err
	}
	require.ErrorContains(t, run(func(_ *sweep.Plan, w *sweep.Worker) {
		w.Open.Trace = func(string) (sweep.Opened, error) { return opened("long") }
	}), "short: SHA-256 ")
	require.ErrorContains(t, run(func(q *sweep.Plan, _ *sweep.Worker) { q.Rows[3].Config = []byte(`{"allow_growth":"x"}`) }),
		"row 3 of the plan: configuration of bfc: allow_growth")
	require.ErrorContains(t, run(func(q *sweep.Plan, _ *sweep.Worker) { q.Rows[3].Search = sweep.Minimum }),
		"row 3 of the plan, bfc{\"allow_growth\":true} on short: its cell is ")
	missing := errors.New("disk: gone")
	require.ErrorIs(t, run(func(_ *sweep.Plan, w *sweep.Worker) {
		w.Open.Trace = func(string) (sweep.Opened, error) { return sweep.Opened{}, missing }
	}), missing)
}

func TestReadStudyRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "want a mapping with the keys traces, or logs, and strategies",
		"- a":                               "line 1, column 1: want a mapping",
		"traces: [a]":                       "line 1, column 1: the key strategies is missing",
		"strategies: [bfc]":                 "line 1, column 1: the keys traces and logs are missing",
		"traces: []\nstrategies: [bfc]":     "line 1, column 9: want a list of texts",
		"traces: a\nstrategies: [bfc]":      "line 1, column 9: want a list of texts",
		"traces: [a, a]\nstrategies: [bfc]": `line 1, column 13: "a" is given twice`,
		"traces: [a]\nstrategies: [bcf]":    `line 2, column 14: unknown strategy "bcf": did you mean "bfc"?`,
		"traces: [a]\nstrategies: bfc":      "line 2, column 13: want one list of strategies",
		"traces: [a]\nstrategy: [bfc]":      `line 2, column 1: unknown field "strategy": want one of traces, logs, strategies`,
		"traces: [a]\ndevices: [cuda:0]":    `line 2, column 11: device "cuda:0": there are simulated devices only`,
		"traces: [a]\nsearches: [minimal]":  `line 2, column 12: search "minimal": did you mean "minimum"?`,
		"traces: [a]\nfree_at: soon":        `line 2, column 10: free at "soon"`,
		"traces: [a]\nseed: -1":             `line 2, column 7: seed "-1": want a number`,
		"traces: [a]\nlearn: [a]":           "line 2, column 8: want a text",
		"traces: [a]\ntraces: [b]":          `line 2, column 1: "traces" is given twice`,
	} {
		_, err := sweep.ReadStudy(strings.NewReader(text), strategies.All())
		require.ErrorContains(t, err, want, text)
	}
}

// TestCellsOfTheWholeCatalogueAreFoundAgain plans every preset: a worker finds the setup from name
// and configuration.
func TestCellsOfTheWholeCatalogueAreFoundAgain(t *testing.T) {
	c := strategies.All()
	c = append(c, setting.Sharded(c))
	names := strings.Join(append(c.Names(), "sharded:tlsf"), ", ")
	text := "traces: [short]\nsearches: [replay]\nstrategies: [" + names + "]\n"
	s, err := sweep.ReadStudy(strings.NewReader(text), c)
	require.NoError(t, err)
	p, err := sweep.Make(t.Context(), s, files, nil)
	require.NoError(t, err)
	w := worker(storeIn(t))
	w.Catalogue = c
	sum, err := p.Run(t.Context(), sweep.Shard{Count: 1}, w)
	require.NoError(t, err)
	require.Zero(t, sum.Failed)
	require.Equal(t, sum.Cells, sum.Computed)
}

func TestLearnedCells(t *testing.T) {
	p := planOf(t, "traces: [short]\nlearn: long\nstrategies: [bestfit, stalloc]\nsearches: [replay]\n")
	require.Empty(t, p.Rows[0].Learn)
	require.Equal(t, "long", p.Rows[1].Learn)
	without := planOf(t, "traces: [short]\nstrategies: [bestfit, stalloc]\nsearches: [replay]\n")
	require.Equal(t, p.Rows[0].Cell, without.Rows[0].Cell)
	require.NotEqual(t, p.Rows[1].Cell, without.Rows[1].Cell)
	s, err := p.Run(t.Context(), sweep.Shard{Count: 1}, worker(storeIn(t)))
	require.NoError(t, err)
	require.Equal(t, 2, s.Computed)
}

func TestSpeedsPredictTimes(t *testing.T) {
	seconds := 6.0
	speeds := sweep.SpeedsOf([]sweep.Timed{
		{Strategy: "bestfit", Search: sweep.Minimum, Events: 3, Seconds: &seconds},
		{Strategy: "bfc", Search: sweep.Minimum, Events: 9, Seconds: &seconds},
		{Strategy: "tlsf", Search: sweep.Minimum, Events: 1000}, // failed
	})
	s, err := sweep.ReadStudy(strings.NewReader("traces: [short]\nstrategies: [bestfit, tlsf]\n"), strategies.All())
	require.NoError(t, err)
	p, err := sweep.Make(t.Context(), s, files, speeds)
	require.NoError(t, err)
	events := float64(p.Rows[0].Events)
	require.InDelta(t, 2*events, p.Rows[0].Cost, 1e-9)
	require.InDelta(t, events, p.Rows[1].Cost, 1e-9, "the mean of the others")
}

func TestTheSeedIsOfAnyValue(t *testing.T) {
	for _, seed := range []uint64{0, 1, 1 << 63} {
		p := planOf(t, fmt.Sprintf("%sseed: %d\n", study, seed))
		d := storeIn(t)
		for i := range 3 {
			_, err := p.Run(t.Context(), sweep.Shard{Index: i, Count: 3}, worker(d))
			require.NoError(t, err)
		}
		merged(t, p, d)
	}
}

func ExamplePlan_Run() {
	s, err := sweep.ReadStudy(strings.NewReader("traces: [short]\nstrategies: [bestfit, tlsf]\n"), strategies.All())
	if err != nil {
		panic(err)
	}
	plan, err := sweep.Make(context.Background(), s, files, nil)
	if err != nil {
		panic(err)
	}
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	store, err := cell.OpenDir(folder)
	if err != nil {
		panic(err)
	}
	w := sweep.Worker{Catalogue: strategies.All(), Open: files, Store: store}
	for _, shard := range []sweep.Shard{{Index: 0, Count: 2}, {Index: 1, Count: 2}} {
		if _, err := plan.Run(context.Background(), shard, w); err != nil {
			panic(err)
		}
	}
	results, err := plan.Merge(context.Background(), store)
	if err != nil {
		panic(err)
	}
	for _, r := range results.Traces {
		fmt.Println(r.Strategy, *r.MinCapacity)
	}
	// Output:
	// bestfit 12MiB
	// tlsf 14MiB
}

// TestNamesHaveTheirSettings names the settings that differ from the preset's, however they were
// written, and drops a repetition.
func TestNamesHaveTheirSettings(t *testing.T) {
	p := planOf(t, `
traces: [short]
searches: [replay]
strategies:
  - bfc
  - bfc:growth
  - strategy: bfc
    config: {allow_growth: [false, true]}
  - strategy: caching
    conf: "expandable_segments:True"
`)
	var names []string
	for _, r := range p.Rows {
		names = append(names, r.Strategy)
	}
	require.Equal(t, []string{"bfc", "bfc:growth", `bfc{"allow_growth":true}`,
		`caching{"conf":"expandable_segments:True"}`}, names)
	require.Equal(t, p.Rows[1].Cell, p.Rows[2].Cell, "one cell under two names")
	d := storeIn(t)
	s, err := p.Run(t.Context(), sweep.Shard{Count: 1}, worker(d))
	require.NoError(t, err)
	require.Equal(t, 3, s.Computed)
	m, err := p.Merge(t.Context(), d)
	require.NoError(t, err)
	require.Equal(t, names[2], m.Traces[2].Strategy)
}
