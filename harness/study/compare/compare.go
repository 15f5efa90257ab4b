package compare

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
)

// Schema names the form of [Report] in JSON.
const Schema = "vramyard-compare/1"

// timedRuns is the number of measuring replays; their median time is kept.
const timedRuns = 3

// Options of a comparison. The zero value is useful.
type Options struct {
	Capacity device.Size   // device of the measuring replay; 0 is the recorded card of each trace, or else an ample one
	Device   replay.Target // device; the comparison sets its capacity
	Workers  int           // concurrent replays; 0 is one for each core
	Memory   device.Size   // bytes that concurrent replays may take; 0 is unlimited. One replay always runs
	// FreeAt determines when a strategy without streams gets a delayed free.
	FreeAt replay.FreeAt
	// Across runs each strategy on every trace before the next strategy, instead of all strategies on
	// one trace.
	Across bool
	// Done is called with each finished run and its index in the report, concurrently; nil for
	// none.
	Done func(index int, r *Run)
	// Replayed is called at intervals with the number of events replayed since the last call, from
	// many goroutines; nil for none.
	Replayed func(events int)
	// Share is called as often, with the estimated fraction of the work done, 0 to 1; nil
	// for none.
	Share func(done float64)
	// worked is called as often with the events replayed since the last call, and the time that they
	// took.
	worked func(events int, took time.Duration)
	// Quick is for a search over many settings: one measuring replay without fragmentation,
	// and an eighth of the probes below the minimum.
	Quick   bool
	Once    bool     // one measuring replay instead of the median of three
	Origins []Origin // by trace: where it was recorded; nil: not known
	// Training is the result of [Learn]; nil: no strategy has a forecast.
	Training *Training
}

// Origin is the allocator and the device that a trace was recorded on.
type Origin struct {
	Setup setting.Setup // stands for the recorded allocator, with its settings; no name: not known
	Card  device.Size   // least capacity of the recorded device in bytes; 0: not known
}

func (o *Options) origin(trace int) Origin {
	if o.Origins == nil {
		return Origin{}
	}
	return o.Origins[trace]
}

// commonCard returns the capacity of the card on which all traces were recorded; 0 if they were
// recorded on different ones, or one is not known.
func (o *Options) commonCard() device.Size {
	if len(o.Origins) == 0 || slices.ContainsFunc(o.Origins, func(r Origin) bool { return r.Card != o.Origins[0].Card }) {
		return 0
	}
	return o.Origins[0].Card
}

// Setups returns the setups for a trace, by its number: the given ones, and the recorded one
// unless it is among them.
func (o *Options) Setups(trace int, setups []setting.Setup) []setting.Setup {
	own := o.origin(trace).Setup
	if own.Name == "" || slices.ContainsFunc(setups, func(s setting.Setup) bool { return same(s, own) }) {
		return setups
	}
	own.Name += asRecorded
	return append(slices.Clip(setups), own)
}

// asRecorded is the suffix of a recorded setup that equals no compared one.
const asRecorded = ", as recorded"

// same reports whether two setups have the same strategy and configuration.
func same(a, b setting.Setup) bool {
	family := func(s setting.Setup) string {
		name, _, _ := strings.Cut(strings.TrimSuffix(s.Name, asRecorded), ":")
		return name
	}
	x, errX := json.Marshal(a.Config)
	y, errY := json.Marshal(b.Config)
	return family(a) == family(b) && errX == nil && errY == nil && bytes.Equal(x, y)
}

// Report is the outcome of a comparison: one run for each trace and strategy, in the order
// in which they were given.
type Report struct {
	Schema     string           `json:"schema"`     // the constant Schema
	Provenance provenance.Build `json:"provenance"` // of the program
	Device     replay.Target    `json:"device"`     // device; its capacity is 0 if the traces have none in common: see Run.Device
	// FreeAt is when strategies without streams got delayed frees.
	FreeAt replay.FreeAt `json:"free_at"`
	// Learned is the trace of an earlier run that strategies planned by; absent: none did.
	Learned *Training `json:"learned,omitempty"`
	Runs    []Run     `json:"runs"` // by trace, then by strategy
}

