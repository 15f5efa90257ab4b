package compare

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
)

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
	return c.stored(ctx)
}

func (c *Trial) run(ctx context.Context) (Run, error) {
	row, err := c.Measure(ctx, cmp.Or(c.o.Capacity, c.card, c.ample()))
	if err != nil {
		return Run{}, err
	}
	if row.Refused > 0 || c.o.Single {
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

// RecordedOn sets the least capacity in bytes of the device of the recorded run; 0: not known.
func (c *Trial) RecordedOn(card device.Size) { c.card = card }

func (c *Trial) effort() Effort {
	if c.o.Quick {
		return quick
	}
	return thorough
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
	s := NewSearch(Bounds{Floor: c.bound, First: c.ample(), CompletesFrom: completesFrom}, c.effort())
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
			i := (next + c.o.Rotate) % len(points)
			known, ok := c.recall(points[i])
			if answers[i] = known; !ok {
				open = append(open, i)
			}
		}
		err := c.pool.Each(len(open), c.trace, func(k int) (err error) {
			answers[open[k]], err = c.probe(ctx, points[open[k]])
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
		c.recalled.Add(known.Events)
	}
	return known.Completes, ok
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
	m, err := c.measurement(ctx, n)
	if err != nil {
		return Run{}, err
	}
	c.learn(m.effect)
	row := Run{m.Figures, m.Measured}
	c.named(&row)
	if row.Starts {
		c.charged = m.Charged
	}
	c.measured = &row
	return row, nil
}

// learn counts the events of a replay and remembers its outcome.
func (c *Trial) learn(e effect) {
	c.replayed.Add(e.Replayed)
	c.known.add(e.Outcome)
}

// named sets the fields of a row that are not figures of the trial, and the configuration in the
// order of its fields, which a store does not keep.
func (c *Trial) named(row *Run) {
	row.Config, _ = json.Marshal(c.setup.ForCapacity(row.Device).Config) // the replay encoded it before
	t := c.trace.Head()
	row.Trace, row.TraceSHA256 = t.Header.Name, t.Header.Hash
	row.Strategy, row.Baseline = c.setup.Name, c.setup.Baseline
	if c.setup.Forecast != nil && c.o.Training != nil {
		row.LearnedFrom = c.o.Training.TraceSHA256
	}
}

// fill copies the figures of a replay. It is nil if the strategy's initial reservation does not fit
// the device.
func (r *measurement) fill(res *replay.Result, setup setting.Setup) {
	if res == nil {
		return
	}
	r.Starts = true
	r.Config = res.Config
	r.PeakRequested, r.PeakAllocated, r.PeakReserved = res.Peak.Requested, res.Peak.Allocated, res.Peak.Reserved
	r.Waste, r.External, r.Internal = res.ReservationWaste, res.ExternalFragmentationPeak, res.InternalFragmentation
	r.OOMs, r.Refused = res.OOMs, res.Refused
	r.DeviceCalls, r.DeviceTime = res.DeviceCalls, res.DeviceTime
	r.MetadataBytes, r.NsPerOpByRef, r.SelfTimed = res.MetadataBytes, res.NsPerOpByRef, res.SelfTimed
	r.Charged = res.Peak.Charged
}

// measure replays with all figures on a device of n bytes and takes the median time of
// several runs, and of as many that free by reference. The measurement does not start if the
// strategy cannot be built on such a device.
func (c *Trial) measure(ctx context.Context, n device.Size) (m measurement, err error) {
	o, runs := replay.Options{Figures: !c.o.Quick}, timedRuns
	if c.o.Quick || c.o.Once {
		runs = 1
	}
	t := c.trace.Head()
	m.Gap, m.Events, m.LowerBound, m.Device = c.trace.Gap(), t.Events, c.bound, n
	var times, byRef []float64
	for len(times) < runs { // sequentially: repeats that share the cores would disturb each other's times
		res, known, err := c.alone(ctx, n, o)
		if err != nil {
			return m, err
		}
		if len(times) == 0 {
			m.fill(res, c.setup.ForCapacity(n))
			m.Outcome = known
		}
		if res == nil {
			return m, nil
		}
		if len(times) == 0 {
			m.Replayed = uint64(res.Replayed)
		} else {
			c.replayed.Add(uint64(res.Replayed))
		}
		times = append(times, res.NsPerOp)
		if runs == 1 || !res.Referenced {
			continue
		}
		o.ByRef = true
		if res, _, err = c.alone(ctx, n, o); err != nil {
			return m, err
		}
		c.replayed.Add(uint64(res.Replayed))
		o.ByRef, byRef = false, append(byRef, res.NsPerOp)
	}
	m.NsPerOp = median(times)
	if byRef != nil {
		ns := median(byRef)
		m.NsPerOpByRef = &ns
	}
	return m, nil
}

func median(times []float64) float64 {
	slices.Sort(times)
	return times[len(times)/2]
}

// alone is replay with a place in the pool.
func (c *Trial) alone(ctx context.Context, n device.Size, o replay.Options) (res *replay.Result, known *outcome,
	err error) {
	err = c.pool.Each(1, c.trace, func(int) (err error) {
		res, known, err = c.replay(ctx, n, o)
		return err
	})
	return res, known, err
}

// replay runs the trace on a device of n bytes with the strategy's limit set to it. It returns no
// result if the strategy's initial reservation does not fit the device, and no outcome if it is
// not known for which devices it holds.
func (c *Trial) replay(ctx context.Context, n device.Size, o replay.Options) (*replay.Result, *outcome, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
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
		return nil, nil, err
	}
	defer dev.Close() // all was given back: the strategy is closed
	setup := c.setup.ForCapacity(n)
	res, err := c.trace.Run(setup, dev, o)
	if errors.Is(err, device.ErrOutOfMemory) {
		res, err = nil, nil
	}
	if err != nil {
		return nil, nil, &capacityError{err, n}
	}
	return res, outcomeOf(setup, dev, res), nil
}

// Ample returns a capacity in bytes that no sensible strategy exhausts: four times the lower
// bound, up to the next GiB.
func Ample(bound device.Size) device.Size {
	const most = 1 << 54 // a quarter of the simulated address space
	return max(device.AlignUp(4*min(bound, most/4), device.GiB), device.GiB)
}
