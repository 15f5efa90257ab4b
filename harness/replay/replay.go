package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/inspect"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// Options select what a replay does beyond counting. The zero value counts only.
type Options struct {
	Figures    bool      // fragmentation, headroom, metadata and the series
	EachEvent  bool      // with Figures: the series has a point for each event
	Latency    bool      // latency of single calls and the cost of measuring them; leaves NsPerOp 0
	ByRef      bool      // free by reference, if the strategy is [power.Referenced]
	StopAtOOM  bool      // end at the first request that finds no memory
	FreeAt     FreeAt    // when a strategy without streams is called for a delayed free
	Report     bool      // keep the reports about the first OOM
	Placements io.Writer // one line for every allocation, and the output of Print events; nil for none
	Final      io.Writer // the state at the end; nil for none

	// Contents, if not nil, is the memory of the device. Every block is filled, and must be as
	// it was filled when it is freed, or at the end; see [wrap.Filled].
	Contents device.Contents

	// Watch, if not nil, is called at intervals with the number of replayed events,
	// and never while the clock runs. Its error ends the replay.
	Watch func(events int) error

	// Observe, if not nil, is called when the strategy is built, after each event and when
	// the strategy is closed. Its error ends the replay. With it, a panic of the
	// strategy is an observation. The strategy gets the same requests as without it.
	Observe func(Observation) error
}

// Run prepares a trace and replays it once; see [Prepared.Run].
func Run(src trace.Source, setup setting.Setup, dev device.Device, o Options) (*Result, error) {
	p, err := Prepare(context.Background(), src)
	if err != nil {
		return nil, err
	}
	return p.Run(setup, dev, o)
}

// Run builds the strategy of setup on dev, replays the trace, closes the strategy, and
// returns the measurements.
//
// It fails if the strategy cannot be built, with [device.ErrOutOfMemory] if the strategy
// preallocates more than the device has. It fails if the strategy breaks its contract: refuses to
// free a live block, miscounts, or leaves regions behind. It fails if a writer does. Requests that
// are not granted are results.
func (p *Prepared) Run(setup setting.Setup, dev device.Device, o Options) (*Result, error) {
	r, err := p.newRunner(setup, dev, o)
	if err != nil {
		return nil, err
	}
	if err := r.run(); err != nil {
		return nil, fmt.Errorf("%s on %s: %w", setup.Name, p.head.Header.Name, err)
	}
	res := r.res // or the result would keep strategy and device
	return &res, nil
}

// newRunner builds the strategy and the state of a replay.
func (p *Prepared) newRunner(setup setting.Setup, dev device.Device, o Options) (*runner, error) {
	h := p.head.Header
	if err := p.checkMarks(setup); err != nil {
		return nil, err
	}
	config, err := json.Marshal(setup.Config)
	if err != nil {
		return nil, fmt.Errorf("%s: configuration: %w", setup.Name, err)
	}
	layers, err := p.layersOver(dev, o)
	if err != nil {
		return nil, err
	}
	s, err := setup.New(layers.top)
	if err == nil && o.Contents != nil {
		s, err = wrap.Filled(s, o.Contents)
	}
	if err = o.observeBuilt(s, layers.faults, err); err != nil {
		return nil, withName(setup.Name, err)
	}
	recorder := power.Has(s, power.PowerStreamRecorder)
	when := o.FreeAt.timing(recorder)
	if when == onStreams && p.late != nil && p.reservedErr != nil {
		return nil, errors.Join(fmt.Errorf("%s on %s: %w", setup.Name, h.Name, p.reservedErr), s.Close())
	}
	r := &runner{
		p: p, s: s, layers: layers, o: o, clock: newStopwatch(), streams: p.streams, when: when,
		mayPend: recorder && p.pending, nullFrees: setup.Promises.FreesNull,
		res: Result{
			Schema: Schema, Strategy: setup.Name, Config: config,
			Trace: h.Name, TraceSHA256: h.Hash, Gap: p.Gap(), Preallocates: setup.Preallocates,
			Events: p.head.Events,
		},
	}
	if o.Figures {
		r.res.LowerBound = p.LowerBound()
		r.series = newSeries(p.head.Events, o.EachEvent)
		r.sampler = newFragmentationSampler(s, p.head.Events, r.clock)
		if len(p.streams) > 1 {
			r.streamUsage = make([]streamUsage, len(p.streams))
		}
	}
	if p.pauses {
		r.sleep = new(sleeper)
	}
	r.torch = r.newTorchLines()
	r.selfTimed = power.Has(s, power.PowerSelfTimed)
	if r.byRef, r.res.Referenced = power.ReferencedOf(s); !o.ByRef || !r.res.Referenced {
		r.byRef = nil
	}
	return r, nil
}