// Run holds the figures of one strategy on one trace. Sizes are bytes. docs/metrics.md
// defines each figure.
type Run struct {
	Trace       string          `json:"trace"`        // name of the trace
	TraceSHA256 string          `json:"trace_sha256"` // hash of its decompressed file
	Strategy    string          `json:"strategy"`     // name and preset
	Config      json.RawMessage `json:"config"`       // as in the measuring replay
	Events      int             `json:"events"`       // of the trace

	// others are compared with the strategy; no verdict names it the winner
	Baseline   bool        `json:"is_baseline"`
	AsRecorded bool        `json:"as_recorded"`             // the recorded program had this strategy and these settings
	Card       device.Size `json:"recorded_capacity_bytes"` // least capacity of the recorded device; 0: not known

	// why the trace is not the whole recorded run; empty: no gap is known
	Gap        string      `json:"lacks"`
	LowerBound device.Size `json:"lower_bound_bytes"` // peak of live bytes as requested
	// null: none was found, or the strategy refuses some size
	MinCapacity *device.Size `json:"min_capacity_bytes"`
	// largest capacity above the minimum that was seen to fail; null: none
	FailsAbove *device.Size `json:"failure_above_bytes"`
	// smallest capacity from which on nothing that was tried fails up to 1.25 times it; null: none
	// was found, or it was not searched
	SafeFrom      *device.Size `json:"safe_from_bytes"`
	SearchedUpTo  device.Size  `json:"searched_up_to_bytes"`        // largest capacity that was tried
	Probes        int          `json:"probe_count"`                 // capacities that the search tried
	Device        device.Size  `json:"device_bytes"`                // capacity of the measuring replay
	PeakRequested device.Size  `json:"peak_requested_bytes"`        // most bytes requested by live blocks
	PeakAllocated device.Size  `json:"peak_allocated_bytes"`        // most bytes granted to them
	PeakReserved  device.Size  `json:"peak_reserved_bytes"`         // most bytes held from the device
	Waste         float64      `json:"reservation_waste"`           // 1 - peak requested / peak reserved
	External      float64      `json:"external_fragmentation_peak"` // highest 1 - largest free chunk / free bytes
	// 1 - requested / allocated when allocated was highest
	Internal float64 `json:"internal_fragmentation_at_peak"`
	// whether the strategy's initial reservation fits the device; if false, the fields below are zero
	Starts bool `json:"starts"`
	// why the strategy rejects a change of the settings in the trace; only whatif sets it
	Rejects     string `json:"rejects,omitempty" flat:"-"`
	OOMs        uint64 `json:"oom_count"`     // requests that found no memory
	Refused     uint64 `json:"refused_count"` // requests the strategy can never grant
	DeviceCalls uint64 `json:"device_calls"`  // of all kinds
	// their time by the cost model of the device
	DeviceTime uint64 `json:"device_time_ns"`
	// host memory of the strategy at the end; null: not known
	MetadataBytes *device.Size `json:"metadata_bytes"`
	NsPerOp       float64      `json:"ns_per_op"` // median of three replays
	// NsPerOpByRef is the same of replays that free by reference, where the strategy can
	NsPerOpByRef *float64 `json:"ns_per_op_by_reference,omitempty"`
	// NsPerOp is of the strategy's own clock, where it does its work
	SelfTimed bool `json:"self_timed,omitempty"`
	// hash of the trace that the strategy planned by; empty: by none
	LearnedFrom string `json:"learned_from_sha256,omitempty" flat:"-"`
}

// Completed reports whether every request was granted in the measuring replay. If not, its figures
// are of a part of the trace only.
func (r *Run) Completed() bool { return r.Starts && r.OOMs == 0 && r.Refused == 0 }

