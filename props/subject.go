package props

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/mirror"
	"github.com/vramyard/vramyard/device/sim"
)

// Subject is a strategy in one configuration, put to the test.
type Subject struct {
	Name     string      // strategy and configuration, as failures and tests name it
	Config   any         // the strategy's configuration, for failures
	Device   sim.Config  // the device it runs on; a small capacity makes it run out often; see [Subject.Filled]
	Promises promise.Set // its guarantees beyond the core

	// Card, if not nil, is a real device that repeats the calls of the first instance. Other
	// instances run on the simulated device alone. See invariant I63.
	Card *Card

	// New builds the strategy over src.
	New func(src device.Source) (alloc.Strategy, error)

	// Setup makes the claims that [Claims] and [Metamorphic] judge; the zero value makes none.
	Setup setting.Setup

	misled   bool           // see [Subject.Misled]
	forecast power.Forecast // of the present sequence, if it is misled
	trained  Sequence       // calls before each sequence, see [Subject.Trained]
}

// Card is a real device beside the simulated one.
type Card struct {
	Name string      // as traces of failures have it
	Free device.Size // bytes that one instance may have
	// Open opens it for one instance, with a capacity in bytes of at most Free.
	Open func(capacity device.Size) (mirror.Card, error)
}

// SubjectOf returns the subject of a strategy whose constructor is build.
func SubjectOf[C any, S alloc.Strategy](
	name string, build func(device.Source, C) (S, error), config C, on sim.Config, p promise.Set,
) Subject {
	s := SubjectOfSetup(setting.SetupOf(name, build, config), on)
	s.Promises = p
	return s
}

// SubjectOfSetup returns the subject of a catalogue entry in one configuration.
func SubjectOfSetup(s setting.Setup, on sim.Config) Subject {
	return Subject{Name: s.Name, Config: s.Config, Device: on, Promises: s.Promises, New: s.New, Setup: s}
}

// Wrapped returns the subject inside a wrapper, without the claims of its setup. Name is appended
// to the subject's.
func (s Subject) Wrapped(name string, wrap func(alloc.Strategy) (alloc.Strategy, error)) Subject {
	inner := s.New
	s.Name, s.Setup = s.Name+"/"+name, setting.Setup{}
	s.New = func(src device.Source) (alloc.Strategy, error) {
		a, err := inner(src)
		if err != nil {
			return nil, err
		}
		return wrap(a)
	}
	return s
}

type exceptions [len(invariantNames)]bool

func (s *Subject) exceptions() (set exceptions) {
	for _, e := range s.Promises.Except {
		if n, ok := ParseNumber(e.Invariant); ok {
			set[n] = true
		}
	}
	return set
}

// Profile builds the strategy once and returns the profile of sequences for it. A panic and a
// constructor that does not return are violations, as of [Guarded].
func (s Subject) Profile(operations int) (p Profile, err error) {
	err = Guarded(0, func(func()) (err error) {
		p, err = s.profile(operations)
		return err
	})
	return p, err
}

func (s Subject) profile(operations int) (Profile, error) {
	dev, err := sim.New(s.Device)
	if err != nil {
		return Profile{}, err
	}
	a, err := s.New(dev)
	if err != nil {
		return Profile{}, fmt.Errorf("%s: cannot be built: %w", s.Name, err)
	}
	defer a.Close() // the device is thrown away with it
	p := Profile{
		Operations: operations,
		Quantum:    max(s.Promises.Quantum, 1),
		Max:        power.MaxRequest(a),
		Room:       64 * device.MiB,
		Boundaries: s.Promises.Boundaries,
		Frontier:   power.Has(a, power.PowerFrontier),
		Streams:    power.Has(a, power.PowerStreamRecorder),
		Poller:     power.Has(a, power.PowerPoller),
		Pools:      power.Has(a, power.PowerPrivatePools),
		learns:     power.Has(a, power.PowerPlanner) || power.Has(a, power.PowerInformed),
	}
	if power.Has(a, power.PowerConfigurable) {
		p.Confs = s.Promises.Confs
	}
	limit, capacity := a.Stats().Limit, s.Device.Capacity
	switch {
	case limit != 0 && capacity != 0:
		p.Room = min(limit, capacity)
	case limit != 0 || capacity != 0:
		p.Room = max(limit, capacity)
	}
	return p, nil
}
