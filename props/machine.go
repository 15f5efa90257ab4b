package props

import (
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/mirror"
	"github.com/vramyard/vramyard/device/sim"
)

// mostChunks bounds the chunks of a walk: a longer one counts as endless.
const mostChunks = 1 << 20

// machine is one instance of a strategy on a device of its own, as an interpreter calls it.
type machine struct {
	dev     *sim.Device
	beside  *mirror.Device // dev with a card beside it, nil for none
	faults  *device.Faults
	limiter *callLimiter
	alloc.Strategy
	watch Watcher // nil for none

	blocks []alloc.Block               // live, in the order of interpreter.live
	freed  []device.Addr               // in the order of interpreter.freed
	answer Answer                      // to the last call
	aligns map[device.Addr]device.Size // of the blocks granted last at the addresses; 0 is not stored
	lockstep
}

// align stores the alignment of the request of the block at a.
func (m *machine) align(a device.Addr, n device.Size) {
	switch {
	case n == 0:
		delete(m.aligns, a)
	case m.aligns == nil:
		m.aligns = map[device.Addr]device.Size{a: n}
	default:
		m.aligns[a] = n
	}
}

// newMachine builds the device and the strategy. A machine without strategy comes back
// with the strategy's error, so that its device can be inspected.
func newMachine(s *Subject, plan device.FaultPlan) (*machine, error) {
	return makeMachine(s, plan, func(m *machine) (device.Device, error) { return m.dev, nil })
}

// newWatched is newMachine with the subject's card beside the device, if it has one.
func newWatched(s *Subject, plan device.FaultPlan) (*machine, error) {
	if s.Card == nil {
		return newMachine(s, plan)
	}
	return makeMachine(s, plan, func(m *machine) (device.Device, error) {
		if s.Card.Free < s.Device.Capacity {
			return nil, fmt.Errorf("the card has %v free, the device is one of %v", s.Card.Free, s.Device.Capacity)
		}
		card, err := s.Card.Open(s.Device.Capacity)
		if err != nil {
			return nil, err
		}
		m.beside = mirror.New(m.dev, card, mirror.Options{Room: s.Card.Free - s.Device.Capacity})
		return m.beside, nil
	})
}

// newTwin is newMachine with the capabilities of another machine's device.
func newTwin(s *Subject, plan device.FaultPlan, other *machine) (*machine, error) {
	if other.beside == nil {
		return newMachine(s, plan)
	}
	return makeMachine(s, plan, func(m *machine) (device.Device, error) { return other.beside.ModelOnly(m.dev), nil })
}

// makeMachine builds a machine whose strategy runs on a device over the simulated one.
func makeMachine(s *Subject, plan device.FaultPlan, over func(*machine) (device.Device, error)) (m *machine,
	err error) {
	m = &machine{}
	if m.dev, err = sim.New(s.Device); err != nil {
		return m, err
	}
	on, err := over(m)
	if err != nil {
		return m, err
	}
	if m.faults, err = device.NewFaults(on, plan); err != nil {
		return m, err
	}
	m.limiter = newCallLimiter(m.faults)
	m.Strategy, err = s.New(m.limiter)
	if err == nil && s.forecast != nil {
		_ = power.Plan(m.Strategy, s.forecast) // if it has the power
	}
	if err == nil && s.Device.Memory == sim.Filled {
		memory, _ := device.ContentsOf(on)
		m.Strategy, err = wrap.Filled(m.Strategy, memory) // not behind the faults, which are for the strategy
	}
	return m, err
}

func (m *machine) carded() error {
	if m.beside == nil {
		return nil
	}
	if err := m.beside.Settle(); err != nil {
		return violated(ICard, "%v", err)
	}
	return nil
}

// listen sets a history that discards actions. A strategy with a history may query its device more
// often than one without, so both instances have one.
func listen(m *machine) { _ = power.SetHistory(m.Strategy, func(power.Action) {}) } // if it has the power