// Compare replays every trace through every setup. If ctx ends, the error is the context's and the
// report has the finished runs.
func Compare[S trace.Source](ctx context.Context, traces []S, setups []setting.Setup, o Options) (*Report, error) {
	p := NewPool(o.Device.AtOnce(o.Workers), o.Memory)
	jobs := o.jobs(len(traces), setups)
	report := &Report{Schema: Schema, Provenance: provenance.Read(),
		Device: o.Device.Used(cmp.Or(o.Capacity, o.commonCard())),
		FreeAt: cmp.Or(o.FreeAt, replay.AtCompleted), Learned: o.Training, Runs: make([]Run, len(jobs))}
	errs := make([]error, len(jobs))
	var running sync.WaitGroup
	// Twice as many trials as concurrent replays keep the pool busy. They end one after the other, so
	// an interrupted comparison has many finished runs.
	places := make(chan struct{}, 2*cap(p.free))
	prepared := make([]*replay.Prepared, len(traces))
	known := newEstimate(traces, jobs)
	for _, j := range jobs {
		i, k := j.trace, j.run
		if prepared[i] == nil {
			if !o.Across {
				clear(prepared) // traces that are no longer needed
			}
			if prepared[i], errs[k] = replay.Prepare(ctx, traces[i]); errs[k] != nil {
				if ctx.Err() != nil {
					continue // runs that have begun may be completed
				}
				running.Wait()
				return nil, errs[k]
			}
		}
		own := o.origin(i)
		trial := NewTrial(p, prepared[i], j.setup, o.estimated(known, k))
		trial.card = own.Card
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			run, err := trial.Run(ctx)
			run.AsRecorded, run.Card = own.Setup.Name != "" && same(j.setup, own.Setup), own.Card
			report.Runs[k], errs[k] = run, err
			if o.Share != nil {
				o.Share(known.add(k, 0, 0, true))
			}
			if o.Done != nil && errs[k] == nil {
				o.Done(k, &report.Runs[k])
			}
		})
	}
	running.Wait()
	var finished []Run
	for i, err := range errs { // the first in order, so that the message does not depend on timing
		switch {
		case err == nil:
			finished = append(finished, report.Runs[i])
		case ctx.Err() == nil || !errors.Is(err, ctx.Err()):
			return nil, err
		}
	}
	if len(finished) < len(errs) {
		report.Runs = finished
		return report, ctx.Err()
	}
	return report, nil
}

// job is one run of a report.
type job struct {
	run, trace, column int // index of the run, of its trace, and of its setup in the trace's runs
	setup              setting.Setup
}

func (o *Options) jobs(traces int, setups []setting.Setup) (all []job) {
	for i := range traces {
		for j, s := range o.Setups(i, setups) {
			all = append(all, job{len(all), i, j, s})
		}
	}
	if o.Across {
		slices.SortStableFunc(all, func(a, b job) int { return cmp.Compare(a.column, b.column) })
	}
	return all
}

// Trial is one strategy on one trace.
type Trial struct {
	pool  *Pool
	trace *replay.Prepared
	setup setting.Setup
	bound device.Size // lower bound of the trace
	card  device.Size // of the recorded run; 0: not known
	o     Options

	replayed atomic.Uint64 // events
	recalled atomic.Uint64 // events that an earlier replay made unnecessary
	known    outcomes      // of the replays so far
	charged  device.Size   // peak of the last Measure
	measured *Run          // row of the last Measure; nil before the first
	followed *followed     // another trial that decides alike; nil: none is known
}

// Replayed returns how many events the trial has replayed so far.
func (c *Trial) Replayed() uint64 { return c.replayed.Load() }

// Recalled returns how many more events the trial would have replayed without the outcomes of
// earlier replays.
func (c *Trial) Recalled() uint64 { return c.recalled.Load() }

// NewTrial returns a trial whose replays wait for a place in the pool.
func NewTrial(p *Pool, t *replay.Prepared, s setting.Setup, o Options) *Trial {
	return &Trial{pool: p, trace: t, setup: s, bound: t.LowerBound(), o: o}
}

// Run measures, searches the minimum capacity to its end, and measures again on the first of
// [Trial.again] on which the trace completes.
//
// Every method ends with the error of ctx soon after that ends.
func (c *Trial) Run(ctx context.Context) (Run, error) {
	row, err := c.Measure(ctx, cmp.Or(c.o.Capacity, c.card, c.ample()))
	if err != nil {
		return Run{}, err
	}
	if row.Refused > 0 {
		return row, nil
	}
	found, err := c.search(ctx, c.completesFrom(&row))
	if err != nil {
		return Run{}, err
	}
	for _, n := range c.again(&row, found.Minimum()) {
		if row, err = c.Measure(ctx, n); err != nil {
			return Run{}, err
		}
		if row.Completed() {
			break
		}
	}
	row.MinCapacity, row.FailsAbove, row.SafeFrom = found.Minimum(), found.FailsAbove(), found.SafeFrom()
	row.Probes, row.SearchedUpTo = found.Tried()
	return row, nil
}

