package grid

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/cell"
	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/remat"
)

// Run is the result of one point of the grid. If the verdict is not ok, it holds the figures up to
// the failure.
type Run struct {
	Model     string      `json:"model"`           // name of the log
	SHA256    string      `json:"log_sha256"`      // of the decompressed file
	Strategy  string      `json:"strategy"`        // name and preset, or counting
	Ladder    string      `json:"ladder"`          // steps tried after a refusal: one of remat.Ladders
	Heuristic string      `json:"heuristic"`       // heuristic that chose victims
	Liveness  string      `json:"liveness"`        // policy for dead tensors
	Ratio     Ratio       `json:"ratio"`           // budget as a share of the base peak
	Budget    device.Size `json:"budget_bytes"`    // the budget
	BasePeak  device.Size `json:"base_peak_bytes"` // peak of the log without a budget
	// no smaller budget suffices in any memory; less if constants can be swapped
	LowerBound device.Size   `json:"lower_bound_bytes"`
	Verdict    remat.Verdict `json:"verdict"` // outcome

	// clock relative to the compute time of the log; null if that is 0
	Overhead      *float64 `json:"overhead"`
	TotalOverhead *float64 `json:"total_overhead"`   // overhead including moves
	Clock         int64    `json:"clock_ns"`         // time of all operators run; starts at 1
	Compute       int64    `json:"model_compute_ns"` // first runs of operators
	Remat         int64    `json:"remat_compute_ns"` // reruns

	Peak               device.Size `json:"max_memory_bytes"`     // peak of tensor bytes
	EvictPressure      int         `json:"evict_pressure"`       // storages dropped because memory was short
	EvictWindow        int         `json:"evict_window"`         // of them: as part of a window of adjacent blocks
	EvictEager         int         `json:"evict_eager"`          // evictions for another reason
	EvictBytesPressure int64       `json:"evict_bytes_pressure"` // bytes of evict_pressure
	EvictBytesEager    int64       `json:"evict_bytes_eager"`    // bytes of evict_eager
	Remats             int         `json:"remat_ops"`            // operators rerun
	Collateral         int         `json:"remat_collateral"`     // missing outputs that a rerun restored, too
	ComputeCalls       int         `json:"compute_calls"`        // operators run, reruns included
	MakeRoomCalls      int         `json:"make_room_calls"`      // runs of operators that evicted a storage first
	// most reruns waiting for each other at once
	Deepest       int    `json:"deepest_chain"`
	VictimsSHA256 string `json:"evict_seq_sha256"` // of the victims of pressure in order

	// bytes of victims that overlap no block of the operator they made room for
	EvictBytesWasted int64 `json:"evict_bytes_wasted"`
	Refusals         int   `json:"refused_count"`         // refused requests, retries included
	RefusedFree      int64 `json:"refused_free_bytes"`    // free bytes, summed over refusals
	RefusedLargest   int64 `json:"refused_largest_bytes"` // bytes of the largest hole, summed over refusals
	Defrags          int   `json:"defrag_count"`          // defragmentations
	MovedBlocks      int   `json:"moved_count"`           // blocks moved
	MovedBytes       int64 `json:"moved_bytes"`           // bytes moved
	MoveTime         int64 `json:"move_ns"`               // time of moves, not part of the clock

	Swaps *remat.Swaps `json:"swap,omitempty"` // copies to the host; null if nothing could be swapped

	Baseline bool `json:"-"` // a baseline, never reported as the winner
}

