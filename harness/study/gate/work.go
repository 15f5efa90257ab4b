package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/study/top"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/internal/units"
)

// State is a canonical state of the pool in which the work begins.
type State string

// The states.
const (
	Empty State = "empty" // an empty pool with the blocks live before the judged steps
	Warm  State = "warm"  // after the warm-up steps, which begin with such a pool
)

// States lists the states in report order.
var States = []State{Empty, Warm}

// Figure is a judged figure.
type Figure string

// The figures.
const (
	MinCapacity  Figure = "min_capacity"  // bytes of the smallest device on which the replay completes
	PeakReserved Figure = "peak_reserved" // most bytes held from the device, where memory is ample
	PeakLive     Figure = "peak_live"     // most bytes requested by live blocks
	DeviceCalls  Figure = "device_calls"  // calls to the device during the work
)

// FigureNames lists the figures in report order.
var FigureNames = []Figure{MinCapacity, PeakReserved, PeakLive, DeviceCalls}

// Bytes reports whether the figure counts bytes.
func (f Figure) Bytes() bool { return f != DeviceCalls }

// Figures holds the figures of a state. A minimum capacity is absent if no tried device is large
// enough.
type Figures map[Figure]uint64

// Work is the judged part of a recording.
type Work struct {
	Name   string   // of the recording
	Hash   string   // of its file
	Steps  int      // judged, warm-up included; 0: the marks show no steps, and the work is the whole recording
	Warmup int      // of the steps; they only shape the pool of [Warm]
	Notes  []string // limits of the figures, as sentences

	states map[State]*canonical
	stacks top.Stacks // by ids of the recording; nil: not known
}

// Part selects the judged steps of a recording. The zero value selects all steps after one of
// warm-up.
type Part struct {
	Step   string // text of a mark at which steps begin, see [trace.StepsAt]; empty: as [trace.Steps] finds them
	Steps  *int   // steps to judge, warm-up included, from the first on; nil: all
	Warmup *int   // of them, the first ones; nil: one if there are two
}

var errNoHistory = errors.New("want a recording with a history of requests: this one has only the blocks of one moment")

// NewWork returns the work of a recording. stacks has the allocation stacks of src; nil: not known.
// It fails if the recording has no requests, or fewer steps than p asks for.
func NewWork(src trace.Source, stacks top.Stacks, p Part) (*Work, error) {
	head := src.Head()
	w := &Work{Name: head.Header.Name, Hash: head.Header.Hash, stacks: stacks, states: map[State]*canonical{}}
	steps, err := trace.Steps(src)
	if p.Step != "" {
		steps, err = trace.StepsAt(src, p.Step)
	}
	switch {
	case err != nil:
		return nil, err
	case p.Step != "" && len(steps) == 0:
		return nil, fmt.Errorf("no step begins: the recording has no mark %q", p.Step)
	}
	w.Steps = len(steps)
	if p.Steps != nil {
		if *p.Steps > len(steps) {
			return nil, fmt.Errorf("the recording has %s, the budget is of %d: record as many, or remove the figures "+
				"and the key steps, and write them again with --update", units.Several(len(steps), "step"), *p.Steps)
		}
		w.Steps = *p.Steps
	}
	w.Warmup = min(w.Steps/2, 1)
	if p.Warmup != nil {
		w.Warmup = *p.Warmup
	}
	switch {
	case w.Steps == 0 && w.Warmup > 0:
		return nil, fmt.Errorf("warmup %d: want 0, because the work is the whole recording", w.Warmup)
	case w.Steps > 0 && w.Warmup >= w.Steps:
		return nil, fmt.Errorf("warmup %d: want fewer than the %s", w.Warmup, units.Several(w.Steps, "step"))
	}
	if w.Steps == 0 {
		if err := w.add(src, Empty, trace.Span{End: head.Events}, false, 0); err != nil {
			return nil, err
		}
		return w, w.describe(src, len(steps))
	}
	judged := steps[w.Warmup:w.Steps]
	last := judged[len(judged)-1].End
	if err := w.add(src, Empty, trace.Span{First: judged[0].First, End: last}, true, 0); err != nil {
		return nil, err
	}
	if w.Warmup > 0 {
		span := trace.Span{First: steps[0].First, End: last}
		before, err := marksBetween(src, span.First, judged[0].First)
		if err != nil {
			return nil, err
		}
		if err := w.add(src, Warm, span, true, before); err != nil {
			return nil, err
		}
	}
	return w, w.describe(src, len(steps))
}

// add adds a state: the events of a span from an empty pool.
func (w *Work) add(src trace.Source, s State, span trace.Span, stepped bool, skip int) error {
	part, err := trace.Cut(src, span, 0)
	if err != nil {
		return err
	}
	c, err := canonicalOf(part, stepped, skip)
	if err != nil {
		return err
	}
	var covered trace.Coverage
	for i := range c.Events {
		covered.Step(&c.Events[i])
	}
	if covered.Empty() {
		return errNoHistory
	}
	w.states[s] = c
	return nil
}

