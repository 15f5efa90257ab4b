package sweep

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/cell"
	"github.com/vramyard/vramyard/harness/remat/grid"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
)

// Worker runs shards.
type Worker struct {
	Catalogue setting.Catalogue // has the strategies of the plan
	Open      Open              // opens the traces or logs of the plan
	Store     cell.Store        // keeps the results
	Workers   int               // cells at once; 0: one for each core
	Memory    device.Size       // bytes that concurrent replays may take; 0: unlimited
	// Stop ends the run when it is closed: no more cells begin. May be nil.
	Stop <-chan struct{}
	// Began is called with the number of cells that are to be computed; may be nil.
	Began func(cells int)
	// Done is called after each cell, concurrently; may be nil.
	Done func()

	// differs is called for each row with a mismatch, which is then left out; nil: the run ends.
	differs func(*mismatch)
}

// Summary counts the cells of a shard.
type Summary struct {
	Cells     int                  // of the shard
	Present   int                  // in the store before
	Computed  int                  // by this run
	Failed    int                  // with a failure as the result, those in the store before included
	Disagreed []*cell.Disagreement // with other exact figures in the store
}

// Left returns how many cells were not computed, because the run was stopped.
func (s *Summary) Left() int { return s.Cells - s.Present - s.Computed - len(s.Disagreed) }

// longSearch is the predicted number of events from which on every replay of a search is kept, so
// that a worker that is killed loses one replay and not the search. It takes some ten seconds.
const longSearch = 100_000_000

// Run computes the cells of a shard that the store does not have. A cell that fails on every
// repetition has the failure as its result. Any other error, such as of a file or of the store,
// ends the run.
func (p *Plan) Run(ctx context.Context, s Shard, w Worker) (Summary, error) {
	shares := p.assign(s.Count)[s.Index]
	r := &shardRun{Worker: w, plan: p, cells: cell.Over(w.Store), pool: compare.NewPool(w.Workers, w.Memory)}
	r.summary.Cells = len(shares)
	r.places = make(chan struct{}, cmp.Or(max(w.Workers, 0), runtime.GOMAXPROCS(0)))
	missing, err := r.missing(ctx, shares)
	if err == nil {
		err = r.learn(missing)
	}
	if err != nil {
		return r.summary, err
	}
	if w.Began != nil {
		w.Began(len(missing))
	}
	ctx, r.abort = context.WithCancelCause(ctx)
	defer r.abort(nil)
	for len(missing) > 0 && err == nil && !r.stopped() {
		name := p.Rows[missing[0].row].Trace
		end := slices.IndexFunc(missing, func(s share) bool { return p.Rows[s.row].Trace != name })
		if end < 0 {
			end = len(missing)
		}
		err = r.begin(ctx, missing[:end])
		missing = missing[end:]
	}
	r.running.Wait()
	return r.summary, cmp.Or(context.Cause(ctx), err)
}

// shardRun is a run of a shard.
type shardRun struct {
	Worker
	plan     *Plan
	cells    *cell.Cells
	setups   map[int]setting.Setup // by row
	training *compare.Training     // of the rows with a forecast
	pool     *compare.Pool
	places   chan struct{} // one for each cell at once
	running  sync.WaitGroup
	abort    context.CancelCauseFunc

	lock    sync.Mutex
	summary Summary
}

// lookups is how many cells are looked up at once in a store, which may be far away.
const lookups = 16

