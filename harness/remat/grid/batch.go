package grid

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/remat"
)

// BatchSchema is the schema of a [BatchReport] in JSON.
const BatchSchema = "vramyard-remat-batch/1"

// NoEviction stands for a heuristic in a [Fit] of runs that do without eviction.
const NoEviction = "no eviction"

// Sizes is a range of batch sizes: From, From+Step and so on, up to To.
type Sizes struct {
	From int `json:"from"` // smallest
	To   int `json:"to"`   // bound of the largest
	Step int `json:"step"` // distance
}

// maxSizes bounds the number of batch sizes of a range.
const maxSizes = 10_000

var errSizes = fmt.Errorf("want FROM:TO or FROM:TO:STEP, such as 32:512 or 32:512:16, of at most %d batch sizes "+
	"from 1 to %d", maxSizes, remat.MaxBatch)

// ParseSizes reads FROM:TO or FROM:TO:STEP.
func ParseSizes(text string) (Sizes, error) {
	s := Sizes{Step: 1}
	fields := strings.Split(text, ":")
	if len(fields) < 2 || len(fields) > 3 {
		return s, fmt.Errorf("range %.40q: %w", text, errSizes)
	}
	for i, to := range []*int{&s.From, &s.To, &s.Step}[:len(fields)] {
		n, err := strconv.Atoi(fields[i])
		if err != nil || n < 1 || n > remat.MaxBatch {
			return s, fmt.Errorf("range %.40q: %w", text, errSizes)
		}
		*to = n
	}
	if s.From > s.To || s.count() > maxSizes {
		return s, fmt.Errorf("range %.40q: %w", text, errSizes)
	}
	return s, nil
}

func (s Sizes) count() int { return (s.To-s.From)/s.Step + 1 }

// Last returns the largest batch size of the range.
func (s Sizes) Last() int { return s.From + (s.count()-1)*s.Step }

// Fit is the answer for a budget, strategy, ladder and heuristic: how large a batch completes.
type Fit struct {
	Budget    device.Size `json:"budget_bytes"` // memory of the run
	Strategy  string      `json:"strategy"`     // name and preset, or counting
	Ladder    string      `json:"ladder"`       // steps tried after a refusal
	Heuristic string      `json:"heuristic"`    // heuristic that chose victims, or NoEviction
	// every batch size of the range up to this one completes; null: the smallest fails
	EveryUpTo *int `json:"every_batch_up_to"`
	// time of that run including moves, in times of the log; null: no such run, or the log has no time
	Overhead *float64 `json:"total_overhead"`
	// verdict of the next batch size; empty if the whole range completes
	FirstFailure remat.Verdict `json:"first_failure_verdict,omitempty"`
	// largest batch size of the range that completes; null: none
	Largest *int `json:"largest_batch"`

	Baseline bool `json:"-"` // a baseline, never reported as the winner
}

// Evicts is the verdict of a run without eviction that found no memory.
const Evicts remat.Verdict = "evicts"

// BatchReport is the result of [LargestBatches].
type BatchReport struct {
	Schema     string           `json:"schema"`     // the constant BatchSchema
	Provenance provenance.Build `json:"provenance"` // the program
	Settings
	Recorded   []Recorded        `json:"recorded"`    // the logs, by batch size
	Deviations []remat.Deviation `json:"deviations"`  // of recordings that the prediction did not use
	Sizes      Sizes             `json:"batch_sizes"` // sizes that were tried
	Fits       []Fit             `json:"fits"`        // by budget, strategy, ladder and heuristic
}

// Recorded names a recording.
type Recorded struct {
	Batch  int    `json:"batch"`      // batch size
	Model  string `json:"model"`      // name of the log
	SHA256 string `json:"log_sha256"` // of the decompressed file
}

// BatchLog is a log recorded at a batch size.
type BatchLog struct {
	Log
	Batch int // batch size
}

// BatchOptions of [LargestBatches]. Ratios is ignored; Done receives the share of fits.
type BatchOptions struct {
	Options
	Sizes   Sizes         // batch sizes to try
	Budgets []device.Size // memory of the runs
}

// LargestBatches searches the batch sizes that complete, for each budget, strategy, ladder and
// heuristic, and without eviction. Feasibility is not monotone in the batch size either. So the
// search runs every size of the range from the smallest up to the first failure, and from the
// largest down to the first success. It skips only sizes whose lower bound exceeds the budget. If
// ctx ends, it returns its error and the finished fits.
func LargestBatches(ctx context.Context, logs []BatchLog, setups []setting.Setup, o BatchOptions) (*BatchReport,
	error) {
	r := &BatchReport{Schema: BatchSchema, Provenance: provenance.Read(), Settings: o.Settings, Sizes: o.Sizes}
	var recordings []remat.Recording
	var unnamed []Recorded // for cells
	for _, l := range slices.SortedStableFunc(slices.Values(logs), func(a, b BatchLog) int { return a.Batch - b.Batch }) {
		recordings = append(recordings, remat.Recording{Batch: l.Batch, Schedule: l.Schedule})
		r.Recorded = append(r.Recorded, Recorded{l.Batch, l.Model, l.Schedule.SHA256})
		unnamed = append(unnamed, Recorded{Batch: l.Batch, SHA256: l.Schedule.SHA256})
	}
	b, err := remat.NewBatches(recordings)
	if err == nil {
		err = o.judge(b)
	}
	if err == nil {
		r.Deviations, err = b.Deviations()
	}
	if err != nil {
		return nil, err
	}
	fits := o.fits(setups, unnamed)
	finished := make([]bool, len(fits))
	var done atomic.Int64
	err = parallel(ctx, len(fits), o.Workers, func(i int) error {
		err := fits[i].search(ctx, b, &o)
		if finished[i] = err == nil; err == nil && o.Done != nil {
			o.Done(float64(done.Add(1)) / float64(len(fits)))
		}
		return err
	})
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	for i, f := range fits {
		if finished[i] {
			r.Fits = append(r.Fits, f.Fit)
		}
	}
	return r, ctx.Err()
}

