package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/latency"
	"github.com/vramyard/vramyard/harness/trace"
)

// Options say what a replay does beyond counting. The zero value counts only.
type Options struct {
	Figures    bool      // fragmentation, headroom, metadata and the series
	Latency    bool      // distribution of single calls; makes NsPerOp meaningless
	StopAtOOM  bool      // end at the first request that finds no memory
	Report     bool      // keep the strategy's own report about that request
	Placements io.Writer // one line for every allocation, and what Print events ask for; nil for none
	Final      io.Writer // the state at the end; nil for none

	// Observe, if not nil, is called when the strategy is built, after each event and when
	// the strategy is closed. An error of its ends the replay. With it, a panic of the
	// strategy is an observation, and each request is tagged with the ID of its allocation,
	// so that the observer can tell blocks apart.
	Observe func(Observation) error
}

// Run builds the strategy of setup over dev, replays t through it, closes it, and
// returns what it measured.
//
// It fails if the strategy cannot be built (a device that has no room for what the
// strategy takes at once gives an error that is [device.ErrOutOfMemory]), if the
// strategy breaks its contract (refuses to free a live block, miscounts, leaves regions
// behind), and if a writer fails. Requests that are not granted are results.
func Run(t *trace.Trace, setup alloc.Setup, dev device.Device, o Options) (*Result, error) {
	config, err := json.Marshal(setup.Config)
	if err != nil {
		return nil, fmt.Errorf("%s: configuration: %w", setup.Name, err)
	}
	m := newMeter(dev)
	plan, err := FaultPlan(t)
	if err != nil {
		return nil, err
	}
	faults, err := device.NewFaults(m, plan)
	if err != nil {
		return nil, err
	}
	s, err := setup.New(faults)
	if err = o.built(s, faults, err); err != nil {
		return nil, fmt.Errorf("%s: %w", setup.Name, err)
	}
	r := &runner{
		t: t, s: s, dev: m, faults: faults, o: o,
		slots: make([]slot, t.Slots),
		res: Result{
			Strategy: setup.Name, Config: config,
			Trace: t.Header.Name, TraceSHA256: t.Header.Hash,
			Events: len(t.Events),
		},
	}
	if o.Figures {
		r.res.LowerBound = t.LowerBound()
		r.series = newSeries()
		r.looks = lookStride(len(t.Events))
	}
	if err := r.run(); err != nil {
		return nil, fmt.Errorf("%s on %s: %w", setup.Name, t.Header.Name, err)
	}
	return &r.res, nil
}

// FaultPlan returns which device call the trace of a counterexample wants refused, by the
// key fault-nth of its header; the calls that build and close the strategy count too.
func FaultPlan(t *trace.Trace) (device.FaultPlan, error) {
	nth, ok := t.Header.Get("fault-nth")
	if !ok {
		return device.FaultPlan{}, nil
	}
	n, err := strconv.ParseUint(nth, 10, 64)
	if err != nil {
		return device.FaultPlan{}, fmt.Errorf("%s: header fault-nth=%s: want the number of a device call", t.Header.Name, nth)
	}
	return device.FaultPlan{Nth: n}, nil
}

// slot is the replay's record of one allocation of the trace.
type slot struct {
	addr      device.Addr // kept after the free, for illegal frees that name it
	size      device.Size // granted
	requested device.Size
	serial    uint64 // which grant it was, from 1
	live      bool
}

// runner is the state of one replay.
type runner struct {
	t      *trace.Trace
	s      alloc.Strategy
	dev    *meter
	faults *device.Faults
	o      Options
	slots  []slot

	requested, allocated, active device.Size        // of live blocks, now
	looks                        int                // events between two looks at fragmentation
	series                       *series            // nil without figures
	peakReserved                 device.Size        // highest reserved bytes that were looked at
	allocTime, freeTime          *latency.Histogram // nil without latency
	allocs                       uint64             // serial of the last grant; ClearStats does not touch it

	seen Observation // the last call, for the observer
	res  Result
}

