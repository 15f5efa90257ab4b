package props

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

// Metamorphic runs generated sequences over several instances of the subject in lockstep.
// The first gets the sequence as it is; each of the others differs in one thing that must
// not matter (invariants I39, I41 to I43, I57 and I71), and has to give the same answers. At the
// end of each sequence blocks are allocated and freed at once (invariant I40). The device refuses
// calls where the sequence says so, for all instances alike. The error is a [*Failure] if a
// relation does not hold, anything else if the subject cannot be built.
func Metamorphic(s Subject, o Options) (Result, error) {
	o = o.withDefaults()
	profile, err := s.Profile(o.Operations)
	if err != nil {
		return Result{}, err
	}
	return searchAll(s.Name, profile, o, func() (*ensemble, error) { return &newRelations(s, profile).ensemble, nil })
}

// Relate runs one sequence over instances of the subject in lockstep, as [Metamorphic] does.
// The error is a [*Violation] if a relation does not hold.
func Relate(s Subject, seq Sequence) error {
	profile, err := s.Profile(len(seq))
	if err != nil {
		return err
	}
	r := newRelations(s, profile)
	defer r.close()
	return r.run(seq)
}

// Identical runs generated sequences over two subjects in lockstep, such as two implementations of
// one design, and checks invariant I38 in its strict form: they give the same answers with the same
// addresses, record the same refusals, and show the same chunks and statistics. The device refuses
// calls where the sequence says so, for both alike. The error is a [*Failure] if they differ,
// anything else if one cannot be built.
func Identical(first, other Subject, o Options) (Result, error) {
	o = o.withDefaults()
	profile, err := first.Profile(o.Operations)
	if err != nil {
		return Result{}, err
	}
	return searchAll(first.Name+" and "+other.Name, profile, o, func() (*ensemble, error) {
		r := newRelations(first, profile)
		r.subjects, r.enrol, r.finish = []Subject{first, other}, r.pair, nil
		r.same = func(a, b *machine) bool { return r.equal(a, b) && sameRefusal(a, b) }
		return &r.ensemble, nil
	})
}

// sameRefusal reports whether two instances recorded the same last refusal.
func sameRefusal(a, b *machine) bool {
	x, _ := power.LastRefusal(a.Strategy)
	y, _ := power.LastRefusal(b.Strategy)
	same := sameError(x.Device, y.Device)
	x.Device, y.Device = nil, nil
	return same && x == y
}

// pair makes an instance of each of two subjects for one sequence.
func (r *relations) pair(Sequence) (machines []*machine, err error) {
	for i := range r.subjects {
		m, err := newMachine(&r.subjects[i], device.FaultPlan{})
		if err != nil {
			return machines, fmt.Errorf("%s: cannot be built: %w", r.subjects[i].Name, err)
		}
		m.lockstep = lockstep{name: r.subjects[i].Name, number: IAgreement}
		machines = append(machines, m)
	}
	return machines, nil
}

type relations struct {
	ensemble
	subject  Subject
	frontier bool // whether Request.Before has a meaning
	pools    bool // whether it has private pools
	except   exceptions
}

func newRelations(s Subject, p Profile) *relations {
	s.Device.Memory = sim.Counted // a shifted device has no contents at its addresses
	r := &relations{subject: s, frontier: p.Frontier, pools: p.Pools, except: s.exceptions()}
	r.observer, r.subjects, r.faults = &r.ensemble, []Subject{s}, true
	r.enrol, r.same, r.compare, r.finish = r.build, r.equal, r.compareAll, r.undo
	r.suits = func(alloc.Request) bool { return true }
	return r
}

// build makes the instances of one sequence. Each differs from the first in one thing.
func (r *relations) build(seq Sequence) (machines []*machine, err error) {
	shifted := r.subject
	shifted.New = func(src device.Source) (alloc.Strategy, error) { return r.subject.New(shiftedDevice(src)) }
	reduced, reducible := r.subject.reduced(seq)
	for _, l := range []lockstep{
		{name: "the instance"},
		{name: "one with other labels", number: IIndifference, relabel: r.relabel},
		{name: "one that was inspected", number: IObservation, before: inspect},
		{name: "one with refused mistakes in between", number: ITraceless, before: r.makeMistakes},
		{name: "one over memory at other addresses", number: ITranslation, shift: farAway},
		{name: "one with an empty redirection in between", number: IIdle, before: redirectNothing},
		{name: "one with the reduced configuration", number: IReduced},
	} {
		s := &r.subject
		switch {
		case r.except[l.number] || l.number == IIdle && !r.pools || l.number == IReduced && !reducible:
			continue
		case l.number == ITranslation:
			s = &shifted
		case l.number == IReduced:
			s = &reduced
		}
		m, err := newMachine(s, device.FaultPlan{})
		if err != nil {
			return machines, fmt.Errorf("%s: cannot be built: %w", s.Name, err)
		}
		m.lockstep = l
		machines = append(machines, m)
	}
	return machines, nil
}