// fill copies the figures of a result of a log.
func (r *Run) fill(res *remat.Result, log *remat.Schedule) {
	r.Verdict = res.Verdict
	if r.Verdict == remat.OOM { // counting has no other kind of failure
		r.Verdict = remat.OOMCapacity
	}
	r.Clock, r.Compute, r.Remat, r.Peak = res.Clock, res.ModelTime, res.RematTime, res.Peak
	for cause, n := range res.Evictions {
		switch remat.Cause(cause) {
		case remat.Pressure:
			r.EvictPressure, r.EvictBytesPressure = n, res.EvictedBytes[cause]
		case remat.Swapped: // in Swaps
		default:
			r.EvictEager += n
			r.EvictBytesEager += res.EvictedBytes[cause]
		}
	}
	if res.Swaps.Possible { // constants can leave memory too
		r.Swaps = &res.Swaps
		r.LowerBound = BoundsOf(log).Bottleneck
	}
	r.Remats, r.Collateral, r.ComputeCalls, r.MakeRoomCalls = res.Remats, res.Collateral, res.Runs, res.EvictingRuns
	r.Deepest, r.VictimsSHA256 = res.DeepestChain, res.VictimsSHA256
	r.EvictWindow, r.EvictBytesWasted = res.WindowEvictions, res.WastedBytes
	r.Refusals, r.RefusedFree, r.RefusedLargest = res.Refusals.Count, res.Refusals.Free, res.Refusals.Largest
	r.Defrags, r.MovedBlocks, r.MovedBytes, r.MoveTime = res.Moves.Defrags, res.Moves.Blocks, res.Moves.Bytes,
		res.Moves.Time
	if base := float64(log.Cost); base > 0 {
		x, total := float64(res.Clock)/base, float64(res.Clock+res.Moves.Time)/base
		r.Overhead, r.TotalOverhead = &x, &total
	}
}

// Case selects a run of a log with a strategy.
type Case struct {
	Heuristic string   `json:"heuristic"` // of remat.Heuristics or remat.Plans
	Ladder    string   `json:"ladder"`    // of remat.Ladders
	Ratio     Ratio    `json:"ratio"`     // budget as a share of the base peak
	Settings  Settings `json:"settings"`  // the rest
}

// Check validates a case without running anything.
func (c *Case) Check() error {
	if c.Ratio <= 0 || c.Ratio > maxRatio {
		return fmt.Errorf("ratio %v: %w", c.Ratio, errRatio)
	}
	return cmp.Or(CheckLimit(c.Settings.Limit), c.Settings.Check(c.Heuristic, c.Ladder))
}

// Point is one run of a log.
type Point struct {
	log      *Log
	setup    *setting.Setup // nil: counting
	run      *Run           // the result; its name and settings are set before the run
	config   remat.Config
	settings Settings
	// Cells are runs that are computed only once; nil: the run is computed.
	Cells *cell.Cells
	// Failures makes the errors and panics that every repetition would have a [cell.Failure], which
	// is kept in the cell.
	Failures bool
}

// NewPoint returns a run. The base is the log's, with the liveness of the case. A nil setup is the
// counting memory.
func NewPoint(l *Log, b *Base, setup *setting.Setup, c Case) (*Point, error) {
	p := &Point{log: l, setup: setup, settings: c.Settings, run: &Run{
		Model: b.Model, SHA256: b.SHA256, Strategy: Counting, Ladder: c.Ladder, Heuristic: c.Heuristic,
		Liveness: c.Settings.Liveness, Ratio: c.Ratio, Budget: c.Ratio.Of(b.Peak), BasePeak: b.Peak, LowerBound: b.LowerBound,
	}}
	if setup != nil {
		p.run.Strategy, p.run.Baseline = setup.Name, setup.Baseline
	}
	var err error
	if p.config, err = c.Settings.config(p.run.Budget, setup == nil); err != nil {
		return nil, err
	}
	p.config.Heuristic, p.config.Ladder, p.config.Limit = c.Heuristic, c.Ladder, limitOf(c.Settings.Limit, b.Time)
	p.config.Budget = p.run.Budget
	return p, nil
}

func (p *Point) memory() (remat.Memory, func() error, error) {
	if p.setup == nil {
		return &remat.Counter{Budget: p.run.Budget}, func() error { return nil }, nil
	}
	m, err := remat.Over(*p.setup, p.run.Budget)
	if err != nil {
		return nil, nil, err
	}
	return m, m.Close, nil
}

func (p *Point) search() searchKey {
	return searchKey{Heuristic: p.run.Heuristic, Ladder: p.run.Ladder, Budget: p.run.Budget, Limit: p.config.Limit,
		Settings: p.settings}
}