// run replays, closes the strategy and completes the result.
func (r *runner) run() error {
	if r.o.Latency {
		r.allocTime, r.freeTime = new(latency.Histogram), new(latency.Histogram)
	}
	start := time.Now()
	if err := r.loop(); err != nil {
		return err
	}
	elapsed := time.Since(start)
	r.finish(elapsed)
	if err := r.audit(); err != nil {
		return err
	}
	if r.o.Final != nil {
		if err := r.writeFinal(r.o.Final); err != nil {
			return err
		}
	}
	return r.close()
}

// loop replays every event.
func (r *runner) loop() error {
	step := r.step
	if r.o.Observe != nil {
		step = r.observed
	}
	for i := range r.t.Events {
		oom, err := step(i, &r.t.Events[i])
		if err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
		if r.series != nil {
			r.look(i, oom)
		}
		if oom && r.o.StopAtOOM {
			r.res.Stopped = true
			return nil
		}
	}
	return nil
}

// step replays one event and reports whether it was a request that found no memory.
func (r *runner) step(i int, e *trace.Event) (oom bool, err error) {
	switch e.Kind {
	case trace.Alloc, trace.LiveAtStart:
		return r.alloc(i, e)
	case trace.Free:
		return false, r.free(e)
	case trace.BadFree:
		return false, r.badFree(e)
	case trace.Fault:
		r.faults.FailNext(e.Arg)
	case trace.Trim:
		var n device.Size
		n, err = alloc.Trim(r.s)
		r.saw(Observation{Returned: n, Err: err})
		if errors.Is(err, device.ErrInjected) {
			err = nil // the region stays; that is the fault's doing
		}
	case trace.Frontier:
		err = alloc.SetFrontier(r.s, e.Arg)
		r.saw(Observation{Err: err})
	case trace.ClearStats:
		err = alloc.ClearStats(r.s)
		r.saw(Observation{Err: err})
	case trace.Print:
		return false, r.print(e.Arg)
	case trace.Mark, trace.Refused:
		return false, nil // they tell about the recorded program, not to the allocator
	default:
		err = alloc.ErrUnsupported // streams and pools: no strategy here has them
	}
	if errors.Is(err, alloc.ErrUnsupported) {
		r.res.Ignored++
		return false, nil
	}
	return false, err
}

// alloc replays a request.
func (r *runner) alloc(i int, e *trace.Event) (oom bool, err error) {
	req := request(e)
	if r.o.Observe != nil {
		req.Tag = e.ID
	}
	var b alloc.Block
	if r.allocTime != nil {
		start := time.Now()
		b, err = r.s.Alloc(req)
		r.allocTime.Add(int64(time.Since(start)))
	} else {
		b, err = r.s.Alloc(req)
	}
	if r.o.Observe != nil {
		r.saw(Observation{Request: req, Block: b, Err: err})
	}
	if err != nil {
		oom, err = r.notGranted(i, e, err)
	} else {
		r.granted(e, b)
	}
	if r.o.Placements != nil && err == nil {
		err = r.writePlacement(e, b)
	}
	return oom, err
}

// request returns what an Alloc event asks for.
func request(e *trace.Event) alloc.Request {
	return alloc.Request{
		Size: e.Size, Align: e.Align, Stream: e.Stream, Hint: e.Hint, Before: e.Arg, Tag: uint64(e.Tag),
	}
}

// granted books a block.
func (r *runner) granted(e *trace.Event, b alloc.Block) {
	r.allocs++
	r.slots[e.Slot] = slot{addr: b.Addr, size: b.Size, requested: e.Size, serial: r.allocs, live: true}
	r.requested += e.Size
	r.allocated += b.Size
	r.active += b.Size
	p := &r.res.Peak
	p.Requested = max(p.Requested, r.requested)
	if r.allocated > p.Allocated {
		p.Allocated = r.allocated
		r.res.InternalFragmentation = ratio(r.requested, r.allocated)
	}
	p.Active = max(p.Active, r.active)
}

