package props_test

import (
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// The planted bugs of pooled; each must be found.
const (
	lastDecides      bug = "of two redirections the last one decides"
	ignoresFilter    bug = "a redirection of one stream redirects all"
	endsLast         bug = "of two redirections into a pool the last one ends"
	sharesMemory     bug = "free memory of any pool serves a request"
	takesOver        bug = "free memory of any pool serves a request and changes its pool"
	losesPool        bug = "freed memory falls to the default pool"
	trimsUsed        bug = "trim takes the memory of a pool that has users"
	trimSparesPools  bug = "trim never takes the memory of a private pool"
	evictsOther      bug = "a request that runs out takes the memory of other pools"
	acceptsDefault   bug = "the default pool can be begun"
	endsNothing      bug = "a redirection that was not begun ends"
	releasesUnknown  bug = "a pool that nobody has is released"
	uncountedUser    bug = "a pool that is begun twice has one user"
	endFreesBlock    bug = "the end of a redirection frees a block"
	settlesCaptured  bug = "a request looks for deferred frees while requests are redirected"
	freesCaptured    bug = "a block that is freed while requests are redirected waits for nobody"
	opensClosedPools bug = "a closed strategy begins pools"
	placesByPool     bug = "memory for pools with even numbers comes from the other end"
	forgetsMarks     bug = "of sixteen sizes one is pending for ever"
	releasesNone     bug = "the fourth pool cannot be released"
	beginMoves       bug = "a redirection moves the place where the search begins"
)

// piece is a chunk with what is still to happen to it.
type piece struct {
	alloc.Chunk
	uses     []device.Stream // recorded, while it is live
	captured []device.Stream // those of them that were recorded while requests were redirected
	todo     []device.Stream // to be marked
	wait     []device.Event
}

// segment is a region of a pool, a stream and a class.
type segment struct {
	pool   alloc.PoolID
	stream device.Stream
	class  int32
	pieces []*piece
}

// idle reports whether no block is in the segment.
func (s *segment) idle() bool { return len(s.pieces) == 1 && s.pieces[0].State == alloc.Free }

// pooled is a small strategy with private pools and streams after the model of PyTorch's, meant to
// be obviously right. With a bug it is wrong.
type pooled struct {
	slotted  // for its marks
	segments []*segment
	active   []pooledInto
	users    map[alloc.PoolID]int
	turn     int
	counts   pooledCounts
	tell     func(power.Action)
}

type pooledInto struct {
	pool   alloc.PoolID
	stream device.Stream
}

const (
	pooledQuantum = 64
	pooledSmall   = 512  // largest small block
	pooledSegment = 2048 // unit of segments
)

func newPooled(src device.Source, b bug) (*pooled, error) {
	s, err := newSlotted(src, b)
	if err != nil {
		return nil, err
	}
	return &pooled{slotted: *s, users: map[alloc.PoolID]int{}}, nil
}

// into returns the pool of a request.
func (p *pooled) into(s device.Stream) (to alloc.PoolID) {
	for _, r := range p.active {
		if r.stream == s || r.stream == power.AllStreams || p.bug == ignoresFilter {
			if to = r.pool; p.bug != lastDecides {
				return to
			}
		}
	}
	return to
}

func (p *pooled) Alloc(r alloc.Request) (alloc.Block, error) {
	switch {
	case p.closed:
		return alloc.Block{}, alloc.ErrClosed
	case r.Size == 0 || r.Size > 4*pooledSegment || r.Align > pooledQuantum || r.Align != 0 &&
		!device.IsPowerOfTwo(r.Align):
		return alloc.Block{}, alloc.ErrInvalidRequest
	}
	if len(p.active) == 0 || p.bug == settlesCaptured {
		_ = p.settle() // what the device refuses to tell is looked for later
	}
	defer p.count()
	want := segment{pool: p.into(r.Stream), stream: r.Stream, class: power.ClassLarge}
	need := device.AlignUp(r.Size, device.Size(pooledQuantum))
	if need <= pooledSmall {
		want.class = power.ClassSmall
	}
	for tries := 0; ; tries++ {
		if b, ok := p.take(r, want, need); ok {
			return b, nil
		}
		err := p.grow(want, need)
		if err == nil {
			continue
		}
		if tries > 0 || len(p.active) > 0 && p.bug != evictsOther {
			p.stats.OOMs++
			p.note(power.Action{Kind: power.OutOfMemory, Size: need, Stream: r.Stream})
			return alloc.Block{}, alloc.ErrOutOfMemory
		}
		_, _ = p.release(p.bug == evictsOther) // what the device refuses stays
	}
}

// take grants the first free bytes of the segments that are like want.
func (p *pooled) take(r alloc.Request, want segment, need device.Size) (alloc.Block, bool) {
	for n := range p.segments {
		s := p.segments[(n+p.turn)%len(p.segments)]
		if p.bug == placesByPool && want.pool%2 == 0 && want.pool > 0 {
			s = p.segments[len(p.segments)-1-n]
		}
		other := s.pool != want.pool && p.bug != sharesMemory && p.bug != takesOver
		if other || s.stream != want.stream || s.class != want.class {
			continue
		}
		for i, c := range s.pieces {
			if c.State != alloc.Free || c.Size < need {
				continue
			}
			if c.Size > need {
				rest := &piece{Chunk: c.Chunk}
				rest.Addr, rest.Size = c.Addr.Add(need), c.Size-need
				s.pieces = slices.Insert(s.pieces, i+1, rest)
			}
			if c.Size = need; p.bug == takesOver {
				c.Pool = want.pool
			}
			if c.Was = 0; p.bug == leftBehind {
				c.Was = r.Size
			}
			c.State, c.Requested, c.Tag = alloc.Live, r.Size, r.Tag
			p.stats.Granted(r.Size, need)
			return alloc.Block{Addr: c.Addr, Size: need}, true
		}
	}
	return alloc.Block{}, false
}

// grow adds a segment like want.
func (p *pooled) grow(want segment, need device.Size) error {
	r, err := p.src.Reserve(device.AlignUp(need, device.Size(pooledSegment)), pooledSegment)
	if err != nil {
		p.stats.ReserveFailures++
		return err
	}
	p.stats.RegionAdded(r.Size)
	p.note(power.Action{Kind: power.SegmentAlloc, Addr: r.Addr, Size: r.Size, Stream: want.stream})
	want.pieces = []*piece{{Chunk: alloc.Chunk{
		Region: r.Addr, Addr: r.Addr, Size: r.Size, Class: want.class, Pool: want.pool, Stream: want.stream,
	}}}
	p.segments = append(p.segments, &want)
	return nil
}

// find returns the live chunk at a, and where it lies.
func (p *pooled) find(a device.Addr) (*segment, int) {
	for _, s := range p.segments {
		for i, c := range s.pieces {
			if c.Addr == a && c.State == alloc.Live {
				return s, i
			}
		}
	}
	return nil, 0
}

func (p *pooled) RecordStream(a device.Addr, on device.Stream) error {
	if p.closed {
		return alloc.ErrClosed
	}
	s, i := p.find(a)
	if s == nil {
		return alloc.ErrInvalidFree
	}
	c := s.pieces[i]
	if on == c.Stream {
		return nil
	}
	if !slices.Contains(c.uses, on) {
		c.uses = append(c.uses, on)
	}
	if len(p.active) > 0 {
		c.captured = append(c.captured, on)
	}
	return nil
}

func (p *pooled) Free(a device.Addr) error {
	if p.closed {
		return alloc.ErrClosed
	}
	s, i := p.find(a)
	if s == nil {
		return alloc.ErrInvalidFree
	}
	defer p.count()
	c := s.pieces[i]
	p.stats.Freed(c.Requested, c.Size)
	p.stats.Active += c.Size // until it is found to be finished
	c.State, c.todo, c.uses = alloc.Pending, c.uses, nil
	if len(p.active) > 0 && p.bug == freesCaptured {
		c.todo = nil
	}
	if len(c.todo) == 0 {
		if p.bug == completedTwice {
			p.note(power.Action{Kind: power.FreeCompleted, Addr: c.Addr, Size: c.Requested, Stream: c.Stream})
		}
		p.finish(s, c)
	} else if len(p.active) == 0 {
		_ = p.mark(c) // tried again when somebody looks
	}
	return nil
}

// mark puts the marks that a pending chunk has to wait for.
func (p *pooled) mark(c *piece) error {
	for len(c.todo) > 0 {
		e, err := p.slotted.mark(c.todo[0])
		if err != nil {
			return err
		}
		c.todo, c.wait = c.todo[1:], append(c.wait, e)
	}
	return nil
}

// finish makes a chunk free and merges it with its neighbours.
func (p *pooled) finish(s *segment, c *piece) {
	p.stats.Active -= c.Size
	c.State, c.Was, c.Requested, c.Tag, c.captured = alloc.Free, c.Requested, 0, 0, nil
	if p.bug == losesPool {
		c.Pool = 0
	}
	i := slices.Index(s.pieces, c)
	if i+1 < len(s.pieces) && s.pieces[i+1].State == alloc.Free {
		c.Size += s.pieces[i+1].Size
		s.pieces = slices.Delete(s.pieces, i+1, i+2)
	}
	if i > 0 && s.pieces[i-1].State == alloc.Free {
		s.pieces[i-1].Size += c.Size
		s.pieces = slices.Delete(s.pieces, i, i+1)
	}
}

// settle looks which pending chunks are finished. What was freed while requests were redirected
// is marked first; streams that were recorded meanwhile have nothing to do yet.
func (p *pooled) settle() (first error) {
	for _, s := range p.segments {
		for _, c := range slices.Clone(s.pieces) {
			if c.State != alloc.Pending {
				continue
			}
			c.todo = slices.DeleteFunc(c.todo, func(u device.Stream) bool { return slices.Contains(c.captured, u) })
			err := p.mark(c)
			for len(c.wait) > 0 && err == nil {
				var done bool
				if done, err = p.streams.Done(c.wait[0]); !done || p.bug == forgetsMarks && c.Requested%16 == 7 {
					break
				}
				p.retire(&c.wait[0])
				c.wait = c.wait[1:]
			}
			if first == nil {
				first = err
			}
			if len(c.wait) == 0 && len(c.todo) == 0 {
				p.note(power.Action{Kind: power.FreeCompleted, Addr: c.Addr, Size: c.Requested, Stream: c.Stream})
				p.finish(s, c)
			}
		}
	}
	return first
}

func (p *pooled) Poll() (device.Size, error) {
	if p.closed {
		return 0, alloc.ErrClosed
	}
	if len(p.active) > 0 {
		return 0, nil
	}
	defer p.count()
	before := p.stats.Active
	err := p.settle()
	return before - p.stats.Active, err
}

func (p *pooled) Trim() (device.Size, error) {
	if p.closed {
		return 0, alloc.ErrClosed
	}
	if len(p.active) > 0 {
		return 0, nil
	}
	defer p.count()
	err := p.settle()
	n, released := p.release(p.bug == trimsUsed)
	if err == nil {
		err = released
	}
	return n, err
}

// release gives back the segments without blocks, of pools with users too if all is set.
func (p *pooled) release(all bool) (n device.Size, err error) {
	for i := len(p.segments) - 1; i >= 0; i-- {
		s := p.segments[i]
		if !s.idle() || p.users[s.pool] > 0 && !all || s.pool > 0 && p.bug == trimSparesPools {
			continue
		}
		c := s.pieces[0]
		if e := p.src.Release(c.Addr); e != nil {
			err = e
			continue
		}
		p.note(power.Action{Kind: power.SegmentFree, Addr: c.Addr, Size: c.Size, Stream: s.stream})
		p.stats.RegionReleased(c.Size)
		n += c.Size
		p.segments = slices.Delete(p.segments, i, i+1)
	}
	return n, err
}

func (p *pooled) BeginPool(id alloc.PoolID, s device.Stream) error {
	switch {
	case p.closed && p.bug != opensClosedPools:
		return alloc.ErrClosed
	case id == 0 && p.bug != acceptsDefault:
		return alloc.ErrInvalidPool
	}
	if p.users[id] == 0 || p.bug != uncountedUser {
		p.users[id]++
	}
	p.active = append(p.active, pooledInto{id, s})
	if p.bug == beginMoves {
		p.turn++
	}
	return nil
}

func (p *pooled) EndPool(id alloc.PoolID) error {
	if p.closed {
		return alloc.ErrClosed
	}
	for n := range p.active {
		if p.bug == endsLast {
			n = len(p.active) - 1 - n
		}
		if p.active[n].pool != id {
			continue
		}
		p.active = slices.Delete(p.active, n, n+1)
		if p.bug == endFreesBlock && len(p.active) == 0 {
			for c := range p.Walk {
				if c.State == alloc.Live && c.Pool == id {
					return p.Free(c.Addr)
				}
			}
		}
		return nil
	}
	if p.bug == endsNothing {
		return nil
	}
	return alloc.ErrInvalidPool
}

func (p *pooled) ReleasePool(id alloc.PoolID) error {
	switch {
	case p.closed:
		return alloc.ErrClosed
	case p.users[id] > 0 && (id < 4 || p.bug != releasesNone):
		p.users[id]--
	case p.bug != releasesUnknown:
		return alloc.ErrInvalidPool
	}
	return nil
}

func (p *pooled) Close() (err error) {
	p.closed = true
	for i := len(p.segments) - 1; i >= 0; i-- {
		s := p.segments[i]
		if e := p.src.Release(s.pieces[0].Addr); e != nil {
			err = e
			continue
		}
		var n device.Size
		for _, c := range s.pieces {
			n += c.Size
			for k := range c.wait {
				p.retire(&c.wait[k])
			}
		}
		p.stats.RegionReleased(n)
		p.segments = slices.Delete(p.segments, i, i+1)
	}
	p.slotted.regions = nil
	if e := p.slotted.Close(); e != nil {
		err = e
	}
	return err
}

func (p *pooled) Walk(yield func(alloc.Chunk) bool) {
	for _, s := range p.segments {
		for _, c := range s.pieces {
			if !yield(c.Chunk) {
				return
			}
		}
	}
}

func (p *pooled) MaxRequest() device.Size { return 4 * pooledSegment }
