package props

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// Pattern is how a long run chooses sizes and blocks to free.
type Pattern string

// The patterns.
const (
	Steady Pattern = "steady" // sizes of all magnitudes, any block is freed
	Queue  Pattern = "queue"  // the same sizes, the oldest block is freed
	Phases Pattern = "phases" // one magnitude at a time, in turn; any block is freed

	// Streams is Steady with requests of four streams, and blocks that other streams use as well.
	// Streams are drained and deferred frees polled at intervals.
	Streams Pattern = "streams"
	// Captures is Streams, but at intervals the requests of one stream, or of all, go to a new private
	// pool. Of the last three pools each is released when a new one comes, with blocks in it, and
	// then cached memory is trimmed.
	Captures Pattern = "captures"
)

// Patterns returns the patterns that apply to a subject: [Streams] if streams can be
// recorded, [Captures] if it has private pools. It fails if the subject cannot be built.
func Patterns(s Subject) ([]Pattern, error) {
	p, err := s.Profile(0)
	all := []Pattern{Steady, Queue, Phases}
	if p.Streams {
		all = append(all, Streams)
	}
	if p.Pools {
		all = append(all, Captures)
	}
	return all, err
}

// Churn describes a long run with bounded demand. Zero fields mean their defaults.
type Churn struct {
	Pattern    Pattern     // default Steady
	Operations int         // calls; default 200 000
	Live       device.Size // most bytes asked for at once; default 8 GiB, or 4096 times the largest request
	Seed       uint64      // of the choices
	Factor     float64     // by how much memory may grow after the first quarter; default 1.25
}

// withDefaults fills the zero fields for a strategy whose largest request is most.
func (c Churn) withDefaults(most device.Size) Churn {
	c.Pattern = cmp.Or(c.Pattern, Steady)
	c.Operations = cmp.Or(c.Operations, 200_000)
	c.Live = cmp.Or(c.Live, min(8*device.GiB, 4096*most))
	c.Factor = cmp.Or(c.Factor, 1.25)
	return c
}

// Growth is the memory of a long run. Sizes are bytes.
type Growth struct {
	PeakLive        device.Size // most live bytes
	ReservedQuarter device.Size // most bytes held during the first quarter of the run
	Reserved        device.Size // most bytes held
	TouchedQuarter  device.Size // bytes that blocks ever covered until then, in multiples of Granule
	Touched         device.Size // bytes that blocks ever covered
	Granule         device.Size // unit of Touched
}

// String returns the figures in one line.
func (g Growth) String() string {
	return fmt.Sprintf("peak live %v, reserved %v then %v, touched %v then %v",
		g.PeakLive, g.ReservedQuarter, g.Reserved, g.TouchedQuarter, g.Touched)
}

// mostAtOnce bounds the requests of a long run if the strategy could grant larger ones.
const mostAtOnce = 256 * device.MiB

// Bounded runs the subject with bounded demand on its device, which should be without a capacity,
// and checks invariant I44: the bytes held, and the addresses that blocks ever covered, have
// stopped growing after the first quarter. Churn.Factor allows the growth of a random load, which
// sets new records ever more rarely; a leak would grow to four times. The addresses show a leak in
// memory that was reserved in advance. The error is an [*Unbounded] if memory grew or ran out.
func Bounded(s Subject, c Churn) (Growth, error) {
	r, err := newLongRun(&s, c)
	if err != nil {
		return Growth{}, err
	}
	if !returns(0, &r.pulse.beats, func() {
		err = r.guard(r.run, nil)
		r.dispose(r.machine) // the device is thrown away with it
	}) {
		return Growth{}, hangs(0, fmt.Sprintf("call %d of a long run", r.pulse.beats.Load()))
	}
	if v, ok := errors.AsType[*Violation](err); ok {
		return r.growth, r.unbounded(&s, v)
	}
	return r.growth, err
}

