package compare_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/cell"
	"github.com/vramyard/vramyard/harness/cell/celltest"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

var rewrite = flag.Bool("rewrite", false, "write the golden figures of cells")

func storeIn(t *testing.T) cell.Dir {
	t.Helper()
	d, err := cell.OpenDir(t.TempDir())
	require.NoError(t, err)
	return d
}

// timeless returns a run without its measured figures.
func timeless(r compare.Run) compare.Figures { return r.Figures }

// counted runs a trial over a store and returns the run and the number of replayed events.
func counted(t *testing.T, text string, s setting.Setup, d cell.Store, o compare.Options) (compare.Run, int) {
	t.Helper()
	p, err := replay.Prepare(t.Context(), read(t, text))
	require.NoError(t, err)
	var lock sync.Mutex
	events := 0
	o.Replayed = func(n int) {
		lock.Lock()
		defer lock.Unlock()
		events += n
	}
	if d != nil {
		o.Cells = cell.Over(d)
		if o.Probes != nil { // in the same store
			o.Probes = o.Cells
		}
	}
	r, err := compare.NewTrial(compare.NewPool(2, 0), p, s, o).Run(t.Context())
	require.NoError(t, err)
	return r, events
}

func TestARunIsComputedOnce(t *testing.T) {
	for _, o := range []compare.Options{{}, {Quick: true}, {Single: true}, {Failures: true}, {Capacity: device.GiB}} {
		for _, s := range setups(t, "bfc", "caching", "direct") {
			d := storeIn(t)
			want, _ := counted(t, fragmenting(), s, nil, o)
			first, _ := counted(t, fragmenting(), s, d, o)
			again, events := counted(t, fragmenting(), s, d, o)
			require.Equal(t, timeless(want), timeless(first))
			require.Equal(t, first, again, "the second run has the times of the first")
			require.Zero(t, events)
		}
	}
}

// TestNamesAreNoPartOfACell gives one configuration two names.
func TestNamesAreNoPartOfACell(t *testing.T) {
	d := storeIn(t)
	preset := setups(t, "bfc:growth")[0]
	spelled, err := strategies.All().Lookup("bfc", json.RawMessage(`{"allow_growth":true}`))
	require.NoError(t, err)
	_, _ = counted(t, fragmenting(), preset, d, compare.Options{})
	r, events := counted(t, fragmenting(), spelled, d, compare.Options{})
	require.Equal(t, "bfc", r.Strategy)
	require.Zero(t, events)
}

func TestEveryInputIsPartOfTheKey(t *testing.T) {
	base := compare.Options{Device: replay.SimTarget(sim.Config{})}
	keys := map[string]string{}
	add := func(what, text string, s setting.Setup, o compare.Options) {
		p, err := replay.Prepare(t.Context(), read(t, text))
		require.NoError(t, err)
		key, err := compare.NewTrial(compare.NewPool(1, 0), p, s, o).Key()
		require.NoError(t, err)
		require.Len(t, key, 64)
		require.NotContains(t, keys, key, what)
		keys[key] = what
	}
	bfc := setups(t, "bfc")[0]
	add("base", fragmenting(), bfc, base)
	add("trace", fragmenting()+"f 99\n", bfc, base)
	add("strategy", fragmenting(), setups(t, "tlsf")[0], base)
	add("config", fragmenting(), setups(t, "bfc:growth")[0], base)
	other := bfc
	other.Semantics = "2"
	add("semantics", fragmenting(), other, base)
	add("device", fragmenting(), bfc, compare.Options{Device: replay.SimTarget(sim.Config{Policy: sim.Bump})})
	for what, change := range map[string]func(*compare.Options){
		"capacity": func(o *compare.Options) { o.Capacity = device.GiB },
		"quick":    func(o *compare.Options) { o.Quick = true },
		"single":   func(o *compare.Options) { o.Single = true },
		"free at":  func(o *compare.Options) { o.FreeAt = replay.AtRequested },
	} {
		o := base
		change(&o)
		add(what, fragmenting(), bfc, o)
	}
	p, err := replay.Prepare(t.Context(), read(t, fragmenting()))
	require.NoError(t, err)
	trial := compare.NewTrial(compare.NewPool(1, 0), p, bfc, base)
	trial.RecordedOn(device.GiB)
	key, err := trial.Key()
	require.NoError(t, err)
	require.NotContains(t, keys, key)

	other.Semantics = ""
	key, err = compare.NewTrial(compare.NewPool(1, 0), p, other, base).Key()
	require.NoError(t, err)
	require.Empty(t, key, "placements without a version")
	o := compare.Options{Cells: cell.Over(storeIn(t))}
	_, err = compare.NewTrial(compare.NewPool(1, 0), p, other, o).Run(t.Context())
	require.NoError(t, err)
}

