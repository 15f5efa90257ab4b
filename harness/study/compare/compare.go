package compare

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/cell"
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
	Single  bool     // only the measuring replays, no search
	Once    bool     // one measuring replay instead of the median of three
	Origins []Origin // by trace: where it was recorded; nil: not known
	// Training is the result of [Learn]; nil: no strategy has a forecast.
	Training *Training
	// Cells are runs that are computed only once; nil: all are computed. Replays on a GPU are never
	// stored.
	Cells *cell.Cells
	// Failures makes a failure that every repetition of a run would have its result, a [Failure].
	Failures bool
	// Probes are replays that are computed only once, so that an interrupted search continues and
	// several programs share one; nil: all are computed.
	Probes *cell.Cells
	// Rotate is by how many places the capacities that are tried at once are rotated, so that programs
	// that share a search begin with different ones.
	Rotate int
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

// Run holds the figures of one strategy on one trace. docs/metrics.md defines each figure.
type Run struct {
	Figures
	Measured
}

// Measured are the figures of a run that differ between machines, replays or builds.
type Measured struct {
	// host memory of the strategy at the end; null: not known
	MetadataBytes *device.Size `json:"metadata_bytes"`
	NsPerOp       float64      `json:"ns_per_op"` // median of three replays
	// NsPerOpByRef is the same of replays that free by reference, where the strategy can
	NsPerOpByRef *float64 `json:"ns_per_op_by_reference,omitempty"`
	// NsPerOp is of the strategy's own clock, where it does its work
	SelfTimed bool `json:"self_timed,omitempty"`
}

// Figures are the exact figures of a run: equal on every machine, as long as no version in the key
// of its cell changes. Sizes are bytes.
type Figures struct {
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
	// hash of the trace that the strategy planned by; empty: by none
	LearnedFrom string `json:"learned_from_sha256,omitempty" flat:"-"`
}

// Completed reports whether every request was granted in the measuring replay. If not, its figures
// are of a part of the trace only.
func (r *Figures) Completed() bool { return r.Starts && r.OOMs == 0 && r.Refused == 0 }

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
		trial.RecordedOn(own.Card)
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