// longRun observes an interpreter of one instance. It draws the calls itself.
type longRun struct {
	interpreter
	silent
	Churn
	*machine
	most      device.Size // largest request
	quantum   device.Size
	rng       *rand.Rand
	held      []demanded // live blocks, oldest first for Queue
	used      device.Size
	tenths    []device.Size          // most that was held until the end of each tenth of the run
	pools     []alloc.PoolID         // that were not released, oldest first
	made      alloc.PoolID           // number of pools so far
	capturing bool                   // requests are redirected into the last pool
	next      device.Size            // bytes of the next request; 0 if it is not drawn yet
	touched   map[device.Addr]uint64 // granules that blocks ever covered, 64 in a word
	granule   device.Size
	growth    Growth
}

type demanded struct {
	demand
	addr device.Addr
}

func newLongRun(s *Subject, c Churn) (*longRun, error) {
	m, err := newMachine(s, device.FaultPlan{})
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be built: %w", s.Name, err)
	}
	most := min(power.MaxRequest(m.Strategy), mostAtOnce)
	c = c.withDefaults(most)
	r := &longRun{
		machine: m, Churn: c, most: most, quantum: s.Promises.Quantum, rng: rand.New(rand.NewPCG(c.Seed, 0)),
		touched: map[device.Addr]uint64{},
		granule: device.Size(1) << max(bits.Len64(uint64(c.Live))-13, 8), // about 4096 of them cover the live bytes
	}
	r.observer, r.machines, r.growth.Granule = r, []*machine{m}, r.granule
	return r, nil
}

// run makes the calls. It returns a violation if the strategy broke one, or grew.
func (r *longRun) run() error {
	for i := range r.Operations {
		r.begin()
		if err := r.turn(i); err != nil {
			return err
		}
		if i == r.Operations/4 {
			r.growth.ReservedQuarter, r.growth.TouchedQuarter = r.growth.Reserved, r.growth.Touched
		}
		if (i+1)*tenths/r.Operations > len(r.tenths) {
			r.tenths = append(r.tenths, r.growth.Reserved)
		}
	}
	g := r.growth
	for _, f := range [...]struct {
		what        string
		quarter, at device.Size
	}{
		{"held", g.ReservedQuarter, g.Reserved},
		{"touched", g.TouchedQuarter, g.Touched},
	} {
		if float64(f.at) > r.Factor*float64(f.quarter) {
			return violated(IBounded, "with %v bytes in use at most, %v were %s in the first quarter of %d calls and %v "+
				"at the end",
				g.PeakLive, f.quarter, f.what, r.Operations, f.at)
		}
	}
	return nil
}

// turn makes a request, or a free if demand would pass its bound. A refused size is
// requested again: otherwise large blocks would vanish, and the number of small ones would grow.
func (r *longRun) turn(i int) error {
	if err := r.streams(i); err != nil {
		return err
	}
	if r.next == 0 {
		r.next = r.size(i)
	}
	n := r.next
	if r.used+n > r.Live && len(r.held) > 0 {
		return r.free()
	}
	r.next = 0
	id := r.ids + 1
	c := Call{Op: Op{Kind: OpAlloc}, ID: id, Request: alloc.Request{Size: n, Stream: r.stream()}}
	if err := r.perform(&c); err != nil {
		return err
	}
	return r.use()
}

func (r *longRun) free() error {
	n := 0
	if r.Pattern != Queue {
		last := len(r.held) - 1
		n = r.rng.IntN(len(r.held))
		r.held[0], r.held[n] = r.held[n], r.held[0]
		r.held[0], r.held[last] = r.held[last], r.held[0]
		n = last
	}
	victim := r.held[n]
	if n == 0 {
		r.held = r.held[1:]
	} else {
		r.held = r.held[:n]
	}
	r.used -= victim.size
	return r.perform(&Call{Op: Op{Kind: OpFree}, ID: victim.id, Addr: victim.addr})
}

// after checks an answer: no call may fail. It records a granted block.
func (r *longRun) after(c *Call) error {
	switch err := r.answer.Err; {
	case err == nil && c.Kind == OpAlloc:
		r.update(c)
	case err == nil:
	case c.Kind == OpAlloc:
		return violated(IBounded, "%d bytes with %d in use were answered by %v", uint64(c.Request.Size), uint64(r.used),
			quoted(err))
	case c.Kind == OpFree:
		return violated(IFreeAnswer, "free of %v was answered by %v", c.Addr, quoted(err))
	case c.Kind == OpUse:
		return violated(IFreeAnswer, "a stream recorded for %v was answered by %v", c.Addr, quoted(err))
	case c.Kind >= OpPoolBegin:
		return violated(IPoolAnswer, "%v was answered by %q", c.Op, err)
	default:
		return violated(IFault, "%s failed with %q though the device refused nothing", kinds[c.Kind].method, err)
	}
	return nil
}