// TestAnInterruptedSearchContinues stops a search after each number of replays. Together, the
// interrupted runs and the last one replay about as much as an uninterrupted one.
func TestAnInterruptedSearchContinues(t *testing.T) {
	p, err := replay.Prepare(t.Context(), read(t, fragmenting()))
	require.NoError(t, err)
	bfc := setups(t, "bfc")[0]
	want, _ := counted(t, fragmenting(), bfc, nil, compare.Options{})
	d, runs := storeIn(t), 0
	for done := false; !done; runs++ {
		require.Less(t, runs, 200)
		ctx, cancel := context.WithCancel(t.Context())
		store := &limitedStore{Store: d, most: 3, cancel: cancel}
		o := compare.Options{Cells: cell.Over(store), Probes: cell.Over(store)}
		trial := compare.NewTrial(compare.NewPool(1, 0), p, bfc, o)
		r, err := trial.Run(ctx)
		done = err == nil
		if done {
			require.Equal(t, timeless(want), timeless(r))
		} else {
			require.ErrorIs(t, err, context.Canceled)
		}
		cancel()
	}
	require.Greater(t, runs, 5)
}

// limitedStore cancels a run after a number of objects were written.
type limitedStore struct {
	cell.Store
	most   int
	cancel context.CancelFunc
}

func (s *limitedStore) Put(ctx context.Context, name string, body []byte) error {
	if s.most--; s.most < 0 {
		s.cancel()
		return ctx.Err()
	}
	return s.Store.Put(ctx, name, body)
}

// TestProgramsShareASearch runs four trials of one search at once, which begin with different
// capacities.
func TestProgramsShareASearch(t *testing.T) {
	s := setups(t, "bfc")[0]
	want, alone := counted(t, fragmenting(), s, nil, compare.Options{})
	d := storeIn(t)
	results, events := make([]compare.Run, 4), make([]int, 4)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			results[i], events[i] = counted(t, fragmenting(), s, d, compare.Options{Probes: &cell.Cells{}, Rotate: i})
		})
	}
	wg.Wait()
	for _, r := range results {
		require.Equal(t, timeless(want), timeless(r))
	}
	t.Logf("alone %d events, together %v", alone, events)
}

// TestRepetitionsAreNoFigure computes one replay with repetitions and without.
func TestRepetitionsAreNoFigure(t *testing.T) {
	d := storeIn(t)
	for _, o := range []compare.Options{{}, {Once: true}} {
		once := storeIn(t)
		o.Probes = &cell.Cells{}
		counted(t, fragmenting(), setups(t, "caching")[0], once, o)
		names, err := once.Names(t.Context(), "cells/")
		require.NoError(t, err)
		for _, name := range names {
			body, err := once.Get(t.Context(), name)
			require.NoError(t, err)
			var record struct{ Exact json.RawMessage }
			require.NoError(t, json.Unmarshal(body, &record))
			if err = d.Put(t.Context(), name, record.Exact); err != nil {
				require.Equal(t, cell.ErrTaken, err)
				other, err := d.Get(t.Context(), name)
				require.NoError(t, err)
				require.JSONEq(t, string(other), string(record.Exact))
			}
		}
	}
}

// TestFailuresHaveNoNames gives a failing run two names for its trace, and begins its search at
// different capacities.
func TestFailuresHaveNoNames(t *testing.T) {
	spec := setting.SpecOf("picky", "", func(src device.Source, _ struct{}) (alloc.Strategy, error) {
		if n, ok := src.(interface{ Config() sim.Config }); ok && n.Config().Capacity < 100*device.MiB {
			return nil, fmt.Errorf("no table for %v", n.Config().Capacity)
		}
		return setups(t, "bfc")[0].New(src)
	})
	s, err := setting.Catalogue{spec}.Lookup("picky", nil)
	require.NoError(t, err)
	var failures []cell.Failure
	for i := range 3 {
		tr, err := trace.Read(strings.NewReader(fragmenting()), fmt.Sprint("name", i, ".trace"), trace.Options{})
		require.NoError(t, err)
		p, err := replay.Prepare(t.Context(), tr)
		require.NoError(t, err)
		d := cell.Over(storeIn(t))
		o := compare.Options{Cells: d, Probes: d, Failures: true, Rotate: i}
		_, err = compare.NewTrial(compare.NewPool(2, 0), p, s, o).Run(t.Context())
		failure, ok := errors.AsType[cell.Failure](err)
		require.True(t, ok, "%v", err)
		failures = append(failures, failure)
	}
	require.Equal(t, failures[0], failures[1])
	require.Equal(t, failures[0], failures[2])
}

// foreign is a configuration of a strategy that code outside the program decides.
type foreign struct{}

func (foreign) Semantics() string { return "of a file" }

// TestPassingFailuresAreNotKept has failures that another machine, or another moment, may not have.
func TestPassingFailuresAreNotKept(t *testing.T) {
	file := setting.SpecOf("file", "", func(device.Source, struct{}) (alloc.Strategy, error) {
		return nil, &fs.PathError{Op: "open", Path: "table", Err: syscall.EMFILE}
	})
	outside := setting.SpecOf("outside", "", func(device.Source, foreign) (alloc.Strategy, error) {
		return nil, errors.New("the process did not start")
	})
	for _, spec := range []setting.Spec{file, outside} {
		s, err := setting.Catalogue{spec}.Lookup(spec.Name, nil)
		require.NoError(t, err)
		d := storeIn(t)
		p, err := replay.Prepare(t.Context(), read(t, fragmenting()))
		require.NoError(t, err)
		o := compare.Options{Cells: cell.Over(d), Failures: true}
		_, err = compare.NewTrial(compare.NewPool(1, 0), p, s, o).Run(t.Context())
		_, result := errors.AsType[cell.Failure](err)
		require.Equal(t, spec.Name == "outside", result, "%v", err)
		names, err := d.Names(t.Context(), "")
		require.NoError(t, err)
		require.Empty(t, names)
	}
}

