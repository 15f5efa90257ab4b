package bench

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// Workload is a workload prepared for runs, with its properties. It serves one run at a time.
type Workload struct {
	Name       string      // of the workload, with every parameter
	PeakLive   device.Size // most bytes live at once
	PeakBlocks int         // most blocks live at once
	Pairs      int         // of a free and an allocation, in the churn

	untimed []workload.Op // fill and settle
	churn   []workload.Op // timed
	peakAt  int           // number of the operation with which live bytes first are highest
	live    []device.Addr // address of the block in each slot
	refs    []reference   // likewise, for passes that free by reference
	sum     device.Addr   // result of the empty loop, so that it is not optimized away
}

// NewWorkload returns the workload of a program, whose requests it cuts down to most bytes each.
func NewWorkload(p *workload.Program, most device.Size) *Workload {
	c := &Workload{
		Name: p.Workload.String(), Pairs: p.Summary.Pairs, PeakBlocks: p.Summary.PeakBlocks,
		untimed: make([]workload.Op, 0, len(p.Fill)+len(p.Settle)),
		churn:   p.Churn,
		live:    make([]device.Addr, p.Summary.Slots),
	}
	c.untimed = append(append(c.untimed, p.Fill...), p.Settle...)
	c.cut(most)
	c.findPeak()
	return c
}

// cut cuts requests down to most bytes. The operations of the program stay as they are.
func (c *Workload) cut(most device.Size) {
	large := func(op workload.Op) bool { return op.Size() > most }
	for _, ops := range []*[]workload.Op{&c.untimed, &c.churn} {
		if !slices.ContainsFunc(*ops, large) {
			continue
		}
		*ops = slices.Clone(*ops)
		for i, op := range *ops {
			(*ops)[i] = op.AtMost(most)
		}
	}
}

func (c *Workload) findPeak() {
	sizes := make([]device.Size, len(c.live))
	var now device.Size
	_ = c.each(func(i int, op workload.Op) error { // it never fails
		now += op.Size() - sizes[op.Slot()] // a slot is emptied before it is filled again
		sizes[op.Slot()] = op.Size()
		if now > c.PeakLive {
			c.PeakLive, c.peakAt = now, i
		}
		return nil
	})
}

func (c *Workload) each(f func(i int, op workload.Op) error) error {
	n := 0
	for _, ops := range [][]workload.Op{c.untimed, c.churn} {
		for i, op := range ops {
			if err := f(n+i, op); err != nil {
				return err
			}
		}
		n += len(ops)
	}
	return nil
}

func (c *Workload) at(i int) workload.Op {
	if i < len(c.untimed) {
		return c.untimed[i]
	}
	return c.churn[i-len(c.untimed)]
}

// Candidate is a strategy in one configuration that runs over workloads.
type Candidate struct {
	Name   string                                          // strategy and configuration, for failures
	Device replay.Target                                   // where it runs
	New    func(src device.Source) (alloc.Strategy, error) // builds the strategy over src
	ByRef  bool                                            // frees by reference; it must be [power.Referenced]
}

// Refusal is an operation of a workload that a strategy refused.
type Refusal struct {
	Candidate string      // name of the candidate
	Workload  string      // name of the workload
	Operation int         // its number, from 0 with the first of the fill
	Op        workload.Op // the operation
	Reason    string      // the strategy's reason; "" if it gives none
	Err       error       // the error of the strategy
}

func (r *Refusal) Error() string {
	what := fmt.Sprintf("allocate %d bytes into slot %d", r.Op.Size(), r.Op.Slot())
	if r.Op.IsFree() {
		what = fmt.Sprintf("free slot %d", r.Op.Slot())
	}
	text := fmt.Sprintf("%s on %s: operation %d, %s: %v", r.Candidate, r.Workload, r.Operation, what, r.Err)
	if r.Reason != "" {
		text += " (" + r.Reason + ")"
	}
	return text
}

// Unwrap returns the strategy's error.
func (r *Refusal) Unwrap() error { return r.Err }

// Pass is one run of a candidate over a workload.
type Pass struct {
	workload *Workload
	name     string
	strategy alloc.Strategy
	byRef    power.Referenced // strategy, if blocks are freed by reference; else nil
	device   *meter
	origin   alloc.Origin // of every request
	timed    bool         // the strategy is SelfTimed
	next     int          // operation of the churn
	done     int          // pairs of the churn
}

// Prepare builds the candidate and runs the untimed operations. A [*Refusal] error means that
// a request was not granted.
func (c *Workload) Prepare(k Candidate) (*Pass, error) {
	if len(c.untimed) == 0 {
		// Without a fill the first timed run would include the warm-up of the machine.
		p, err := c.begin(k)
		if err == nil {
			err = p.run(c.churn, 0)
		}
		if err != nil {
			return nil, err
		}
		if err = p.Close(); err != nil {
			return nil, err
		}
	}
	p, err := c.begin(k)
	if err != nil {
		return nil, err
	}
	return p, p.run(c.untimed, 0)
}