// notGranted books a request that was not granted and leaves a verdict in the size of its
// slot, from which the placement line is made.
func (r *runner) notGranted(i int, e *trace.Event, cause error) (oom bool, err error) {
	verdict := verdictInvalid
	switch {
	case errors.Is(cause, alloc.ErrOutOfMemory):
		r.res.OOMs++
		oom, verdict = true, verdictOOM
		if r.res.OOMs == 1 {
			r.firstOOM(e)
		}
	case !errors.Is(cause, alloc.ErrInvalidRequest):
		return false, fmt.Errorf("allocation %d of %d bytes: %w", e.ID, e.Size, cause)
	case e.Size == 0:
		r.res.Nulls++
		verdict = verdictNull
	default:
		r.res.Refused++
	}
	r.slots[e.Slot] = slot{size: verdict}
	if r.res.FirstFailure == nil && verdict != verdictNull {
		r.res.FirstFailure = r.describe(i, e, cause)
	}
	return oom, nil
}

// firstOOM takes what is kept about the first request that found no memory.
func (r *runner) firstOOM(e *trace.Event) {
	if r.series != nil {
		x := external(r.s, r.active, r.dev.held)
		r.res.ExternalFragmentationAtOOM = &x
	}
	if r.o.Report {
		// A strategy that writes no report leaves it empty.
		r.res.OOMReport, _ = alloc.AppendReport(r.s, nil, request(e))
	}
}

// What the size of a slot that is not live says about its request.
const (
	verdictOOM device.Size = iota
	verdictNull
	verdictInvalid
)

// describe tells about a request that was not granted.
func (r *runner) describe(i int, e *trace.Event, cause error) *FirstFailure {
	f := &FirstFailure{
		Event: i, ID: e.ID, Size: e.Size, Error: cause.Error(),
		LargestHole: alloc.LargestFree(r.s), Free: r.dev.held - r.active,
	}
	if u := r.dev.Usage(); u.Capacity != 0 {
		free := u.Free()
		f.DeviceFree = &free
	}
	if why, ok := alloc.LastRefusal(r.s); ok {
		f.Reason, f.DeviceAsked = why.Reason.String(), why.Asked
	}
	return f
}

// free replays a free. The free of an allocation that was not granted is nothing.
func (r *runner) free(e *trace.Event) (err error) {
	s := &r.slots[e.Slot]
	if !s.live {
		return nil
	}
	if r.freeTime != nil {
		start := time.Now()
		err = r.s.Free(s.addr)
		r.freeTime.Add(int64(time.Since(start)))
	} else {
		err = r.s.Free(s.addr)
	}
	if r.o.Observe != nil {
		r.saw(Observation{Addr: s.addr, Err: err})
	}
	switch {
	case errors.Is(err, device.ErrInjected):
		r.res.FailedFrees++ // the device kept the region, so the block is still live
		return nil
	case err != nil:
		return fmt.Errorf("free of live allocation %d: %w", e.ID, err)
	}
	r.res.Frees++
	s.live = false
	r.requested -= s.requested
	r.allocated -= s.size
	r.active -= s.size
	return nil
}

// badFree replays an illegal free, which the strategy must refuse.
func (r *runner) badFree(e *trace.Event) error {
	a := device.Addr(e.Arg)
	if e.Slot != trace.NoSlot {
		s := &r.slots[e.Slot]
		if s.addr == 0 {
			return nil // the allocation was never granted, so there is no address to misuse
		}
		a = s.addr.Add(e.Size)
	}
	if r.isLive(a) {
		return nil // memory granted again in the meantime: the free would be legal
	}
	r.res.IllegalFrees++
	err := r.s.Free(a)
	r.saw(Observation{Addr: a, Err: err})
	if !errors.Is(err, alloc.ErrInvalidFree) {
		return fmt.Errorf("illegal free of %v: got %v, want %w", a, err, alloc.ErrInvalidFree)
	}
	return nil
}