// orderedStore has the names of written objects in their order.
type orderedStore struct {
	cell.Store
	lock  sync.Mutex
	names []string
}

func (s *orderedStore) Put(ctx context.Context, name string, body []byte) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.names = append(s.names, name)
	return s.Store.Put(ctx, name, body)
}

// TestSharedSearchesBeginApart compares the first three replays of two programs that share a
// search: the measurement, and two of the first three capacities.
func TestSharedSearchesBeginApart(t *testing.T) {
	var orders [2][]string
	for i := range orders {
		s := &orderedStore{Store: storeIn(t)}
		counted(t, fragmenting(), setups(t, "bfc")[0], s, compare.Options{Probes: &cell.Cells{}, Rotate: i})
		orders[i] = s.names
	}
	require.ElementsMatch(t, orders[0], orders[1], "the same cells")
	first := func(names []string) []string { return slices.Sorted(slices.Values(names[:3])) }
	require.NotEqual(t, first(orders[0]), first(orders[1]))
}

// refusing is a strategy that cannot be built, or panics.
type refusing struct{ alloc.Strategy }

func (refusing) Alloc(alloc.Request) (alloc.Block, error) { panic("I1: two blocks overlap") }

func TestFailuresAreResults(t *testing.T) {
	broken := setting.SpecOf("broken", "", func(device.Source, struct{}) (alloc.Strategy, error) {
		return nil, errors.New("broken: no table")
	})
	panics := setting.SpecOf("panics", "", func(src device.Source, _ struct{}) (alloc.Strategy, error) {
		inner, err := setups(t, "direct")[0].New(src)
		return refusing{inner}, err
	})
	for _, c := range []struct {
		spec setting.Spec
		want string
	}{
		{broken, "broken: no table"},
		{panics, "panic: I1: two blocks overlap"},
	} {
		s, err := setting.Catalogue{c.spec}.Lookup(c.spec.Name, nil)
		require.NoError(t, err)
		d := storeIn(t)
		p, err := replay.Prepare(t.Context(), read(t, fragmenting()))
		require.NoError(t, err)
		for range 2 {
			o := compare.Options{Cells: cell.Over(d), Failures: true}
			trial := compare.NewTrial(compare.NewPool(1, 0), p, s, o)
			_, err = trial.Run(t.Context())
			failure, ok := errors.AsType[cell.Failure](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, c.want, string(failure))
		}
		key, err := compare.NewTrial(compare.NewPool(1, 0), p, s, compare.Options{}).Key()
		require.NoError(t, err)
		kept, err := compare.ReadKept(t.Context(), d, key)
		require.NoError(t, err)
		require.Equal(t, c.want, kept.Failed)
	}
}

// TestEngine holds the exact figures of cells to their keys. If the search, the replay or the
// simulated device changed them, raise the constant Engine; -rewrite then writes the new cells. A
// new version of a strategy also has new cells.
func TestEngine(t *testing.T) {
	var stores []cell.Store
	for _, text := range []string{fragmenting(), streaming(), pooling} {
		for _, s := range setups(t, "bestfit:growth", "caching", "direct", "vmm") {
			for _, o := range []compare.Options{
				{}, {Quick: true}, {Single: true, Capacity: 80 * device.MiB},
				{Probes: &cell.Cells{}, FreeAt: replay.AtRequested, Device: replay.SimTarget(sim.Config{Policy: sim.Bump})},
			} {
				d := storeIn(t)
				o.Failures = true
				counted(t, text, s, d, o)
				stores = append(stores, d)
			}
		}
	}
	celltest.Golden(t, filepath.Join("testdata", "cells.txt"), *rewrite, stores...)
}

// pooling has a private pool, marks, a refused request, a trim, alignment and a pause.
const pooling = `live 7 3MiB
mark load
a 0 1000 align=512 tag=weights
a 1 30MiB
f 1
mark step
pool begin 1
a 2 5MiB
pool end 1
refused 900MiB
a 3 21MiB align=4MiB
f 2
trim
a 4 2MiB
poll
f 3
a 5 40MiB
`

// streaming uses blocks on two streams and frees some of them late.
func streaming() string {
	var b strings.Builder
	for i := range 12 {
		fmt.Fprintf(&b, "a %d %dKiB stream=%d\n", i, 700+300*i, i%3)
		if i%2 == 1 {
			fmt.Fprintf(&b, "use %d %d\n", i-1, (i+1)%3)
		}
		if i >= 4 {
			fmt.Fprintf(&b, "f %d\n", i-4)
		}
	}
	return b.String()
}