// update follows the granted and freed blocks of a call.
func (r *longRun) update(c *Call) {
	b := r.answer.Block
	r.held = append(r.held, demanded{demand{c.ID, c.Request.Size}, b.Addr})
	r.used += c.Request.Size
	r.touch(b.Addr/device.Addr(r.granule), (b.Addr.Add(b.Size)-1)/device.Addr(r.granule))
	r.growth.PeakLive = max(r.growth.PeakLive, r.used)
	r.growth.Reserved = max(r.growth.Reserved, r.Stats().Reserved)
}

// touch marks the granules from first to last.
func (r *longRun) touch(first, last device.Addr) {
	const word = 64
	for w := first / word; w <= last/word; w++ {
		mask := ^uint64(0)
		if w == first/word {
			mask <<= first % word
		}
		if w == last/word {
			mask &= ^uint64(0) >> (word - 1 - last%word)
		}
		old := r.touched[w]
		if added := mask &^ old; added != 0 {
			r.touched[w] = old | added
			r.growth.Touched += device.Size(bits.OnesCount64(added)) * r.granule
		}
	}
}

// size draws the size of call i from a dozen magnitudes below the largest request, or those
// down to the strategy's quantum, below which bounded bytes would be unbounded blocks. All
// are equally likely, or a phase has one. A quarter of the run sees every phase twice.
func (r *longRun) size(i int) device.Size {
	octaves := min(bits.Len64(uint64(r.most/max(r.quantum, 1))), 12)
	octave := r.rng.IntN(octaves)
	if r.Pattern == Phases {
		octave = i / max(r.Operations/4/octaves/2, 1) % octaves
	}
	top := r.most >> octave
	return top - device.Size(r.rng.Uint64N(uint64(max(top/2, 1))))
}

// Intervals in a long run with streams, in calls. Each stream is drained once in 64 calls, so that
// pending blocks are a small part of those in use.
const (
	drainEvery   = 16
	pollEvery    = 64
	captureEvery = 1000
	captureCalls = 100 // of a capture
	capturesKept = 3   // pools that are not released
	tenths       = 10
)

func (r *longRun) stream() device.Stream {
	if r.Pattern != Streams && r.Pattern != Captures {
		return 0
	}
	return device.Stream(r.rng.IntN(streams))
}

// streams makes the calls before turn i that are neither requests nor frees.
func (r *longRun) streams(i int) error {
	if r.Pattern != Streams && r.Pattern != Captures {
		return nil
	}
	var calls []Op
	if i%drainEvery == 0 {
		calls = append(calls, Op{Kind: OpDrain, Stream: r.stream()})
	}
	if i%pollEvery == 0 && power.Has(r.Strategy, power.PowerPoller) {
		calls = append(calls, Op{Kind: OpPoll})
	}
	switch {
	case r.Pattern != Captures:
	case i%captureEvery == 0:
		calls = append(calls, r.capture()...)
	case r.capturing && i%captureEvery == captureCalls:
		r.capturing = false
		calls = append(calls, Op{Kind: OpPoolEnd, Pool: r.made})
	}
	for _, o := range calls {
		if err := r.perform(&Call{Op: o}); err != nil {
			return err
		}
	}
	return nil
}

// capture returns the calls that redirect requests into a new pool. It replaces the oldest pool.
func (r *longRun) capture() (calls []Op) {
	if len(r.pools) == capturesKept {
		calls = append(calls, Op{Kind: OpPoolRelease, Pool: r.pools[0]})
		r.pools = slices.Delete(r.pools, 0, 1)
		if power.Has(r.Strategy, power.PowerTrimmer) {
			calls = append(calls, Op{Kind: OpTrim})
		}
	}
	r.made++
	r.capturing = true
	r.pools = append(r.pools, r.made)
	o := Op{Kind: OpPoolBegin, Pool: r.made, Stream: power.AllStreams}
	if r.rng.IntN(2) == 0 {
		o.Stream = r.stream()
	}
	return append(calls, o)
}