// marksBetween counts the marks among some events.
func marksBetween(src trace.Source, first, end int) (n int, err error) {
	i := 0
	err = src.Batches(func(events []trace.Event) error {
		for k := range events {
			if i >= first && i < end && events[k].Kind == trace.Mark {
				n++
			}
			i++
		}
		return nil
	})
	return n, err
}

// whole returns the state with all judged events.
func (w *Work) whole() *canonical {
	if c := w.states[Warm]; c != nil {
		return c
	}
	return w.states[Empty]
}

// describe notes the properties of the recording that limit the meaning of the figures.
func (w *Work) describe(src trace.Source, recorded int) error {
	c := w.whole()
	var refusals trace.Refusals
	for i := range c.Events {
		refusals.Step(&c.Events[i])
	}
	wrapped, _ := src.Head().Header.Get(torch.KeyWrapped)
	note := func(format string, args ...any) { w.Notes = append(w.Notes, fmt.Sprintf(format, args...)) }
	switch {
	case w.Steps == 0 && recorded > 0:
		note("The budget is of the whole recording; the marks show %s.", units.Several(recorded, "step"))
	case w.Steps == 0:
		note("No marks show steps: the work is the whole recording.")
	case recorded > w.Steps:
		note("The first %d of %d recorded steps are judged, as many as the budget is of.", w.Steps, recorded)
	}
	switch {
	case w.Steps == 0 && wrapped != "":
		note("The figures are not canonical: the history has lost its oldest entries, so the work begins where the "+
			"recorder's buffer happened to begin (%s).", wrapped)
	case w.Steps == 0 && c.opening > 0:
		note("The figures depend on the moment at which the recording began. Judged steps separate the work from " +
			"earlier work.")
	}
	if c.opening > 0 {
		note("%s live before the work: allocated first, in canonical order, because their order is history.",
			areBlocks(c.opening))
	}
	if c.delayed > 0 {
		note("%s completed later than requested, because other streams used the memory: replayed as final at the "+
			"request, because the delay is timing.", units.Several(c.delayed, "free"))
	}
	doubts := 0
	for _, p := range src.Head().Header.Meta {
		switch {
		case p.Key == torch.KeyFinding:
			doubts++
		case p.Key == trace.AbsentKey && strings.Contains(p.Value, torch.NoFreeRequests):
			note("The figures are not canonical where other streams use blocks: the recording lacks when frees were " +
				"requested, so each is placed where its memory became reusable, which is timing.")
		}
	}
	if doubts > 0 {
		note("The recording contradicts itself: \"vramyard trace info\" lists what the reader had to assume.")
	}
	if refusals.Count > 0 {
		note("%s refused when recorded, which depends on the recorded pool: replayed as granted.",
			areRequests(refusals.Count))
	}
	return nil
}

func areBlocks(n int) string {
	if n == 1 {
		return "1 block is"
	}
	return fmt.Sprintf("%d blocks are", n)
}

func areRequests(n int) string {
	if n == 1 {
		return "1 request was"
	}
	return fmt.Sprintf("%d requests were", n)
}

// Measure replays the work through a strategy and returns the figures by state. Replays wait for a
// place in the pool. replayed is called at intervals with the number of events since the last call;
// nil for none. It ends with the error of ctx soon after that ends.
func (w *Work) Measure(ctx context.Context, pool *compare.Pool, setup setting.Setup,
	replayed func(events int)) (map[State]Figures, error) {
	all := map[State]Figures{}
	for _, s := range States {
		c := w.states[s]
		if c == nil {
			continue
		}
		prepared, err := replay.Prepare(ctx, c.Trace)
		if err != nil {
			return nil, err
		}
		trial := compare.NewTrial(pool, prepared, setup, compare.Options{Once: true, Replayed: replayed})
		run, err := trial.Run(ctx)
		if err != nil {
			return nil, err
		}
		if run.Refused > 0 {
			return nil, fmt.Errorf("%s: %s can never grant %s of the work: the gate needs a strategy that grants all",
				w.Name, setup.Name, units.Several(run.Refused, "request"))
		}
		before, err := callsBefore(prepared, setup, run.Device, c.work)
		if err != nil {
			return nil, err
		}
		f := Figures{
			PeakReserved: uint64(run.PeakReserved), PeakLive: uint64(run.LowerBound), DeviceCalls: run.DeviceCalls - before,
		}
		if run.MinCapacity != nil {
			f[MinCapacity] = uint64(*run.MinCapacity)
		}
		all[s] = f
	}
	return all, nil
}

// errReached ends a replay at the work.
var errReached = errors.New("the work begins")

// callsBefore returns the number of device calls before an event.
func callsBefore(p *replay.Prepared, setup setting.Setup, capacity device.Size, event int) (calls uint64, err error) {
	dev, err := sim.New(sim.Config{Capacity: capacity})
	if err != nil {
		return 0, err
	}
	_, err = p.Run(setup.ForCapacity(capacity), dev, replay.Options{Observe: func(o replay.Observation) error {
		if o.Event >= event {
			return errReached
		}
		if o.Faults != nil {
			counted := o.Faults.Usage().Calls
			calls = counted.Total()
		}
		return nil
	}})
	if errors.Is(err, errReached) || errors.Is(err, device.ErrOutOfMemory) {
		err = nil
	}
	return calls, err
}