// missing returns the cells that the store does not have, in the order of the traces in the plan,
// of each trace the most expensive first.
func (r *shardRun) missing(ctx context.Context, shares []share) ([]share, error) {
	absent := make([]bool, len(shares))
	err := each(len(shares), lookups, func(i int) error {
		kept, err := r.plan.Rows[shares[i].row].read(ctx, r.Store)
		if errors.Is(err, cell.ErrMissing) {
			absent[i] = true
			return nil
		}
		if err == nil {
			r.count(func(s *Summary) { s.Present++ }, kept.failed != "")
		}
		return err
	})
	var all []share
	for i, s := range shares {
		if absent[i] {
			all = append(all, s)
		}
	}
	first := map[string]int{}
	for i := len(r.plan.Rows) - 1; i >= 0; i-- {
		first[r.plan.Rows[i].Trace] = i
	}
	slices.SortStableFunc(all, func(a, b share) int {
		x, y := &r.plan.Rows[a.row], &r.plan.Rows[b.row]
		return cmp.Or(cmp.Compare(first[x.Trace], first[y.Trace]), cmp.Compare(y.Cost, x.Cost))
	})
	return all, err
}

// each calls f for 0 … n-1, some at once, and returns the error with the lowest index.
func each(n, atOnce int, f func(i int) error) error {
	errs := make([]error, n)
	places := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i := range n {
		places <- struct{}{}
		wg.Go(func() {
			errs[i] = f(i)
			<-places
		})
	}
	wg.Wait()
	return cmp.Or(errs...)
}