// use records a second stream for every fourth granted block, on average.
func (r *longRun) use() error {
	if r.Pattern != Streams && r.Pattern != Captures || r.rng.IntN(4) != 0 ||
		!power.Has(r.Strategy, power.PowerStreamRecorder) {
		return nil
	}
	b := r.held[len(r.held)-1]
	return r.perform(&Call{Op: Op{Kind: OpUse, Stream: r.stream()}, ID: b.id, Addr: b.addr})
}

// Unbounded is a long run in which memory grew or ran out, with everything needed to reproduce it.
type Unbounded struct {
	Subject   string        // name of the subject
	Churn     Churn         // the run
	Growth    Growth        // its memory
	Call      int           // the last one, from 1
	Held      []device.Size // bytes: most that was held until the end of each tenth of the run
	Violation *Violation    // what went wrong
	Holdings  string        // chunks at the end, one line for each pool, stream, class and state
	Trace     *trace.Trace  // the calls
}

// Error implements error. It is long: everything but the trace.
func (u *Unbounded) Error() string {
	return fmt.Sprintf("%s: %s: call %d: %v\nseed %d, %v\nheld by tenths of the run: %v\n%s",
		u.Subject, u.Churn.Pattern, u.Call, u.Violation, u.Churn.Seed, u.Growth, u.Held, u.Holdings)
}

// Unwrap returns the violation.
func (u *Unbounded) Unwrap() error { return u.Violation }

// WriteTrace writes the calls as a text trace.
func (u *Unbounded) WriteTrace(w io.Writer) error { return trace.Write(w, u.Trace) }

// unbounded repeats the calls and collects the data of the failure.
func (r *longRun) unbounded(s *Subject, v *Violation) error {
	again, err := newLongRun(s, r.Churn)
	if err != nil {
		return err
	}
	again.record = true
	err = again.guard(again.run, nil)
	u := &Unbounded{
		Subject: s.Name, Churn: r.Churn, Growth: r.growth, Call: r.step, Held: r.tenths, Violation: v,
		Trace: again.trace(IBounded.String()),
	}
	if !again.broken {
		u.Holdings = holdingsText(again.Strategy)
	}
	describe(u.Trace, "invariant", v.Number.String(), "detail", v.Detail)
	s.describe(u.Trace)
	again.dispose(again.machine) // the device is thrown away with it
	if err == nil || again.step != r.step {
		return fmt.Errorf("%w\nbut not when run again: the strategy depends on more than its calls", u)
	}
	return u
}

// holdingsText sums up the chunks of a walk by pool, stream, class and state. Classes are ignored
// unless the strategy is [power.Counted]: others have many.
func holdingsText(s alloc.Inspector) string {
	counted := power.Has(s, power.PowerCounted)
	type sum struct {
		kind   alloc.Chunk
		chunks int
		bytes  device.Size
	}
	var all []sum
	for c := range s.Walk {
		kind := alloc.Chunk{State: c.State, Pool: c.Pool, Stream: c.Stream, Class: c.Class}
		if !counted {
			kind.Class = alloc.NoClass
		}
		i := slices.IndexFunc(all, func(s sum) bool { return s.kind == kind })
		if i < 0 {
			i = len(all)
			all = append(all, sum{kind: kind})
		}
		all[i].chunks++
		all[i].bytes += c.Size
	}
	slices.SortFunc(all, func(a, b sum) int {
		k, l := a.kind, b.kind
		return cmp.Or(cmp.Compare(k.Pool, l.Pool), cmp.Compare(k.Stream, l.Stream), cmp.Compare(k.Class, l.Class),
			cmp.Compare(k.State, l.State))
	})
	var b strings.Builder
	for _, s := range all {
		fmt.Fprintf(&b, "pool %d, stream %d, class %d: %v in %d %v chunks\n", uint64(s.kind.Pool), uint64(s.kind.Stream),
			s.kind.Class,
			s.bytes, s.chunks, s.kind.State)
	}
	return b.String()
}
