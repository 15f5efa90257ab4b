package props

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

// Metamorphic runs generated sequences over several instances of the subject in lockstep.
// The first gets the sequence as it is; each of the others differs in one thing that must
// not matter (invariants I39, I41 to I43 and I57), and has to give the same answers. At the end of each
// sequence blocks are allocated and freed at once (invariant I40). The device refuses calls
// where the sequence says so, for all instances alike. The error is a [*Failure] if a
// relation does not hold, anything else if the subject cannot be built.
func Metamorphic(s Subject, o Options) (Result, error) {
	start := time.Now()
	o = o.withDefaults()
	profile, err := s.Profile(o.Operations)
	if err != nil {
		return Result{}, err
	}
	r := newRelations(s, profile)
	n, err := r.search(s.Name, profile, o, r.undo)
	r.tally.Sequences, r.tally.Elapsed = n, time.Since(start)
	return r.tally, err
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
	if err := r.run(seq); err != nil {
		return err
	}
	return r.undo(seq)
}

// relations is an ensemble of instances of one subject.
type relations struct {
	ensemble
	subject  Subject
	frontier bool // whether Request.Before has a meaning
	pools    bool // whether it has private pools
	except   map[Number]bool
}

// newRelations returns the ensemble for a subject.
func newRelations(s Subject, p Profile) *relations {
	s.Device.Memory = sim.Counted // memory elsewhere is at addresses that the device does not know
	r := &relations{subject: s, frontier: p.Frontier, pools: p.Pools, except: map[Number]bool{}}
	r.subjects, r.faults = []Subject{s}, true
	r.enrol, r.same, r.look = r.build, r.equal, r.compare
	r.suits = func(alloc.Request) bool { return true }
	for _, e := range s.Promises.Except {
		if n, ok := ParseNumber(e.Invariant); ok {
			r.except[n] = true
		}
	}
	return r
}

// build makes the instances of one sequence. How they differ is said here and nowhere else.
func (r *relations) build() ([]*member, error) {
	shifted := r.subject
	shifted.New = func(src device.Source) (alloc.Strategy, error) { return r.subject.New(newElsewhere(src)) }
	members := []*member{
		{name: "the instance"},
		{name: "one with other labels", number: IIndifference, relabel: r.relabel},
		{name: "one that was looked at", number: IObservation, before: inspect},
		{name: "one that refused mistakes meanwhile", number: ITraceless, before: r.heckle},
		{name: "one over memory elsewhere", number: ITranslation, shift: farAway},
		{name: "one that redirected nothing meanwhile", number: IIdle, before: redirectNothing},
	}
	if !r.pools {
		members = members[:len(members)-1]
	}
	members = slices.DeleteFunc(members, func(m *member) bool { return r.except[m.number] })
	for _, m := range members {
		s := &r.subject
		if m.shift != 0 {
			s = &shifted
		}
		var err error
		if m.machine, err = newMachine(s, device.FaultPlan{}); err != nil {
			return nil, fmt.Errorf("%s: cannot be built: %w", s.Name, err)
		}
	}
	return members, nil
}

// relabel changes what no strategy may place by. A wish for the low end is what a strategy
// with ends takes no wish for.
func (r *relations) relabel(req *alloc.Request) {
	if !r.frontier {
		req.Before = 1 + req.Tag
	}
	if req.Tag = ^req.Tag; r.pools {
		req.Stream = 2*req.Stream + 1 // cached memory may go back in the order of streams
	} else {
		req.Stream = 3 - req.Stream
	}
	switch req.Hint {
	case alloc.HintNone:
		req.Hint = alloc.HintLow
	case alloc.HintLow:
		req.Hint = alloc.HintNone
	}
}

// inspect looks at everything that a strategy shows.
func inspect(m *member) {
	s := m.Strategy
	_ = s.Stats()
	for range s.Walk {
	}
	for range s.Walk {
		break
	}
	_ = s.Check() // invariant I21 judges it
	alloc.WalkFree(s, func(alloc.Chunk) bool { return true })
	_ = alloc.LargestFree(s)
	_, _ = alloc.LastRefusal(s)
	_ = alloc.MaxRequest(s)
	// Powers that are not there have nothing to show.
	_, _ = alloc.MetadataBytes(s)
	_, _ = alloc.QueuedFrees(s)
	_, _ = alloc.AppendReport(s, nil, alloc.Request{Size: 1})
}

// nobodys is a private pool that no sequence names.
const nobodys alloc.PoolID = 1 << 40

// redirectNothing redirects requests into a pool and no more.
func redirectNothing(m *member) {
	for _, o := range [...]Op{
		{Kind: OpPoolBegin, Pool: nobodys, Stream: alloc.AllStreams}, {Kind: OpPoolEnd, Pool: nobodys},
		{Kind: OpPoolRelease, Pool: nobodys},
	} {
		_ = callPool(m.Strategy, o) // invariant I56 judges it
	}
}