// relabel changes labels by which no strategy may place blocks; a hint for the low end equals no
// hint. Pools keep their order, because they may be released in it, and so do the streams of a
// strategy with pools.
func (r *relations) relabel(c *Call) {
	stream := func(s device.Stream) device.Stream {
		switch {
		case s == power.AllStreams:
			return s
		case r.pools:
			return 2*s + 1
		}
		return 3 - s
	}
	switch c.Kind {
	case OpUse, OpDrain:
		c.Stream = stream(c.Stream)
	case OpPoolBegin, OpPoolEnd, OpPoolRelease:
		if c.Pool != 0 {
			c.Pool, c.Stream = 2*c.Pool+1000, stream(c.Stream)
		}
	case OpAlloc:
		q := &c.Request
		if !r.frontier {
			q.Before = 1 + q.Tag
		}
		q.Tag, q.Stream = ^q.Tag, stream(q.Stream)
		switch q.Hint {
		case alloc.HintNone:
			q.Hint = alloc.HintLow
		case alloc.HintLow:
			q.Hint = alloc.HintNone
		}
	}
}

func inspect(m *machine) {
	s := m.Strategy
	_ = s.Stats()
	for range s.Walk {
	}
	for range s.Walk {
		break
	}
	_ = s.Check() // invariant I21 judges it
	power.WalkFree(s, func(alloc.Chunk) bool { return true })
	_ = power.LargestFree(s)
	_, _ = power.LastRefusal(s)
	_ = power.MaxRequest(s)
	// Missing powers are skipped.
	_, _ = power.MetadataBytes(s)
	_, _ = power.QueuedFrees(s)
	_, _ = power.AppendReport(s, nil, alloc.Request{Size: 1})
}

// unowned is a private pool that no sequence names.
const unowned alloc.PoolID = 1 << 40

// redirectNothing redirects requests into a pool and ends it at once.
func redirectNothing(m *machine) {
	m.try(Call{Op: Op{Kind: OpPoolBegin, Pool: unowned, Stream: power.AllStreams}},
		Call{Op: Op{Kind: OpPoolEnd, Pool: unowned}},
		Call{Op: Op{Kind: OpPoolRelease, Pool: unowned}})
}

func (m *machine) try(calls ...Call) {
	for _, c := range calls {
		_ = m.do(&c) // invariants I22, I23 and I56 judge it
	}
}

// makeMistakes makes calls that every strategy must refuse: frees of addresses that were never
// granted, an alignment that is no power of two, a size above the maximum, zero bytes unless
// granted, and calls about unknown pools.
func (r *relations) makeMistakes(m *machine) {
	free, request := Op{Kind: OpNull}, Op{Kind: OpAlloc}
	m.try(Call{Op: free})
	if len(m.blocks) > 0 {
		if b := m.blocks[0]; b.Size > 1 {
			m.try(Call{Op: free, Addr: b.Addr.Add(1)})
		}
	}
	m.try(Call{Op: request, Request: alloc.Request{Size: 1, Align: 3}})
	if most := power.MaxRequest(m.Strategy); power.Has(m.Strategy, power.PowerCeiling) && most != ^device.Size(0) {
		m.try(Call{Op: request, Request: alloc.Request{Size: most + 1}})
	}
	if !r.subject.Promises.ZeroSize {
		m.try(Call{Op: request})
	}
	m.try(Call{Op: Op{Kind: OpUse, Stream: 1}}, Call{Op: Op{Kind: OpPoolBegin}},
		Call{Op: Op{Kind: OpPoolEnd, Pool: unowned}}, Call{Op: Op{Kind: OpPoolRelease, Pool: unowned}})
}

// equal reports whether an instance answered as the first did, apart from the shift.
func (r *relations) equal(first, other *machine) bool {
	a, b := first.answer, other.answer
	if a.Err != nil || b.Err != nil {
		return sameError(a.Err, b.Err) && a.Bytes == b.Bytes
	}
	if b.Block.Size != 0 {
		b.Block.Addr -= device.Addr(other.shift)
	}
	return a == b
}

// compareAll checks that every instance shows the same chunks and counts the same, apart from
// labels and the shift.
func (r *relations) compareAll() error {
	for i, m := range r.machines {
		m.walk = m.walk[:0]
		for c := range m.Walk {
			c.Tag, c.Stream, c.Pool = 0, 0, 0
			c.Addr -= device.Addr(m.shift)
			c.Region -= device.Addr(m.shift)
			m.walk = append(m.walk, c)
		}
		first := r.machines[0]
		if i == 0 {
			continue
		}
		// SameWalk names the difference; the member names the broken invariant.
		if v, ok := errors.AsType[*Violation](SameWalk(first.walk, m.walk, first.Stats(), m.Stats())); ok {
			return violated(m.number, "after call %d, seen from %s to %s: %s", r.step, first.name, m.name, v.Detail)
		}
	}
	return nil
}

// mostUndone is the number of requests that are undone at the end of a sequence.
const mostUndone = 4