// Execute runs the point, unless its cell is stored, and returns the result.
func (p *Point) Execute(ctx context.Context) (*Run, error) {
	compute := p.compute
	if p.Failures {
		compute = p.judged
	}
	err := p.run.recall(ctx, p.Cells, p.log.Schedule.SHA256, p.setup, p.search(), func() error { return compute(ctx) })
	return p.run, p.named(err)
}

// named returns an error with the names of the run.
func (p *Point) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s on %s by %s at %v: %w", p.run.Strategy, p.run.Model, p.run.Heuristic, p.run.Ratio, err)
}

func (p *Point) compute(ctx context.Context) error {
	m, done, err := p.memory()
	if err != nil {
		return err
	}
	p.config.Stop = ctx.Done()
	res, err := remat.Run(p.log.Schedule, m, p.config)
	if end := done(); err == nil {
		err = end
	}
	if err == nil && res.Verdict == remat.Stopped {
		err = ctx.Err()
	}
	if err == nil {
		p.run.fill(&res, p.log.Schedule)
	}
	return err
}

// Grid runs every log with every strategy, counting first, under every heuristic and budget. If ctx
// ends, it returns its error and a report with the completed lines.
func Grid(ctx context.Context, logs []Log, setups []setting.Setup, o Options) (*Report, error) {
	r := &Report{Schema: Schema, Provenance: provenance.Read(), Settings: o.Settings}
	var points []*Point
	for i := range logs {
		base, err := BaseOf(logs[i], o.Liveness, o.Heuristics)
		if err != nil {
			return nil, err
		}
		r.Logs = append(r.Logs, base)
		more, err := pointsOf(&logs[i], &base, setups, &o)
		if err != nil {
			return nil, err
		}
		points = append(points, more...)
	}
	finished := make([]bool, len(points))
	all := 0 // schedule steps of all runs
	for _, p := range points {
		all += len(p.log.Schedule.Steps)
	}
	var steps atomic.Int64 // schedule steps of completed runs
	err := parallel(ctx, len(points), o.Workers, func(i int) error {
		_, err := points[i].Execute(ctx)
		if finished[i] = err == nil; err == nil && o.Done != nil {
			o.Done(float64(steps.Add(int64(len(points[i].log.Schedule.Steps)))) / float64(all))
		}
		return err
	})
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	for at := 0; at < len(points); at += len(o.Ratios) {
		end := at + len(o.Ratios)
		if slices.Contains(finished[at:end], false) {
			continue
		}
		for _, p := range points[at:end] {
			r.Runs = append(r.Runs, *p.run)
		}
	}
	r.Lines = LinesOf(r.Runs)
	return r, ctx.Err()
}

// pointsOf returns the points of a log, line by line. The counting memory runs with one ladder,
// since it has no blocks to move.
func pointsOf(l *Log, b *Base, setups []setting.Setup, o *Options) (points []*Point, err error) {
	line := func(heuristic, ladder string, setup *setting.Setup) {
		for _, ratio := range o.Ratios {
			p, failed := NewPoint(l, b, setup, Case{heuristic, ladder, ratio, o.Settings})
			if failed != nil {
				err = failed
				return
			}
			p.Cells = o.Cells
			points = append(points, p)
		}
	}
	for _, h := range o.Heuristics {
		line(h, Evict, nil)
		for i := range setups {
			for _, ladder := range o.Ladders {
				line(h, ladder, &setups[i])
			}
		}
	}
	return points, err
}

func limitOf(times float64, model int64) int64 {
	const most = 1 << 62
	return int64(max(1, min((times-1)*float64(model), most))) // 0 would mean no limit
}

// parallel calls f(0) … f(n-1) on several workers until one fails or ctx ends. It returns the
// error with the lowest index.
func parallel(ctx context.Context, n, workers int, f func(int) error) error {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	var next atomic.Int64
	var failed atomic.Bool
	errs := make([]error, n)
	var wg sync.WaitGroup
	for range min(workers, n) {
		wg.Go(func() {
			for !failed.Load() && ctx.Err() == nil {
				i := int(next.Add(1) - 1)
				if i >= n {
					return
				}
				if errs[i] = f(i); errs[i] != nil {
					failed.Store(true) // lower indices have started and will finish
				}
			}
		})
	}
	wg.Wait()
	return cmp.Or(cmp.Or(errs...), ctx.Err())
}