// heckle makes mistakes that every strategy refuses: a free of what was never granted, an
// alignment that is no power of two, a size above the maximum, no bytes where that is one, and
// calls about pools that are not there.
func (r *relations) heckle(m *member) {
	_ = m.Free(0)
	if len(m.blocks) > 0 {
		if b := m.blocks[0]; b.Size > 1 {
			_ = m.Free(b.Addr.Add(1))
		}
	}
	_, _ = m.Alloc(alloc.Request{Size: 1, Align: 3})
	if alloc.Has(m.Strategy, alloc.PowerCeiling) && alloc.MaxRequest(m.Strategy) != ^device.Size(0) {
		_, _ = m.Alloc(alloc.Request{Size: alloc.MaxRequest(m.Strategy) + 1})
	}
	if !r.subject.Promises.ZeroSize {
		_, _ = m.Alloc(alloc.Request{})
	}
	_ = alloc.RecordStream(m.Strategy, 0, 1)
	for _, o := range [...]Op{{Kind: OpPoolBegin}, {Kind: OpPoolEnd, Pool: nobodys}, {Kind: OpPoolRelease, Pool: nobodys}} {
		_ = callPool(m.Strategy, o)
	}
}

// equal reports whether an instance answered as the first did, apart from the shift.
func (r *relations) equal(_, other *member, a, b reply) bool {
	if a.err != nil || b.err != nil {
		return a.err != nil && b.err != nil && a.err.Error() == b.err.Error() && a.bytes == b.bytes
	}
	if b.block.Size != 0 {
		b.block.Addr -= device.Addr(other.shift)
	}
	return a == b
}

// compare checks that every instance shows the same chunks and counts the same, apart from
// labels and the shift.
func (r *relations) compare() error {
	for i, m := range r.members {
		m.walk = m.walk[:0]
		for c := range m.Walk {
			c.Tag, c.Stream, c.Pool = 0, 0, 0
			c.Addr -= device.Addr(m.shift)
			c.Region -= device.Addr(m.shift)
			m.walk = append(m.walk, c)
		}
		first := r.members[0]
		if i == 0 {
			continue
		}
		// SameWalk says what differs; which invariant that breaks, the member says.
		if v, ok := errors.AsType[*Violation](SameWalk(first.walk, m.walk, first.Stats(), m.Stats())); ok {
			return violated(m.number, "after call %d, seen from %s to %s: %s", r.step, first.name, m.name, v.Detail)
		}
	}
	return nil
}

// mostUndone is how many requests are undone at the end of a sequence.
const mostUndone = 4

// undo allocates and frees at once what the last requests of the sequence asked for.
func (r *relations) undo(seq Sequence) error {
	if r.except[IUndo] {
		return nil
	}
	m := r.members[0]
	m.faults.FailNext(0)
	for range 2 { // a poll may put marks that the device has refused before
		for _, op := range seq { // so that nothing becomes free meanwhile that was pending
			if err := m.leash.Drain(op.Stream); err != nil {
				break // the device has no streams
			}
		}
		_, _ = alloc.Poll(m.Strategy) // without the power nothing is pending
	}
	done := 0
	for i := len(seq) - 1; i >= 0 && done < mostUndone; i-- {
		if seq[i].Kind != OpAlloc {
			continue
		}
		done++
		r.step++
		before, was := chunksOf(m), m.Stats()
		b, err := m.Alloc(seq[i].request(r.ids + uint64(done)))
		if err != nil {
			continue // invariants I24 and I25 judge it
		}
		if err := m.Free(b.Addr); err != nil {
			return violated(IFreeAnswer, "%v: the free of %v just granted was answered by %v", seq[i], b.Addr, answer(err))
		}
		now := m.Stats()
		moved := now.Reserves != was.Reserves || now.Releases != was.Releases
		if err := Undone(before, chunksOf(m), moved); err != nil {
			return err
		}
	}
	return nil
}

// chunksOf returns what a walk shows.
func chunksOf(m *member) (all []alloc.Chunk) {
	for c := range m.Walk {
		all = append(all, c)
	}
	return all
}

// Undone checks invariant I40 with the walks before a block was allocated and after it was
// freed: the live chunks are the same, and the same bytes are free. If regions moved, that is
// were obtained or given back meanwhile, bytes of a region that is still there may also have
// become slack, and bytes of new regions may be free. Address space without memory of its own is
// not held: pages come and go under a range that stays.
func Undone(before, after []alloc.Chunk, moved bool) error {
	if v, ok := errors.AsType[*Violation](SameLive(before, after)); ok {
		return violated(IUndo, "%s", v.Detail)
	}
	free := func(c alloc.Chunk) bool { return c.State == alloc.Free }
	was, is := spans(before, free), spans(after, free)
	if !moved {
		if !slices.Equal(was, is) {
			return violated(IUndo, "free were %v, free are %v", was, is)
		}
		return nil
	}
	usable := spans(after, func(c alloc.Chunk) bool { return c.State == alloc.Free || c.State == alloc.Slack })
	memory := func(c alloc.Chunk) bool { return c.State.Held() }
	held := spans(after, memory)
	if lost := without(within(was, held), usable); len(lost) > 0 {
		return violated(IUndo, "%v were free, are held and are neither free nor slack", lost)
	}
	// A region that went back and one that came since may lie over one another, also from the same start.
	sizes, now := extents(before), extents(after)
	old := spans(before, func(c alloc.Chunk) bool { return memory(c) && sizes[c.Region] == now[c.Region] })
	if won := without(within(is, old), was); len(won) > 0 {
		return violated(IUndo, "%v were held and not free, and are free", won)
	}
	return nil
}

// extents returns the bytes of each region.
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

// bySpan compares two ranges by where they begin.
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

// union returns ranges that share no byte by address, those that touch as one.
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