func (c *Workload) begin(k Candidate) (*Pass, error) {
	dev, err := newMeter(k.Device)
	if err != nil {
		return nil, err
	}
	return c.over(k, dev)
}

func (c *Workload) over(k Candidate, dev *meter) (*Pass, error) {
	s, err := k.New(dev)
	if err != nil {
		return nil, fmt.Errorf("%s on %s: %w", k.Name, c.Name, errors.Join(err, dev.dev.Close()))
	}
	p := &Pass{workload: c, name: k.Name, strategy: s, device: dev, timed: power.Has(s, power.PowerSelfTimed)}
	if k.ByRef {
		p.byRef, _ = power.ReferencedOf(s)
		c.refs = make([]reference, len(c.live))
	}
	return p, nil
}

// Churn runs the next pairs of the churn, or the remaining ones, and returns the time in
// nanoseconds and the number of pairs. [replay.ClockName] names the clock, unless the strategy has
// its own.
func (p *Pass) Churn(pairs int) (ns int64, done int, err error) {
	left, ops := p.workload.Pairs-p.done, p.workload.churn[p.next:]
	if done = min(pairs, left); done < left {
		ops = ops[:2*done]
	}
	runtime.LockOSThread() // the clock is this thread's
	defer runtime.UnlockOSThread()
	now := replay.ThreadTime
	if p.timed {
		now = p.moment
	}
	start := now()
	err = p.run(ops, len(p.workload.untimed)+p.next)
	ns = now() - start
	p.next, p.done = p.next+len(ops), p.done+done
	return ns, done, err
}

// Close closes the strategy and its device.
func (p *Pass) Close() error {
	if err := errors.Join(p.strategy.Close(), p.device.dev.Close()); err != nil {
		return fmt.Errorf("%s on %s: close: %w", p.name, p.workload.Name, err)
	}
	return nil
}

func (p *Pass) run(ops []workload.Op, first int) error {
	var i int
	var err error
	if p.byRef == nil {
		i, err = drive(p.strategy, ops, p.workload.live, p.origin)
	} else {
		i, err = driveByRef(p.strategy, p.byRef, ops, p.workload.refs, p.origin)
	}
	if err != nil {
		return p.refused(first+i, err)
	}
	return nil
}

func (p *Pass) refused(i int, err error) error {
	r := &Refusal{Candidate: p.name, Workload: p.workload.Name, Operation: i, Op: p.workload.at(i), Err: err}
	if why, ok := power.LastRefusal(p.strategy); ok && !r.Op.IsFree() {
		r.Reason = why.Reason.String()
	}
	return r
}

// drive is the timed loop. It returns the index of the operation that failed.
func drive(s alloc.Allocator, ops []workload.Op, live []device.Addr, from alloc.Origin) (int, error) {
	for i, op := range ops {
		slot := op.Slot()
		if size := op.Size(); size != 0 {
			b, err := s.Alloc(alloc.Request{Size: size, Origin: from})
			if err != nil {
				return i, err
			}
			live[slot] = b.Addr
		} else if err := s.Free(live[slot]); err != nil {
			return i, err
		}
	}
	return 0, nil
}

// reference is the record of a live block for frees by reference.
type reference struct {
	addr device.Addr
	ref  uint32
}

// driveByRef is drive with frees by reference.
func driveByRef(
	s alloc.Allocator, byRef power.Referenced, ops []workload.Op, live []reference, from alloc.Origin,
) (int, error) {
	for i, op := range ops {
		slot := op.Slot()
		if size := op.Size(); size != 0 {
			b, err := s.Alloc(alloc.Request{Size: size, Origin: from})
			if err != nil {
				return i, err
			}
			live[slot] = reference{b.Addr, b.Ref}
		} else if err := byRef.FreeRef(alloc.Block{Addr: live[slot].addr, Ref: live[slot].ref}); err != nil {
			return i, err
		}
	}
	return 0, nil
}

// loop returns the nanoseconds that the timed loop takes without a strategy.
func (c *Workload) loop() int64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := replay.ThreadTime()
	c.sum += emptyLoop(c.churn, c.live)
	return replay.ThreadTime() - start
}

// emptyLoop does the same as drive without the calls of a strategy.
func emptyLoop(ops []workload.Op, live []device.Addr) (sum device.Addr) {
	for _, op := range ops {
		slot := op.Slot()
		if size := op.Size(); size != 0 {
			live[slot] = device.Addr(size)
		} else {
			sum += live[slot]
		}
	}
	return sum
}
