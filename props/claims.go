package props

import (
	"cmp"
	"errors"
	"runtime"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

// ample returns the capacity of the device on which the claims of a subject are checked: far more
// than its own device, but small enough for tables that are proportional to it.
func (p Profile) ample() device.Size { return min(p.Room, 8*device.MiB) * 1024 }

// Claims checks the claims of a subject's configuration about memory, on generated sequences:
// [setting.Setup.ForCapacity] (invariant I72), [setting.Setup.Preallocates] (I68),
// [setting.Setup.Unbound] (I69), [setting.Setup.Reduced] by the bytes held (I71), and the power
// [power.Spanned] (I75). The subject's setup is fitted
// to a device where no request runs out of memory. A subject without a setup claims nothing. The
// error is a [*Failure] if a claim is false, anything else if the subject cannot be built.
func Claims(s Subject, o Options) (Result, error) {
	o = o.withDefaults()
	if s.Setup.Config == nil {
		return Result{}, nil
	}
	profile, err := s.Profile(o.Operations)
	if err != nil {
		return Result{}, err
	}
	return searchAll(s.Name, profile, o, func() (*ensemble, error) { return &newClaims(s, profile).ensemble, nil })
}

// claims observes one instance on an ample device.
type claims struct {
	ensemble
	subject Subject
	except  exceptions
	ample   device.Size // capacity of the device
	calls   []answered
}

// answered is a call with its answer.
type answered struct {
	Call
	Answer
}

func newClaims(s Subject, p Profile) *claims {
	c := &claims{subject: s, except: s.exceptions(), ample: p.ample()}
	most := c.ample / device.Size(4*p.Operations) // so that no request runs out of memory
	c.observer, c.subjects, c.enrol, c.finish = c, []Subject{s}, c.build, c.elsewhere
	c.suits = func(r alloc.Request) bool { return r.Size <= most && r.Align <= most }
	c.compare = func() error { return nil }
	return c
}

// judge returns the violation unless the subject is excused from its invariant.
func (c *claims) judge(err error) error {
	if v, ok := errors.AsType[*Violation](err); ok && c.except[v.Number] {
		c.tally.except(v.Number, 1)
		return nil
	}
	return err
}

// on builds the strategy for a device of n bytes, and over one.
func (c *claims) on(n device.Size) (*machine, error) { return c.built(c.subject.Setup, n) }

// built is on with another setup.
func (c *claims) built(setup setting.Setup, n device.Size) (*machine, error) {
	s := c.subject
	s.Device.Capacity, s.Device.Memory = n, sim.Counted
	s.New = setup.ForCapacity(n).New
	return newMachine(&s, device.FaultPlan{})
}

func (c *claims) build(Sequence) (machines []*machine, err error) {
	c.calls = c.calls[:0]
	for range 2 {
		m, err := c.on(c.ample)
		if err != nil {
			return machines, err
		}
		machines = append(machines, m)
	}
	limit, probe := machines[0].Stats().Limit, machines[1]
	defer probe.abandon()
	if err := c.judge(Fits(c.subject.Setup, c.ample, limit)); err != nil {
		return machines[:1], err
	}
	if _, err := probe.Alloc(alloc.Request{Size: 1}); err != nil {
		return machines[:1], nil // other invariants judge it
	}
	stats := probe.Stats()
	return machines[:1], c.judge(Preallocated(c.subject.Setup, cmp.Or(stats.Limit, c.ample), stats.Reserved))
}

// Preallocated checks invariant I68 of a setup, given the bytes that its strategy reserves for a
// request of one byte, and its limit or the capacity of the device.
func Preallocated(s setting.Setup, limit, reserved device.Size) error {
	switch {
	case s.Preallocates && reserved < limit-limit/16:
		return violated(IPreallocated, "%s says that it preallocates, and holds %d bytes of a limit of %d after one request",
			s.Name, uint64(reserved), uint64(limit))
	case !s.Preallocates && reserved > limit/2:
		return violated(IPreallocated, "%s holds %d bytes of a limit of %d for one byte, and does not say that it "+
			"preallocates", s.Name, uint64(reserved), uint64(limit))
	}
	return nil
}

// Fits checks invariant I72 of a setup, given the limit of its strategy on a device of n bytes.
func Fits(s setting.Setup, n, limit device.Size) error {
	for _, m := range [...]device.Size{n, n / 3} { // a third is no multiple of a page
		if again, once := asJSON(s.ForCapacity(n).ForCapacity(m).Config), asJSON(s.ForCapacity(m).Config); again != once {
			return violated(IFitted, "%s for %d bytes, and then for %d, is %s, and for %d bytes at once %s", s.Name, uint64(n),
				uint64(m), again, uint64(m), once)
		}
	}
	follows := asJSON(s.ForCapacity(n).Config) != asJSON(s.ForCapacity(n/3).Config)
	if limit > n || follows && limit != 0 && limit != n {
		return violated(IFitted, "%s has a limit of %d bytes on a device of %d, for which it was fitted", s.Name,
			uint64(limit), uint64(n))
	}
	return nil
}

func (c *claims) adapt(m *machine, own *Call) {
	c.ensemble.adapt(m, own)
	c.calls = append(c.calls, answered{Call: *own})
}

func (c *claims) answered(m *machine, _ *Call) error {
	c.calls[len(c.calls)-1].Answer = m.answer
	return nil
}

// elsewhere makes the calls of a sequence again on devices of other capacities.
func (c *claims) elsewhere(seq Sequence) error {
	if err := c.tighten(); err != nil {
		return err
	}
	if err := c.withheld(seq); err != nil {
		return err
	}
	return c.spanned()
}

// tighten checks invariant I69: it makes the calls again on a device of as many bytes as were held
// at most.
func (c *claims) tighten() error {
	need := c.machines[0].dev.Usage().PeakCharged
	excused := func(a answered) bool { return a.ranOut() || a.Kind == OpConf }
	if !c.subject.Setup.Unbound() || need == 0 || slices.ContainsFunc(c.calls, excused) {
		return nil
	}
	m, err := c.on(need)
	c.machines = append(c.machines, m)
	if err != nil {
		return c.judge(violated(IUnbound, "%s held at most %d bytes, and cannot be built on a device of as many: %v",
			c.subject.Name, uint64(need), err))
	}
	for i, call := range c.calls {
		c.step++
		c.pulse.beats.Add(1)
		m.limiter.begin()
		if a := m.do(&call.Call); call.Kind.calls() && (!sameError(a.Err, call.Err) || a.Err == nil && a != call.Answer) {
			return c.judge(violated(IUnbound, "call %d, %v: on a device of %d bytes, as many as were held at most, %s "+
				"answered %v, with more memory %v", i+1, call.Call, uint64(need), c.subject.Name, a, call.Answer))
		}
	}
	return nil
}

// withheld checks invariant I71 with a bound of the bytes held: on devices that are ample or just
// large enough it makes the calls again with the reduced configuration. If that holds no more than
// the bound, and the device refuses it nothing, the subject's own has to do the same.
func (c *claims) withheld(seq Sequence) error {
	own, d := c.subject.Setup, demandOf(seq)
	static := asJSON(own.Reduced(d).Config)
	d.Held = c.machines[0].dev.Usage().PeakHeld
	for _, d.Capacity = range [...]device.Size{c.ample, d.Held + d.Held/2, d.Held + d.Held/64} {
		to := own.Reduced(d)
		if asJSON(to.Config) == static {
			continue
		}
		reduced, err := c.built(to, d.Capacity)
		c.machines = append(c.machines, reduced)
		if err != nil {
			return err
		}
		want := c.again(reduced)
		u := reduced.dev.Usage()
		if u.PeakHeld > d.Held || u.Calls.Refused() > 0 {
			continue
		}
		m, err := c.on(d.Capacity)
		c.machines = append(c.machines, m)
		if err != nil {
			return err
		}
		for i, a := range c.again(m) {
			if b := want[i]; !sameError(a.Err, b.Err) || a.Block.Addr != b.Block.Addr || a.Block.Size != b.Block.Size {
				return c.judge(violated(IReduced, "call %d, %v: %s answered %v on a device of %d bytes, and %v with the "+
					"configuration %s, to which it reduces because that holds at most %d bytes", i+1, c.calls[i].Call,
					c.subject.Name, a, uint64(d.Capacity), b, asJSON(to.Config), uint64(d.Held)))
			}
		}
		if a := m.dev.Usage(); a.Calls != u.Calls || a.PeakHeld != u.PeakHeld {
			return c.judge(violated(IReduced, "%s made the calls %v, and %v with the configuration %s, to which it reduces "+
				"because that holds at most %d bytes", c.subject.Name, a.Calls, u.Calls, asJSON(to.Config), uint64(d.Held)))
		}
	}
	return nil
}

// ranOut reports whether a request found no memory.
func (a answered) ranOut() bool { return errors.Is(a.Err, alloc.ErrOutOfMemory) }

// reduced returns the subject with the configuration that decides the same in a sequence, by
// [setting.Setup.Reduced], and whether that is another one.
func (s Subject) reduced(seq Sequence) (Subject, bool) {
	if s.Setup.Config == nil {
		return s, false
	}
	to := s.Setup.Reduced(demandOf(seq))
	s.New = to.New
	return s, asJSON(to.Config) != asJSON(s.Config)
}

// demandOf returns the demand of a sequence.
func demandOf(seq Sequence) (d setting.Demand) {
	d.Changes = changes(seq)
	for _, o := range seq {
		d.Pools = d.Pools || o.Kind == OpPoolBegin
		d.Polls = d.Polls || o.Kind == OpPoll
		if o.Kind == OpAlloc {
			d.Sizes = append(d.Sizes, o.Size)
		}
	}
	slices.Sort(d.Sizes)
	d.Sizes = slices.Compact(d.Sizes)
	return d
}

// metered is the number of live blocks when metadata is measured.
const metered = 1024

// Metadata checks the host memory that a strategy with the power [power.Metered] reports (invariant
// I70): with up to 1,024 live blocks it may differ from what the collector gets back without the
// strategy by an eighth, which is what size classes waste at most, and by 16 KiB. A setup is fitted
// to an ample device. The error is a [*Violation], or reports that the subject cannot be built.
//
// Precondition: no other goroutine takes or frees host memory during the call.
func Metadata(s Subject) error {
	if s.Setup.Config != nil {
		p, err := s.Profile(1)
		if err != nil {
			return err
		}
		s.Device.Capacity, s.New = p.ample(), s.Setup.ForCapacity(p.ample()).New
	}
	m, err := newMachine(&s, device.FaultPlan{})
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(m) // the device stays while the strategy goes
	most := min(power.MaxRequest(m.Strategy), 16*device.KiB)
	var live []device.Addr
	for i := range 2 * metered {
		b, err := m.Alloc(alloc.Request{Size: device.Size(i*0x9E3779B1)%most + 1})
		if err != nil {
			break
		}
		if live = append(live, b.Addr); len(live) < metered {
			continue
		}
		at := i * 0x9E3779B1 % metered
		if err := m.Free(live[at]); err != nil {
			return violated(IFreeAnswer, "the free of live block %v was answered by %v", live[at], quoted(err))
		}
		live[at] = live[len(live)-1]
		live = live[:len(live)-1]
	}
	said, err := power.MetadataBytes(m.Strategy)
	if err != nil || s.exceptions()[IMetered] {
		return nil
	}
	with := hostMemory()
	m.Strategy = nil
	held := with - min(with, hostMemory())
	if most := held/8 + 16*device.KiB; max(said, held)-min(said, held) > most {
		return violated(IMetered, "with %d live blocks %s says that its metadata takes %d bytes; the heap is smaller by %d "+
			"without it", len(live), s.Name, uint64(said), uint64(held))
	}
	return nil
}

// hostMemory returns the bytes of the Go heap that are in use.
func hostMemory() device.Size {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // sweeps the garbage of the first
	runtime.ReadMemStats(&m)
	return device.Size(m.HeapAlloc)
}