// again returns the capacities of further measuring replays, nil if the user set a capacity or the
// trace failed on its recorded card. A strategy that reserves its whole limit at once is measured
// on its minimum capacity, because its reserved bytes on a larger device mean nothing. A strategy
// that fails on the ample device is measured on a device that is ample by its minimum capacity, or
// else on the minimum itself.
func (c *Trial) again(row *Run, minimum *device.Size) []device.Size {
	switch {
	case c.o.Capacity != 0 || minimum == nil || c.card != 0 && !row.Completed():
		return nil
	case c.setup.Preallocates:
		return []device.Size{*minimum}
	case !row.Completed():
		return []device.Size{c.o.Device.Ample(Ample(*minimum)), *minimum}
	}
	return nil
}

func (c *Trial) ample() device.Size { return c.o.Device.Ample(Ample(c.bound)) }

// completesFrom returns the capacity from which on the trace is known to complete: the peak of the
// charged memory in the last Measure. It is 0, for unknown, if the capacity may influence the
// strategy; see [setting.UnboundConfig].
func (c *Trial) completesFrom(row *Run) device.Size {
	if !row.Completed() || !c.setup.Unbound() || c.trace.Changes() {
		return 0
	}
	return device.AlignUp(c.charged, Grid)
}

// search searches the minimum capacity from an ample one down, and upwards if need be.
func (c *Trial) search(ctx context.Context, completesFrom device.Size) (*Search, error) {
	effort := thorough
	if c.o.Quick {
		effort = quick
	}
	s := NewSearch(Bounds{Floor: c.bound, First: c.ample(), CompletesFrom: completesFrom}, effort)
	for len(s.Points()) > 0 {
		answers, err := c.complete(ctx, s.Points())
		if err != nil {
			return nil, err
		}
		s.Answer(answers)
	}
	return s, nil
}

// sideBySide is how many capacities of a trial are replayed at once. They cannot use each other's
// outcomes: which one ends first depends on the scheduler, and so would the number of events. With
// 2, 4 and 8 the full grid of whatif replays 1.10, 1.20 and 1.25 times the events of one at a time
// on examples/oom/layouts.pickle.gz.
const sideBySide = 2

// complete reports for each of some capacities whether the trace completes on it. Outcomes that
// earlier replays show are not replayed.
func (c *Trial) complete(ctx context.Context, points []device.Size) ([]bool, error) {
	answers := make([]bool, len(points))
	for next := 0; next < len(points); {
		var open []int
		for ; next < len(points) && len(open) < sideBySide; next++ {
			known, ok := c.recall(points[next])
			if answers[next] = known; !ok {
				open = append(open, next)
			}
		}
		err := c.pool.Each(len(open), c.trace, func(k int) error {
			res, err := c.replay(ctx, points[open[k]], replay.Options{StopAtOOM: true, ByRef: true})
			answers[open[k]] = err == nil && completed(res)
			return err
		})
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return answers, err
		}
	}
	return answers, nil
}

// PeakCharged returns the most bytes that the device counted against its capacity in the last
// Measure: those reserved, in whole pages of its own. 0 before the first.
func (c *Trial) PeakCharged() device.Size { return c.charged }

// Completes reports whether the trace completes on a device of n bytes. The replay ends at the
// first request that finds no memory.
func (c *Trial) Completes(ctx context.Context, n device.Size) (bool, error) {
	answers, err := c.complete(ctx, []device.Size{n})
	return answers[0], err
}

// recall returns whether the trace completes on n bytes, and false if earlier replays do not show
// it.
func (c *Trial) recall(n device.Size) (completes, ok bool) {
	known, ok := c.known.of(c.setup.ForCapacity(n), n)
	if !ok {
		known, ok = c.followed.outcome(n)
	}
	if ok {
		c.recalled.Add(known.events)
	}
	return known.completes, ok
}

// completed reports whether a replay granted every request that fitted memory.
func completed(res *replay.Result) bool { return res != nil && res.OOMs == 0 }

// Measure replays with all figures on a device of n bytes, unless the last Measure did. The row it
// returns has no minimum capacity.
func (c *Trial) Measure(ctx context.Context, n device.Size) (Run, error) {
	if c.measured != nil && c.measured.Device == n {
		return *c.measured, nil
	}
	if row, ok := c.follow(n); ok {
		return row, ctx.Err()
	}
	res, err := c.measure(ctx, n)
	if err != nil {
		return Run{}, err
	}
	t := c.trace.Head()
	row := Run{
		Trace: t.Header.Name, TraceSHA256: t.Header.Hash, Gap: c.trace.Gap(), Strategy: c.setup.Name,
		Baseline: c.setup.Baseline,
		Events:   t.Events, LowerBound: c.bound, Device: n,
	}
	if c.setup.Forecast != nil && c.o.Training != nil {
		row.LearnedFrom = c.o.Training.TraceSHA256
	}
	row.fill(res, c.setup.ForCapacity(n))
	if res != nil {
		c.charged = res.Peak.Charged
	}
	c.measured = &row
	return row, nil
}

