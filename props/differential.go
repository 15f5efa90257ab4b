package props

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// Differential runs generated sequences over all subjects in lockstep and checks invariant
// I38: they grant the same requests, refuse the same mistakes and show the same live
// blocks. Only requests that every subject serves, or every subject must refuse, are made;
// the rest of a sequence is skipped. The error is a [*Failure] that names the two subjects
// and the call on which they disagree, anything else if a subject cannot be built.
//
// The devices should be without a capacity. A subject with a bound, its own or its
// device's, gets requests for at most a quarter of it in one sequence, so that running out of
// memory is always a disagreement.
func Differential(subjects []Subject, o Options) (Result, error) {
	o = o.withDefaults()
	if len(subjects) < 2 {
		return Result{}, errors.New("props: differential: want at least two subjects")
	}
	d, profile, err := newDifferential(subjects, o.Operations)
	if err != nil {
		return Result{}, err
	}
	r, err := searchAll("differential", profile, o, func() (*ensemble, error) {
		d, _, err = newDifferential(subjects, o.Operations) // the last one has the subjects that disagree
		if err != nil {
			return nil, err
		}
		return &d.ensemble, nil
	})
	if f, ok := errors.AsType[*Failure](err); ok && d.blamed != "" {
		f.Subject = d.blamed
	}
	return r, err
}

// Agree runs one sequence over all subjects in lockstep, as [Differential] does. The error
// is a [*Violation] if they disagree.
func Agree(subjects []Subject, seq Sequence) error {
	d, _, err := newDifferential(subjects, max(len(seq), 1))
	if err != nil {
		return err
	}
	defer d.close()
	return d.run(seq)
}

// roomy bounds the requests of a subject without a bound of its own. It is above most of
// the sizes at which strategies decide differently.
const roomy = 64 * device.MiB

type differential struct {
	ensemble
	most     device.Size   // largest request that is certain to be granted
	ceilings []device.Size // largest request that each subject can ever grant; 0 if unknown
	blamed   string        // the two subjects that disagreed last
	tags     []uint64
}

func newDifferential(subjects []Subject, operations int) (*differential, Profile, error) {
	d := &differential{most: roomy}
	d.observer = &d.ensemble
	d.subjects, d.enrol, d.suits, d.same, d.compare = subjects, d.build, d.suitable, d.agrees, d.compareLive
	all := Profile{Operations: operations, Quantum: 1, Max: ^device.Size(0)}
	for i := range subjects {
		s := &subjects[i]
		p, err := s.Profile(operations)
		if err != nil {
			return nil, all, err
		}
		m, err := newMachine(s, device.FaultPlan{})
		if err != nil {
			return nil, all, err
		}
		ceiling := device.Size(0)
		if power.Has(m.Strategy, power.PowerCeiling) {
			ceiling = power.MaxRequest(m.Strategy)
		}
		d.ceilings = append(d.ceilings, ceiling)
		if m.Stats().Limit != 0 || s.Device.Capacity != 0 {
			d.most = min(d.most, p.Room/device.Size(4*operations))
		}
		_ = m.Close() // the device is thrown away with it
		all.Quantum, all.Max = max(all.Quantum, p.Quantum), min(all.Max, p.Max)
		all.Boundaries = append(all.Boundaries, p.Boundaries...)
	}
	d.most = max(min(d.most, all.Max), 1)
	all.Room, all.Quantum = d.most, min(all.Quantum, max(d.most/8, 1))
	slices.Sort(all.Boundaries)
	all.Boundaries = slices.DeleteFunc(slices.Compact(all.Boundaries), func(n device.Size) bool { return n > d.most })
	return d, all, nil
}

func (d *differential) build(Sequence) (machines []*machine, err error) {
	for i := range d.subjects {
		m, err := newMachine(&d.subjects[i], device.FaultPlan{})
		if err != nil {
			return machines, fmt.Errorf("%s: cannot be built: %w", d.subjects[i].Name, err)
		}
		m.lockstep = lockstep{name: d.subjects[i].Name, number: IAgreement}
		machines = append(machines, m)
	}
	return machines, nil
}

// suitable reports whether all subjects serve a request, or all must refuse it.
func (d *differential) suitable(r alloc.Request) bool {
	served, refused := 0, 0
	for i := range d.subjects {
		p, c := &d.subjects[i].Promises, d.ceilings[i]
		switch {
		case r.Size == 0 && !p.ZeroSize,
			r.Align != 0 && !device.IsPowerOfTwo(r.Align),
			c != 0 && r.Size > c:
			refused++
		case r.Size > d.most:
			return false
		case r.Align == 0, p.Honours == nil && r.Align <= p.Quantum, p.Honours != nil && p.Honours(r):
			served++
		case p.Honours != nil:
			refused++
		default:
			return false
		}
	}
	return served == len(d.subjects) || refused == len(d.subjects)
}

// agrees reports whether two subjects gave the same answer. The addresses and sizes of blocks may
// differ, and so may the answers of a power that one of them lacks.
func (d *differential) agrees(first, other *machine) bool {
	a, b := first.answer.Err, other.answer.Err
	if errors.Is(a, alloc.ErrUnsupported) || errors.Is(b, alloc.ErrUnsupported) ||
		sameError(contractual(a), contractual(b)) {
		return true
	}
	d.blame(first, other)
	return false
}

// contractual returns the error of the contract that err wraps, or err itself.
func contractual(err error) error {
	for _, k := range []error{alloc.ErrOutOfMemory, alloc.ErrInvalidRequest, alloc.ErrInvalidFree, alloc.ErrClosed} {
		if errors.Is(err, k) {
			return k
		}
	}
	return err
}

func (d *differential) blame(a, b *machine) { d.blamed = a.name + " and " + b.name }

func (d *differential) compareLive() error {
	for i, m := range d.machines {
		d.tags = d.tags[:0]
		for c := range m.Walk {
			if c.State == alloc.Live {
				d.tags = append(d.tags, c.Tag)
			}
		}
		slices.Sort(d.tags)
		same := slices.EqualFunc(d.tags, d.live, func(tag uint64, live demand) bool { return tag == live.id })
		if same && m.Stats().Live == len(d.live) {
			continue
		}
		other := d.machines[max(i-1, 0)]
		if i == 0 {
			other = d.machines[1]
		}
		d.blame(other, m)
		return violated(IAgreement, "after call %d: %d blocks are live, %s shows the blocks %v and counts %d",
			d.step, len(d.live), m.name, d.tags, m.Stats().Live)
	}
	return nil
}