// closeAll closes the strategy, once more if the device refused, and checks invariants
// I32 and I34: the device holds nothing afterwards.
func (m *machine) closeAll() (err error) {
	for range 2 {
		injected := m.faults.Injected()
		if err = m.close(); err == nil {
			break
		}
		if found := corrupted(err); found != nil {
			return found
		}
		if m.faults.Injected() == injected {
			return violated(IClose, "Close failed with %q though the device refused nothing", err)
		}
		m.faults.FailNext(0)
	}
	if u := m.dev.Usage(); !u.Empty() && err == nil {
		return violated(IClose, "the strategy is closed and the device still holds %s", inventory(u))
	}
	return m.carded()
}

// dispose closes instances in any state, unless one of them panicked.
func (in *interpreter) dispose(all ...*machine) {
	for _, m := range all {
		if !in.broken {
			m.abandon()
		}
	}
}

// abandon closes a strategy in any state; it is not checked any more.
func (m *machine) abandon() {
	if m == nil || m.Strategy == nil {
		return
	}
	defer func() { _ = recover() }() // of a broken strategy
	m.limiter.begin()
	m.faults.FailNext(0)
	_ = m.Close()
}

func inventory(u device.Usage) string {
	return fmt.Sprintf("%d regions, %d handles, %d ranges and %d events, %d bytes of memory",
		u.Regions, u.Handles, u.Ranges, u.Events, uint64(u.Held))
}

// unbuilt checks invariant I32 of a strategy that could not be built: its device holds nothing.
func unbuilt(u device.Usage) error {
	if u.Empty() {
		return nil
	}
	return violated(IClose, "the strategy could not be built and the device holds %s", inventory(u))
}

// checkClosed checks invariant I33: a closed strategy shows nothing and refuses calls.
func (m *machine) checkClosed() error {
	const a = device.Addr(1 << 20)
	calls := []Call{{Op: Op{Kind: OpAlloc}, Request: alloc.Request{Size: 1}}, {Op: Op{Kind: OpFree}, Addr: a}}
	if power.Has(m.Strategy, power.PowerStreamRecorder) {
		calls = append(calls, Call{Op: Op{Kind: OpUse, Stream: 1}, Addr: a})
	}
	if power.Has(m.Strategy, power.PowerPrivatePools) {
		for k := OpPoolBegin; k <= OpPoolRelease; k++ {
			calls = append(calls, Call{Op: Op{Kind: k, Pool: 1}})
		}
	}
	if power.Has(m.Strategy, power.PowerConfigurable) {
		calls = append(calls, Call{Op: Op{Kind: OpConf}})
	}
	for _, c := range calls {
		if err := m.do(&c).Err; !errors.Is(err, alloc.ErrClosed) {
			return violated(IClosed, "%s after Close was answered by %v, want %q", kinds[c.Kind].method, quoted(err),
				alloc.ErrClosed)
		}
	}
	if _, err := power.BlockAt(m.Strategy, a); err == nil || power.Has(m.Strategy, power.PowerLocator) &&
		!errors.Is(err, alloc.ErrClosed) {
		return violated(IClosed, "BlockAt after Close was answered by %v", quoted(err))
	}
	for c := range m.Walk {
		return violated(IClosed, "Walk after Close shows chunk %v", c.Addr)
	}
	if s := m.Stats(); s.Reserved != 0 || s.Regions != 0 {
		return violated(IClosed, "Stats after Close has %d bytes in %d regions", uint64(s.Reserved), s.Regions)
	}
	if err := m.close(); err != nil {
		return violated(IClosed, "Close of a closed strategy failed with %q", err)
	}
	return nil
}

func (m *machine) close() error { return m.do(&Call{Op: Op{Kind: opClose}}).Err }

// stoppable checks invariant I3: a walk ends when yield returns false, and a second walk shows the
// same chunks.
func stoppable(s alloc.Inspector, walk []alloc.Chunk) error {
	n, want := 0, len(walk)/2+1
	var err error
	s.Walk(func(c alloc.Chunk) bool {
		switch {
		case n >= want:
			err = violated(IWalk, "Walk yielded chunk %v after yield returned false", c.Addr)
		case n >= len(walk) || walk[n] != c:
			err = violated(IWalk, "a second walk shows %+v as chunk %d", c, n)
		}
		n++
		return n < want
	})
	if err == nil && n < min(want, len(walk)) {
		err = violated(IWalk, "a second walk shows %d chunks, the first %d", n, len(walk))
	}
	return err
}