// fill copies the figures of a replay. It is nil if the strategy's initial reservation does not fit
// the device.
func (r *Run) fill(res *replay.Result, setup setting.Setup) {
	if res == nil {
		r.Config, _ = json.Marshal(setup.Config) // a replay of the same setup encoded it before
		return
	}
	r.Starts = true
	r.Config = res.Config
	r.PeakRequested, r.PeakAllocated, r.PeakReserved = res.Peak.Requested, res.Peak.Allocated, res.Peak.Reserved
	r.Waste, r.External, r.Internal = res.ReservationWaste, res.ExternalFragmentationPeak, res.InternalFragmentation
	r.OOMs, r.Refused = res.OOMs, res.Refused
	r.DeviceCalls, r.DeviceTime = res.DeviceCalls, res.DeviceTime
	r.MetadataBytes, r.NsPerOp, r.SelfTimed = res.MetadataBytes, res.NsPerOp, res.SelfTimed
	r.NsPerOpByRef = res.NsPerOpByRef
}

// measure replays with all figures on a device of n bytes and takes the median time of
// several runs, and of as many that free by reference. It returns nil if the strategy cannot be
// built on such a device.
func (c *Trial) measure(ctx context.Context, n device.Size) (*replay.Result, error) {
	o, runs := replay.Options{Figures: !c.o.Quick}, timedRuns
	if c.o.Quick || c.o.Once {
		runs = 1
	}
	var first *replay.Result
	var times, byRef []float64
	for len(times) < runs { // sequentially: repeats that share the cores would disturb each other's times
		res, err := c.alone(ctx, n, o)
		if err != nil || res == nil {
			return nil, err
		}
		first, times = cmp.Or(first, res), append(times, res.NsPerOp)
		if runs == 1 || !res.Referenced {
			continue
		}
		o.ByRef = true
		if res, err = c.alone(ctx, n, o); err != nil {
			return nil, err
		}
		o.ByRef, byRef = false, append(byRef, res.NsPerOp)
	}
	first.NsPerOp = median(times)
	if byRef != nil {
		ns := median(byRef)
		first.NsPerOpByRef = &ns
	}
	return first, nil
}

func median(times []float64) float64 {
	slices.Sort(times)
	return times[len(times)/2]
}

// alone is replay with a place in the pool.
func (c *Trial) alone(ctx context.Context, n device.Size, o replay.Options) (res *replay.Result, err error) {
	err = c.pool.Each(1, c.trace, func(int) (err error) {
		res, err = c.replay(ctx, n, o)
		return err
	})
	return res, err
}

// replay runs the trace on a device of n bytes with the strategy's limit set to it. It returns nil
// if the strategy's initial reservation does not fit the device.
func (c *Trial) replay(ctx context.Context, n device.Size, o replay.Options) (*replay.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	o.FreeAt = c.o.FreeAt
	reported, at := 0, time.Now()
	o.Watch = func(events int) error {
		if c.o.Replayed != nil {
			c.o.Replayed(events - reported)
		}
		if c.o.worked != nil {
			now := time.Now()
			c.o.worked(events-reported, now.Sub(at))
			at = now
		}
		reported = events
		return ctx.Err()
	}
	on := c.o.Device
	on.Capacity = n
	dev, err := on.Open()
	if err != nil {
		return nil, err
	}
	defer dev.Close() // all was given back: the strategy is closed
	setup := c.setup.ForCapacity(n)
	res, err := c.trace.Run(setup, dev, o)
	if errors.Is(err, device.ErrOutOfMemory) {
		res, err = nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("device of %v: %w", n, err)
	}
	if res != nil {
		c.replayed.Add(uint64(res.Replayed))
	}
	c.known.add(setup, dev, res)
	return res, nil
}

// Ample returns a capacity in bytes that no sensible strategy exhausts: four times the lower
// bound, up to the next GiB.
func Ample(bound device.Size) device.Size {
	const most = 1 << 54 // a quarter of the simulated address space
	return max(device.AlignUp(4*min(bound, most/4), device.GiB), device.GiB)
}