// withName prefixes an error with the name of a strategy, unless it begins with it.
func withName(name string, err error) error {
	strategy, _, _ := strings.Cut(name, ":")
	if strings.HasPrefix(err.Error(), strategy+": ") {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// block is the replay's record of one allocation of the trace.
type block struct {
	addr   device.Addr // kept after the free, for illegal frees that name it
	size   device.Size // granted
	serial uint64      // number of the grant, from 1
	ref    uint32      // reference returned by the strategy
	live   bool
}

// runner is the state of one replay.
type runner struct {
	p           *Prepared
	s           alloc.Strategy
	byRef       power.Referenced // s, if blocks are freed by reference; else nil
	layers                       // between the strategy and the device
	o           Options
	batch                       // the batch being replayed
	streams     []device.Stream // by number
	when        timing
	blocks      []block       // by place
	streamUsage []streamUsage // by number of the stream; nil without figures, and where there is one stream
	mayPend     bool          // the strategy may hold pending memory

	nullFrees            bool                  // the strategy ignores frees of address 0
	done                 int                   // replayed events, set at the end
	requested, allocated device.Size           // of live blocks, now
	kept                 device.Size           // requested bytes of blocks with a deferred free
	pending              device.Size           // pending bytes of the strategy at the last sample
	requestedAtPeak      device.Size           // when allocated bytes first were highest
	series               *series               // nil without figures
	sampler              *fragmentationSampler // nil without figures
	allocTime, freeTime  *Histogram            // nil without latency
	selfTimed            bool                  // the strategy measures its times itself
	clock                *stopwatch            // of the loop
	allocs               uint64                // serial of the last grant; ClearStats does not touch it

	sleep       *sleeper    // nil without pauses
	torch       *torchLines // nil unless lines have PyTorch's form
	observation Observation // the last call, for the observer
	res         Result
}

// run replays, closes the strategy and completes the result.
func (r *runner) run() error {
	if r.o.Latency {
		r.allocTime, r.freeTime = new(Histogram), new(Histogram)
	}
	elapsed, err := r.timedLoop()
	if err != nil {
		return err
	}
	if err := r.endHistory(); err != nil {
		return err
	}
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

// step replays event i, given as e, and reports whether it was a request that found no memory.
func (r *runner) step(i int, o *op, e *trace.Event) (oom bool, err error) {
	switch e.Kind {
	case trace.Alloc, trace.LiveAtStart:
		return r.alloc(i, o)
	case trace.Free:
		if o.kind == opPending || o.kind == opDelayed {
			return false, r.freeLate(i, o)
		}
		return false, r.free(i, o)
	case trace.Completed:
		err = r.completed(i, o)
	case trace.BadFree:
		return false, r.badFree(e, o)
	case trace.Fault:
		r.faults.FailNext(e.Arg)
	case trace.Trim:
		var n device.Size
		n, err = power.Trim(r.s)
		r.observe(Observation{Returned: n, Err: err})
		if errors.Is(err, device.ErrInjected) {
			err = nil // the region stays because of the injected fault
		}
	case trace.Frontier:
		err = power.SetFrontier(r.s, e.Arg)
		r.observe(Observation{Err: err})
	case trace.ClearStats:
		err = power.ClearStats(r.s)
		r.observe(Observation{Err: err})
	case trace.Print:
		return false, r.print(e.Arg)
	case trace.Use:
		return false, r.use(e, o)
	case trace.Drain:
		err = r.drain(e.Stream)
	case trace.Poll:
		var n device.Size
		n, err = power.Poll(r.s)
		r.observe(Observation{Returned: n, Err: err})
		if errors.Is(err, device.ErrInjected) {
			err = nil // a later poll completes the others
		}
	case trace.PoolBegin, trace.PoolEnd, trace.PoolRelease:
		err = r.pool(e)
	case trace.Conf:
		err = r.configure(i, e)
	case trace.Refused:
		return r.refused(i, o)
	case trace.Mark:
		_ = power.Mark(r.s, r.p.src.TagOf(e)) // most strategies need no marks
		return false, nil
	}
	if errors.Is(err, alloc.ErrUnsupported) {
		r.res.Ignored++
		return false, nil
	}
	return false, err
}

// alloc replays a request that is not of kind opAlloc, or that is observed or timed.
func (r *runner) alloc(i int, o *op) (oom bool, err error) {
	e := r.event(i)
	req := r.p.requests.Of(e)
	var b alloc.Block
	if r.allocTime != nil {
		start := r.now()
		b, err = r.s.Alloc(req)
		r.allocTime.Add(r.now() - start)
	} else {
		b, err = r.s.Alloc(req)
	}
	if r.o.Observe != nil {
		r.observe(Observation{Request: req, Block: b, Err: err})
	}
	if err != nil {
		oom, err = r.notGranted(i, o, err)
	} else {
		r.granted(o, b)
	}
	if r.o.Placements != nil && err == nil {
		err = r.writePlacement(e, &r.blocks[o.place])
	}
	return oom, err
}

func (r *runner) granted(o *op, b alloc.Block) {
	r.allocs++
	r.blocks[o.place] = block{addr: b.Addr, size: b.Size, serial: r.allocs, ref: b.Ref, live: true}
	r.requested += o.size
	r.allocated += b.Size
	p := &r.res.Peak
	p.Requested = max(p.Requested, r.requested)
	if r.allocated > p.Allocated {
		p.Allocated, r.requestedAtPeak = r.allocated, r.requested+r.kept
	}
	if r.streamUsage != nil {
		r.streamUsage[o.stream].granted(o.size, b.Size)
	}
}

// firstOOM stores the reports about the first request that found no memory.
func (r *runner) firstOOM(e *trace.Event) {
	r.clock.stop()
	defer r.clock.start()
	if r.series != nil {
		x := r.sampler.external(r.active(), r.held())
		r.res.ExternalFragmentationAtOOM = &x
	}
	if r.o.Report {
		r.res.OOMReport = inspect.AppendFailure(r.s, nil, r.tagName)
		// A strategy that writes no report leaves it empty.
		r.res.OwnOOMReport, _ = power.AppendReport(r.s, nil, r.p.requests.Of(e))
	}
}

// tagName returns the text of a tag, quoted.
func (r *runner) tagName(tag uint64) string {
	if tag == 0 {
		return "none"
	}
	if r.p.requests.tagsAreIDs {
		return strconv.FormatUint(tag, 10)
	}
	return strconv.Quote(r.p.src.TagOf(&trace.Event{Tag: uint32(tag)}))
}

// free replays an observed free. The free of an allocation that was not granted is skipped.
func (r *runner) free(i int, o *op) (err error) {
	if o.place == noPlace || !r.blocks[o.place].live {
		return nil
	}
	b := &r.blocks[o.place]
	if r.freeTime != nil {
		start := r.now()
		err = r.release(b)
		r.freeTime.Add(r.now() - start)
	} else {
		err = r.release(b)
	}
	if r.o.Observe != nil {
		r.observe(Observation{Addr: b.addr, Err: err})
	}
	if err != nil {
		return r.notFreed(i, err)
	}
	r.freed(o, b)
	return nil
}

// release frees a live block, by address or by reference.
func (r *runner) release(b *block) error {
	if r.byRef != nil {
		return r.byRef.FreeRef(alloc.Block{Addr: b.addr, Size: b.size, Ref: b.ref})
	}
	return r.s.Free(b.addr)
}

func (r *runner) freed(o *op, b *block) {
	r.res.Frees++
	b.live = false
	r.requested -= o.size
	r.allocated -= b.size
	if r.streamUsage != nil {
		r.streamUsage[o.stream].freed(o.size, b.size)
	}
}

// badFree replays an illegal free, which the strategy must refuse. It may ignore address 0.
func (r *runner) badFree(e *trace.Event, o *op) error {
	a := device.Addr(e.Arg)
	if o.place != noPlace {
		b := &r.blocks[o.place]
		if b.addr == 0 {
			return nil // the allocation was never granted, so there is no address to misuse
		}
		a = b.addr.Add(e.Size)
	}
	if r.isLive(a) {
		return nil // memory granted again in the meantime: the free would be legal
	}
	r.res.IllegalFrees++
	err := r.s.Free(a)
	r.observe(Observation{Addr: a, Err: err})
	if !errors.Is(err, alloc.ErrInvalidFree) && (err != nil || a != 0 || !r.nullFrees) {
		return fmt.Errorf("illegal free of %v: got %v, want %w", a, err, alloc.ErrInvalidFree)
	}
	return nil
}

// isLive reports whether a live block starts at a. O(allocations): illegal frees are
// found in counterexamples only, which are short.
func (r *runner) isLive(a device.Addr) bool {
	for i := range r.blocks {
		if r.blocks[i].live && r.blocks[i].addr == a {
			return true
		}
	}
	return false
}

// sample samples the figures after event i. It is inlined for the common case: calls would double
// its time.
func (r *runner) sample(i int) {
	reserved := r.held()
	if r.mayPend {
		r.active()
	}
	r.series.at(i).raise(r.requested, r.allocated, reserved)
	f := r.sampler
	if reserved > f.peakReserved {
		f.sampleAtPeak(r.active(), reserved)
		return
	}
	free := reserved - r.allocated - r.pending
	if i&f.mask != 0 || free < reserved/100 {
		return
	}
	// New peaks are rare; the comparison avoids a division.
	if largest := f.largestFree(); float64(largest) < f.share*float64(free) {
		f.raise(1 - float64(largest)/float64(free))
	}
}

// finish completes the figures at the end of the trace.
func (r *runner) finish(elapsed int64) {
	res := &r.res
	stats := r.s.Stats()
	res.Allocs, res.Replayed = r.allocs, r.done
	if res.OOMs == 0 {
		r.decided(r.done)
	}
	res.Now = Now{r.requested, r.allocated, stats.Active, r.held()}
	res.Peak.Active = max(res.Peak.Allocated, stats.PeakActive) // by the strategy's count
	res.InternalFragmentation = ratio(r.requestedAtPeak, res.Peak.Allocated)
	u := r.top.Usage()
	res.Peak.Reserved, res.Peak.Charged = u.PeakHeld, u.PeakCharged
	res.ReservationWaste = ratio(res.Peak.Requested, res.Peak.Reserved)
	c := u.Calls
	res.Streams, res.CrossStreamWaits = r.perStream(), c[device.CallWait].Done
	res.DeviceCalls, res.Calls, res.DeviceTime, res.DeviceTimes = c.Total(), c, u.Time, u.Times
	res.CallsByKind = CallsByKind{c.Obtained(), c.Refused(), c.Returned(), c.Rejected()}
	res.SelfTimed = r.selfTimed
	if ops := res.Allocs + res.OOMs + res.Refused + res.Nulls + res.Frees; ops > 0 {
		res.NsPerOp = float64(elapsed) / float64(ops)
	}
	if r.sleep != nil {
		r.sleep.wake()
		res.Sleep = &r.sleep.figures
	}
	if r.o.Latency {
		res.Latency = &Latency{
			Alloc: r.allocTime.Quantiles(), Free: r.freeTime.Quantiles(), Clock: ClockCost(), NsPerOp: res.NsPerOp,
			AllocCalls: r.allocTime, FreeCalls: r.freeTime,
		}
		if r.selfTimed {
			res.Latency.Clock = 0 // already subtracted
		}
		res.NsPerOp = 0
	}
	if !r.o.Figures {
		return
	}
	res.ExternalFragmentationPeak, res.ExternalFragmentationAtPeak = r.sampler.peak, r.sampler.atPeak
	res.Headroom = Headroom{AtPeak: r.sampler.headroomAtPeak, Final: headroom(r.s)}
	res.Series = r.series.finish(r.done)
	if n, err := power.MetadataBytes(r.s); err == nil {
		res.MetadataBytes = &n
	}
	res.Counters = countersOf(r.s)
}

// audit compares the strategy's counters with the replay's own account.
func (r *runner) audit() error {
	got := r.s.Stats()
	for _, c := range []struct {
		what      string
		got, want device.Size
	}{
		{"requested bytes", got.Requested, r.requested + r.kept},
		{"allocated bytes", got.Allocated, r.allocated},
		{"reserved bytes", got.Reserved + got.Forgotten, r.held()},
		{"live blocks", device.Size(got.Live), r.live()},
	} {
		if c.got != c.want {
			return fmt.Errorf("the strategy counts %d %s, the replay %d", c.got, c.what, c.want)
		}
	}
	return nil
}

// live returns the number of live blocks.
func (r *runner) live() device.Size { return device.Size(r.allocs - r.res.Frees) }

// close closes the strategy and checks that it returned everything.
func (r *runner) close() error {
	err := r.closeStrategy()
	if r.o.Observe != nil {
		if observerErr := r.observeClosed(err); observerErr != nil {
			return fmt.Errorf("at the end: %w", observerErr)
		}
	}
	if err != nil {
		return fmt.Errorf("close: %w", err)
	}
	if u := r.top.Usage(); !u.Empty() {
		return fmt.Errorf("close left %d bytes reserved, %d handles, %d ranges and %d events", u.Held, u.Handles,
			u.Ranges, u.Events)
	}
	return nil
}

// closeStrategy closes the strategy. A planned fault may strike once here and is then cancelled.
func (r *runner) closeStrategy() (err error) {
	if r.o.Observe != nil {
		defer r.recoverPanic(&err)
	}
	r.observation = Observation{}
	err = r.s.Close()
	if errors.Is(err, device.ErrInjected) {
		if r.faults != nil {
			r.faults.FailNext(0)
		}
		err = r.s.Close()
	}
	return err
}