// learn looks up the setups of cells, with their forecast.
func (r *shardRun) learn(shares []share) error {
	r.setups = map[int]setting.Setup{}
	var rows []int // with a forecast
	var planners []setting.Setup
	for _, s := range shares {
		row := &r.plan.Rows[s.row]
		setup, err := Lookup(r.Catalogue, row.Strategy, row.Config)
		if err != nil {
			return fmt.Errorf("row %d of the plan: %w", s.row, err)
		}
		r.setups[s.row] = setup
		if row.Learn != "" {
			rows, planners = append(rows, s.row), append(planners, setup)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	planners, training, err := learned(r.plan.Rows[rows[0]].Learn, planners, r.Open)
	for i, row := range rows {
		if err == nil {
			r.setups[row] = planners[i]
		}
	}
	r.training = training
	return err
}

// Lookup returns the setup of a row, which has the settings in its name too.
func Lookup(c setting.Catalogue, strategy string, config json.RawMessage) (setting.Setup, error) {
	if strategy == grid.Counting {
		return setting.Setup{Name: strategy, Semantics: grid.CountingSemantics}, nil
	}
	name, _, _ := strings.Cut(strategy, "{")
	setup, err := c.Lookup(name, config)
	setup.Name = strategy
	return setup, err
}

func (r *shardRun) stopped() bool {
	select {
	case <-r.Stop:
		return true
	default:
		return false
	}
}

// task is the work of a cell.
type task struct {
	key func() (string, error) // name of the cell that run computes
	run func(ctx context.Context) error
}

// opening is an opened trace or log.
type opening struct {
	hash   string // of the decompressed file; empty: generated
	events int    // of the trace, or steps of the log
	task   func(s share) (task, error)
}

// openTrace returns the tasks of cells of a trace.
func (r *shardRun) openTrace(ctx context.Context, name string) (*opening, error) {
	opened, err := r.Open.Trace(name)
	if err != nil {
		return nil, err
	}
	prepared, err := replay.Prepare(ctx, opened.Source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	head := opened.Source.Head()
	return &opening{hash: head.Header.Hash, events: head.Events, task: func(s share) (task, error) {
		trial, err := r.trial(s, prepared, opened.Card)
		if err != nil {
			return task{}, err
		}
		return task{trial.Key, func(ctx context.Context) error {
			_, err := trial.Run(ctx)
			return err
		}}, nil
	}}, nil
}

// begin begins the cells of one trace or log, as places become free.
func (r *shardRun) begin(ctx context.Context, shares []share) (err error) {
	var o *opening
	first := &r.plan.Rows[shares[0].row]
	if first.Case != nil {
		o, err = r.openLog(first.Trace)
	} else {
		o, err = r.openTrace(ctx, first.Trace)
	}
	if err != nil {
		return err
	}
	if o.hash != first.TraceSHA256 {
		return fmt.Errorf("%s: SHA-256 %s, want %s: the file has changed since it was planned; after a new plan, cells of "+
			"other files stay", first.Trace, o.hash, first.TraceSHA256)
	}
	for _, s := range shares {
		t, err := o.task(s)
		if err != nil {
			return err
		}
		err = o.check(s.row, &r.plan.Rows[s.row], &t)
		if m, ok := errors.AsType[*mismatch](err); ok && r.differs != nil {
			r.differs(m)
			continue
		}
		if err != nil {
			return err
		}
		select {
		case r.places <- struct{}{}:
		case <-r.Stop:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if r.stopped() { // at the same time
			return nil
		}
		r.running.Go(func() {
			defer func() { <-r.places }()
			r.compute(ctx, s.row, t)
		})
	}
	return nil
}

// trial returns the work of a cell of a trace.
func (r *shardRun) trial(s share, t *replay.Prepared, card device.Size) (*compare.Trial, error) {
	row := &r.plan.Rows[s.row]
	d, err := ParseDevice(row.Device)
	if err != nil {
		return nil, err
	}
	o := compare.Options{Training: r.training, Cells: r.cells, Failures: true, Rotate: s.part}
	if s.parts > 1 || float64(row.Events)*typicalReplays[row.Search] > longSearch {
		o.Probes = r.cells
	}
	return row.trial(r.pool, t, r.setups[s.row], d, card, o), nil
}

// mismatch is the error of a row that differs from the opened file or from this program.
type mismatch struct {
	row        int // its number
	of         *Row
	figure     string // column of the plan
	plan, here string // its values
}

func (e *mismatch) Error() string {
	learned := ""
	if e.of.Learn != "" {
		learned = ", or the trace that it learns from has changed"
	}
	return fmt.Sprintf("row %d of the plan, %s on %s: its %s is %s in this program and %s in the plan: another version "+
		"made the plan%s, so plan again", e.row, e.of.Strategy, e.of.Trace, e.figure, e.here, e.plan, learned)
}

// check returns a [mismatch] unless a row agrees with the file and the task.
func (o *opening) check(n int, row *Row, t *task) error {
	if o.events != row.Events {
		return &mismatch{n, row, "events", strconv.Itoa(row.Events), strconv.Itoa(o.events)}
	}
	key, err := t.key()
	if err == nil && key != row.Cell {
		err = &mismatch{n, row, "cell", row.Cell, key}
	}
	return err
}

// compute computes a cell and counts its result.
func (r *shardRun) compute(ctx context.Context, row int, t task) {
	err := t.run(ctx)
	_, failed := errors.AsType[cell.Failure](err)
	different, disagrees := errors.AsType[*cell.Disagreement](err)
	switch {
	case disagrees:
		if err := r.dispute(ctx, row, different); err != nil {
			r.abort(err)
			return
		}
		r.count(func(s *Summary) { s.Disagreed = append(s.Disagreed, different) }, false)
	case err != nil && !failed:
		r.abort(err)
		return
	default:
		r.count(func(s *Summary) { s.Computed++ }, failed)
	}
	if r.Done != nil {
		r.Done()
	}
}

// dispute names the cell of a row in the store, if workers disagree on one of its replays.
func (r *shardRun) dispute(ctx context.Context, row int, d *cell.Disagreement) error {
	name := r.plan.Rows[row].Cell
	if d.Cell == name {
		return nil
	}
	err := r.Store.Put(ctx, cell.ConflictName(name, d.Cell), []byte(d.Error()+"\n"))
	if errors.Is(err, cell.ErrTaken) {
		return nil
	}
	return err
}

// count changes the summary.
func (r *shardRun) count(add func(*Summary), failed bool) {
	r.lock.Lock()
	defer r.lock.Unlock()
	add(&r.summary)
	if failed {
		r.summary.Failed++
	}
}