// isLive reports whether a live block starts at a. O(allocations): illegal frees are
// found in counterexamples only, which are short.
func (r *runner) isLive(a device.Addr) bool {
	for i := range r.slots {
		if r.slots[i].live && r.slots[i].addr == a {
			return true
		}
	}
	return false
}

// look takes the figures that depend on the strategy's state after event i.
func (r *runner) look(i int, oom bool) {
	reserved := r.dev.held
	r.series.observe(i, r.requested, r.allocated, reserved, oom)
	newPeak := reserved > r.peakReserved
	if !newPeak && i&(r.looks-1) != 0 {
		return
	}
	x := external(r.s, r.active, reserved)
	r.res.ExternalFragmentationPeak = max(r.res.ExternalFragmentationPeak, x)
	if newPeak {
		r.peakReserved = reserved
		r.res.ExternalFragmentationAtPeak = x
		r.res.Headroom.AtPeak = headroom(r.s)
	}
}

// finish completes the figures at the end of the trace.
func (r *runner) finish(elapsed time.Duration) {
	res := &r.res
	stats := r.s.Stats()
	res.Allocs = r.allocs
	res.Now = Now{r.requested, r.allocated, stats.Active, r.dev.held}
	res.Peak.Active = max(res.Peak.Active, stats.PeakActive)
	u := r.faults.Usage()
	res.Peak.Reserved = u.PeakHeld
	res.ReservationWaste = ratio(res.Peak.Requested, res.Peak.Reserved)
	c := u.Calls
	res.DeviceCalls = c.Total()
	res.CallsByKind = CallsByKind{c.Reserve, c.Refused, c.Release, c.Rejected}
	if ops := res.Allocs + res.OOMs + res.Refused + res.Nulls + res.Frees; ops > 0 && !r.o.Latency {
		res.NsPerOp = float64(elapsed.Nanoseconds()) / float64(ops)
	}
	if r.o.Latency {
		res.Latency = &Latency{r.allocTime.Quantiles(), r.freeTime.Quantiles(), latency.ClockCost()}
	}
	if !r.o.Figures {
		return
	}
	res.Headroom.Final = headroom(r.s)
	res.Series = r.series.finish()
	if n, err := alloc.MetadataBytes(r.s); err == nil {
		res.MetadataBytes = &n
	}
}

// audit compares the strategy's counters with the replay's own account.
func (r *runner) audit() error {
	got := r.s.Stats()
	for _, c := range []struct {
		what      string
		got, want device.Size
	}{
		{"requested bytes", got.Requested, r.requested},
		{"allocated bytes", got.Allocated, r.allocated},
		{"reserved bytes", got.Reserved + got.Forgotten, r.dev.held},
		{"live blocks", device.Size(got.Live), r.countLive()},
	} {
		if c.got != c.want {
			return fmt.Errorf("the strategy counts %d %s, the replay %d", c.got, c.what, c.want)
		}
	}
	return nil
}

func (r *runner) countLive() (n device.Size) {
	for i := range r.slots {
		if r.slots[i].live {
			n++
		}
	}
	return n
}

// close gives everything back and makes sure of it.
func (r *runner) close() error {
	err := r.shut()
	if r.o.Observe != nil {
		if objection := r.closed(err); objection != nil {
			return fmt.Errorf("at the end: %w", objection)
		}
	}
	if err != nil {
		return fmt.Errorf("close: %w", err)
	}
	if r.dev.held != 0 {
		return fmt.Errorf("close left %d bytes reserved", r.dev.held)
	}
	return nil
}

// shut closes the strategy. Faults still to come are met here, once, and called off then.
func (r *runner) shut() (err error) {
	if r.o.Observe != nil {
		defer r.survive(&err)
	}
	r.seen = Observation{}
	err = r.s.Close()
	if errors.Is(err, device.ErrInjected) {
		r.faults.FailNext(0)
		err = r.s.Close()
	}
	return err
}