// undo repeats the last requests of the sequence and frees each block at once.
func (r *relations) undo(seq Sequence) error {
	if r.except[IUndo] {
		return nil
	}
	m := r.machines[0]
	r.called = m
	m.faults.FailNext(0)
	for range 2 { // a poll may put marks that the device has refused before
		for _, op := range seq { // so that no pending chunk becomes free later
			if m.do(&Call{Op: Op{Kind: OpDrain, Stream: op.Stream}}).Err != nil {
				break // the device has no streams
			}
		}
		m.try(Call{Op: Op{Kind: OpPoll}}) // without the power nothing is pending
	}
	done := uint64(0)
	for i := len(seq) - 1; i >= 0 && done < mostUndone; i-- {
		if seq[i].Kind != OpAlloc {
			continue
		}
		done++
		r.step++
		r.pulse.beats.Add(1)
		before, was := bounded(m.Walk), m.Stats()
		if r.subject.Promises.OneStreamCaptures && slices.ContainsFunc(before, pendingChunk) {
			return nil // a capture makes them pending, and a request on another stream completes them
		}
		a := m.do(&Call{Op: seq[i], Request: seq[i].request(r.ids + done)})
		if a.Err != nil {
			continue // invariants I24 and I25 judge it
		}
		if err := m.do(&Call{Op: Op{Kind: OpFree}, Addr: a.Block.Addr}).Err; err != nil {
			return violated(IFreeAnswer, "%v: the free of %v just granted was answered by %v", seq[i], a.Block.Addr, quoted(err))
		}
		now := m.Stats()
		moved := now.Reserves != was.Reserves || now.Releases != was.Releases
		if err := Undone(before, bounded(m.Walk), moved); err != nil {
			return err
		}
	}
	return nil
}

// Undone checks invariant I40 with the walks before a block was allocated and after it was freed:
// the live chunks are the same, and the same bytes are free. If regions moved, that is were
// obtained or released, bytes of a region that remains may also have become slack, and bytes of
// new regions may be free. Address space without memory is not held: pages come and go under a
// range that remains.
func Undone(before, after []alloc.Chunk, moved bool) error {
	if v, ok := errors.AsType[*Violation](SameLive(before, after)); ok {
		return violated(IUndo, "%s", v.Detail)
	}
	free := func(c alloc.Chunk) bool { return c.State == alloc.Free }
	was, is := spans(before, free), spans(after, free)
	if !moved {
		if !slices.Equal(was, is) {
			return violated(IUndo, "%v were free, %v are free", was, is)
		}
		return nil
	}
	usable := spans(after, func(c alloc.Chunk) bool { return c.State == alloc.Free || c.State == alloc.Slack })
	memory := func(c alloc.Chunk) bool { return c.State.Held() }
	held := spans(after, memory)
	if lost := without(within(was, held), usable); len(lost) > 0 {
		return violated(IUndo, "%v were free, are held and are neither free nor slack", lost)
	}
	// A released region and a later one may overlap, even with the same start.
	sizes, now := extents(before), extents(after)
	old := spans(before, func(c alloc.Chunk) bool { return memory(c) && sizes[c.Region] == now[c.Region] })
	if won := without(within(is, old), was); len(won) > 0 {
		return violated(IUndo, "%v were held and not free, and are free", won)
	}
	return nil
}

func extents(walk []alloc.Chunk) map[device.Addr]device.Size {
	sizes := map[device.Addr]device.Size{}
	for _, c := range walk {
		sizes[c.Region] += c.Size
	}
	return sizes
}

// span is a range of bytes, from one address to the one just above.
type span struct{ from, to device.Addr }

// String returns the range as start+size.
func (s span) String() string { return blockText{s.from, s.to.Sub(s.from)}.String() }

func bySpan(a, b span) int { return cmp.Compare(a.from, b.from) }

// spans returns the bytes of the chosen chunks as the longest ranges, by address.
func spans(walk []alloc.Chunk, chosen func(alloc.Chunk) bool) (all []span) {
	for _, c := range walk {
		if !chosen(c) {
			continue
		}
		if n := len(all); n > 0 && all[n-1].to == c.Addr {
			all[n-1].to = c.End() // union would do that too, with a longer slice
			continue
		}
		all = append(all, span{c.Addr, c.End()})
	}
	return union(all)
}

// union returns disjoint ranges by address, with touching ranges joined.
func union(all []span) []span {
	slices.SortFunc(all, bySpan)
	joined := all[:0]
	for _, s := range all {
		if n := len(joined); n > 0 && joined[n-1].to == s.from {
			joined[n-1].to = s.to
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

// within returns the bytes of a that are in b as well. Both are ordered.
func within(a, b []span) (all []span) {
	for _, s := range a {
		for _, t := range b {
			if from, to := max(s.from, t.from), min(s.to, t.to); from < to {
				all = append(all, span{from, to})
			}
		}
	}
	return all
}

// without returns the bytes of a that are not in b. Both are ordered.
func without(a, b []span) (all []span) {
	for _, s := range a {
		for _, t := range within([]span{s}, b) {
			if s.from < t.from {
				all = append(all, span{s.from, t.from})
			}
			s.from = t.to
		}
		if s.from < s.to {
			all = append(all, s)
		}
	}
	return all
}
