package props

import (
	"errors"
	"maps"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// redirection sends the requests of a stream, or of all, into a private pool.
type redirection struct {
	pool   alloc.PoolID
	stream device.Stream
}

// redirections is the reference model of private pools. The zero value has none.
type redirections struct {
	active []redirection        // in the order in which they were begun
	users  map[alloc.PoolID]int // of the pools that have any
}

// capturing reports whether a graph may be captured on a stream, or on any with power.AllStreams:
// during any redirection, or only during one of that stream.
func (p *redirections) capturing(s device.Stream, oneStream bool) bool {
	return slices.ContainsFunc(p.active, func(r redirection) bool {
		return !oneStream || r.stream != power.AllStreams && (s == power.AllStreams || s == r.stream)
	})
}

// into returns the pool that a request of a stream goes to. Of several redirections the first
// decides, or the last.
func (p *redirections) into(s device.Stream, last bool) (to alloc.PoolID) {
	for _, r := range p.active {
		if r.stream != s && r.stream != power.AllStreams {
			continue
		}
		if to = r.pool; !last {
			break
		}
	}
	return to
}

// begins returns the index of the oldest redirection into a pool, -1 if it has none.
func (p *redirections) begins(id alloc.PoolID) int {
	return slices.IndexFunc(p.active, func(r redirection) bool { return r.pool == id })
}

// legal reports whether a call of the operation is legal.
func (p *redirections) legal(o Op) bool {
	switch o.Kind {
	case OpPoolBegin:
		return o.Pool != 0
	case OpPoolEnd:
		return p.begins(o.Pool) >= 0
	}
	return p.users[o.Pool] > 0
}

func (p *redirections) apply(o Op) {
	switch o.Kind {
	case OpPoolBegin:
		if p.users == nil {
			p.users = map[alloc.PoolID]int{}
		}
		p.users[o.Pool]++
		p.active = append(p.active, redirection{o.Pool, o.Stream})
	case OpPoolEnd:
		i := p.begins(o.Pool)
		p.active = slices.Delete(p.active, i, i+1)
	default:
		p.users[o.Pool]--
	}
}

func (p *redirections) reset() {
	p.active = p.active[:0]
	clear(p.users)
}

// PoolAnswer checks invariant I56: beginning a redirection into a private pool, ending a
// redirection that was begun, and releasing a pool with a user succeed. Any other call is answered
// by alloc.ErrInvalidPool.
func PoolAnswer(m *Model, o Op, err error) error {
	legal := m.pools.legal(o)
	switch {
	case legal && err != nil:
		return violated(IPoolAnswer, "%v was answered by %q", o, err)
	case !legal && !errors.Is(err, alloc.ErrInvalidPool):
		return violated(IPoolAnswer, "%v is a mistake and was answered by %v, want %q", o, quoted(err), alloc.ErrInvalidPool)
	}
	return nil
}

// Redirected checks invariant I52: each live block lies in the pool that its request was
// redirected to.
func Redirected(walk []alloc.Chunk, m *Model) error {
	for _, c := range walk {
		if c.State != alloc.Live {
			continue
		}
		if g, ok := m.At(c.Addr); ok && c.Pool != g.Pool {
			return violated(IRedirected, "live chunk %v lies in pool %d, its request went to pool %d (allocation %d)",
				c.Addr, uint64(c.Pool), uint64(g.Pool), g.ID)
		}
	}
	return nil
}

func memoryOf(walk []alloc.Chunk, id alloc.PoolID) []span {
	return spans(walk, func(c alloc.Chunk) bool { return c.Pool == id && c.State.Held() })
}

// mappedOf returns the addresses of a pool that have memory, even if a walk shows it elsewhere.
func mappedOf(walk []alloc.Chunk, id alloc.PoolID) []span {
	return spans(walk, func(c alloc.Chunk) bool { return c.Pool == id && c.State != alloc.Unmapped })
}

func poolsOf(walk []alloc.Chunk) (all []alloc.PoolID) {
	for n, c := range walk {
		if n > 0 && c.Pool == walk[n-1].Pool {
			continue // as most are
		}
		if i, ok := slices.BinarySearch(all, c.Pool); !ok {
			all = slices.Insert(all, i, c.Pool)
		}
	}
	return all
}

type holding struct {
	pool   alloc.PoolID
	memory []span
}

// memories returns the pools of the chunks, in order, with their memory.
func memories(walk []alloc.Chunk) (all []holding) {
	for _, id := range poolsOf(walk) {
		all = append(all, holding{id, memoryOf(walk, id)})
	}
	return all
}

// PoolsApart checks invariant I53 with the walks before and after a call: no byte went from one
// pool to another, unless it was returned to the device in between.
func PoolsApart(before, after []alloc.Chunk, returned []device.Region) error {
	gone := make([]span, 0, len(returned))
	for _, r := range returned {
		gone = append(gone, span{r.Addr, r.End()})
	}
	slices.SortFunc(gone, bySpan)
	is := memories(after)
	for _, from := range memories(before) {
		for _, to := range is {
			if from.pool == to.pool {
				continue
			}
			if moved := without(within(from.memory, to.memory), gone); len(moved) > 0 {
				return violated(IApart, "%v went from pool %d to pool %d", moved, uint64(from.pool), uint64(to.pool))
			}
		}
	}
	return nil
}

// PoolsKept checks invariant I54 with the walks before and after a call: no address of a private
// pool with users lost its memory, except by a request into the pool. Spender is the pool of the
// request, zero if there was no request.
func PoolsKept(before, after []alloc.Chunk, m *Model, spender alloc.PoolID) error {
	for _, id := range poolsOf(before) {
		if id == spender || m.pools.users[id] == 0 {
			continue
		}
		if lost := without(mappedOf(before, id), mappedOf(after, id)); len(lost) > 0 {
			return violated(IKept, "pool %d has %d users and lost %v", uint64(id), m.pools.users[id], lost)
		}
	}
	return nil
}

// PoolsGone checks invariant I55 of a walk after a trim: a private pool has users, or a block
// that is live or pending, or no memory.
func PoolsGone(walk []alloc.Chunk, m *Model) error {
	for _, id := range poolsOf(walk) {
		busy := func(c alloc.Chunk) bool {
			return c.Pool == id && (c.State == alloc.Live || c.State == alloc.Pending)
		}
		if id == 0 || m.pools.users[id] > 0 || slices.ContainsFunc(walk, busy) {
			continue
		}
		if left := memoryOf(walk, id); len(left) > 0 {
			return violated(IGone, "pool %d has no users and no blocks, and after a trim it holds %v", uint64(id), left)
		}
	}
	return nil
}

// waits are the device calls that query or wait for queued work.
var waits = [...]device.Call{
	device.CallRecord, device.CallDone, device.CallWait, device.CallSyncEvent, device.CallSyncStream,
	device.CallSyncDevice,
}

// Unwaiting checks invariant I60 with the calls to the device before and after a call during a
// capture: none was about what is queued on streams.
func Unwaiting(before, after device.Calls) error {
	for _, c := range waits {
		if before[c] != after[c] {
			return violated(IUnwaiting, "during a capture the device was called to %v", c)
		}
	}
	return nil
}

func (r *runner) pooled(c *Call) error {
	r.outcome = mistake
	if !r.powers.has(power.PowerPrivatePools) {
		return nil
	}
	if err := r.judge(PoolAnswer(&r.model, c.Op, r.answer.Err)); err != nil || r.answer.Err != nil {
		return err
	}
	r.model.pools.apply(c.Op)
	r.outcome = redirected
	return nil
}

func (r *runner) observePools() error {
	if !r.powers.has(power.PowerPrivatePools) {
		return nil
	}
	var spender alloc.PoolID
	if r.isRequest {
		spender = r.into(r.request)
	}
	if err := r.judge(
		Redirected(r.is.walk, &r.model),
		PoolsApart(r.was.walk, r.is.walk, r.main.limiter.returned),
		PoolsKept(r.was.walk, r.is.walk, &r.model, spender),
	); err != nil {
		return err
	}
	if r.captured && r.capturing() && r.outcome != trimmed {
		return r.judge(Unwaiting(r.calls, r.usage().Calls))
	}
	if r.outcome != trimmed || r.fault || r.capturing() {
		return nil
	}
	return r.judge(PoolsGone(r.is.walk, &r.model))
}

func (r *runner) into(req alloc.Request) alloc.PoolID {
	return r.model.pools.into(req.Stream, r.subject.Promises.LastPoolFirst)
}

// capturing reports whether a graph may be captured now, on the stream of the request if the call
// is one. A strategy may not wait for streams then, and leaves deferred frees and cached memory
// alone.
func (r *runner) capturing() bool {
	s := power.AllStreams
	if r.isRequest {
		s = r.request.Stream
	}
	return r.model.pools.capturing(s, r.subject.Promises.OneStreamCaptures)
}

// releasable returns the chunks of the regions that hold no memory of a private pool with users.
func (r *runner) releasable() []alloc.Chunk {
	if !r.powers.has(power.PowerPrivatePools) {
		return r.is.walk
	}
	var all []alloc.Chunk
	_ = eachRegion(r.is.walk, func(chunks []alloc.Chunk) error { // yield returns no error
		if !slices.ContainsFunc(chunks, func(c alloc.Chunk) bool { return r.model.pools.users[c.Pool] > 0 }) {
			all = append(all, chunks...)
		}
		return nil
	})
	return all
}

func (r *runner) leavePools() error {
	var calls Sequence
	for _, a := range r.model.pools.active {
		calls = append(calls, Op{Kind: OpPoolEnd, Pool: a.pool})
	}
	for _, id := range slices.Sorted(maps.Keys(r.model.pools.users)) {
		for range r.model.pools.users[id] {
			calls = append(calls, Op{Kind: OpPoolRelease, Pool: id})
		}
	}
	for _, o := range calls {
		if err := r.call(Call{Op: o}); err != nil {
			return err
		}
	}
	return nil
}