// judge refuses logs that no run of the range can read.
func (o *BatchOptions) judge(b *remat.Batches) error {
	s, err := b.At(o.Sizes.Last())
	if err != nil {
		return err
	}
	for _, h := range o.Heuristics {
		if err := remat.CanRun(s, h); err != nil {
			return err
		}
	}
	if len(s.Storages) == 0 {
		return errEmpty
	}
	return nil
}

// fit is a search for a Fit.
type fit struct {
	Fit
	setup    *setting.Setup // nil: counting
	recorded []Recorded     // of the report, without names
}

func (o *BatchOptions) fits(setups []setting.Setup, recorded []Recorded) (all []fit) {
	heuristics := append([]string{NoEviction}, o.Heuristics...)
	for _, budget := range o.Budgets {
		for _, h := range heuristics {
			all = append(all, fit{Fit: Fit{Budget: budget, Strategy: Counting, Ladder: Evict, Heuristic: h},
				recorded: recorded})
		}
		for i := range setups {
			for _, ladder := range o.Ladders {
				for _, h := range heuristics {
					all = append(all, fit{Fit{Budget: budget, Strategy: setups[i].Name, Ladder: ladder, Heuristic: h,
						Baseline: setups[i].Baseline}, &setups[i], recorded})
				}
			}
		}
	}
	return all
}

func (f *fit) search(ctx context.Context, b *remat.Batches, o *BatchOptions) error {
	up := o.Sizes.From
	for ; up <= o.Sizes.Last(); up += o.Sizes.Step {
		run, err := f.run(ctx, up, b, o)
		if err != nil {
			return err
		}
		if run.Verdict != remat.OK {
			f.FirstFailure = run.Verdict
			break
		}
		n := up
		f.EveryUpTo, f.Largest, f.Overhead = &n, &n, run.TotalOverhead
	}
	for n := o.Sizes.Last(); n > up; n -= o.Sizes.Step {
		run, err := f.run(ctx, n, b, o)
		if err != nil {
			return err
		}
		if run.Verdict == remat.OK {
			f.Largest = &n
			break
		}
	}
	return nil
}

// run runs the log of a batch size. It runs nothing if the lower bound exceeds the budget.
func (f *fit) run(ctx context.Context, batch int, b *remat.Batches, o *BatchOptions) (*Run, error) {
	s, err := b.At(batch)
	if err != nil {
		return nil, err
	}
	if BoundsOf(s).LowerBound > f.Budget {
		return &Run{Verdict: remat.OOMCapacity}, nil
	}
	run := &Run{
		Model: fmt.Sprintf("batch size %d", batch), Strategy: f.Strategy, Heuristic: f.Heuristic, Budget: f.Budget,
	}
	of := searchKey{Heuristic: f.Heuristic, Ladder: f.Ladder, Budget: f.Budget, Limit: limitOf(o.Limit, s.Cost),
		Settings: o.Settings, Batch: batch, Recorded: f.recorded}
	return run, run.recall(ctx, o.Cells, f.recorded[0].SHA256, f.setup, of,
		func() error { return f.compute(ctx, s, run, &o.Options) })
}

// compute runs a log.
func (f *fit) compute(ctx context.Context, s *remat.Schedule, run *Run, o *Options) error {
	c, err := o.config(f.Budget, f.setup == nil)
	if err != nil {
		return err
	}
	c.Heuristic, c.Ladder, c.Limit, c.Budget = f.Heuristic, f.Ladder, limitOf(o.Limit, s.Cost), f.Budget
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	first := &firstEviction{stop: stop}
	if f.Heuristic == NoEviction {
		c.Heuristic, c.Observer = "lru", first // any heuristic: the run ends with the first victim
	}
	p := Point{log: &Log{Schedule: s}, setup: f.setup, config: c, run: run}
	err = p.named(p.compute(ctx))
	if first.seen && (err == nil || errors.Is(err, context.Canceled)) {
		p.run.Verdict, err = Evicts, nil
	}
	return err
}

// firstEviction ends a run when a victim was evicted because memory was short.
type firstEviction struct {
	stop func()
	seen bool
}

func (e *firstEviction) OnRun(int32, remat.Tensor, bool) {}
func (e *firstEviction) OnReturn(int32, bool)            {}
func (e *firstEviction) OnForget(int32)                  {}
func (e *firstEviction) OnEvict(_ int32, why remat.Cause) {
	if why == remat.Pressure || why == remat.Swapped {
		e.seen = true
		e.stop()
	}
}
