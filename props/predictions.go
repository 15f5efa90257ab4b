package props

import (
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
)

// coming is an upcoming call: the free of a live block, or a request.
type coming struct {
	frees   bool
	addr    device.Addr   // of the block
	request alloc.Request // else
}

// mostComing is the maximum number of frees to look ahead for the request after them.
const mostComing = 8

// forecast has the strategy's predictions about calls before they are made.
type forecast struct {
	frees        bool // a free comes next
	addr         device.Addr
	below, above device.Size

	requests bool // a request comes after nothing but frees
	freed    []device.Addr
	placed   bool
	injected uint64 // faults when it was asked
}

// comingOf returns the next frees of a sequence and the request after them, if there is
// one.
func (r *runner) comingOf(seq Sequence) []coming {
	r.coming, r.ages = r.coming[:0], r.ages[:0]
	for _, b := range r.main.blocks {
		r.ages = append(r.ages, b.Addr)
	}
	for _, op := range seq[:min(len(seq), mostComing)] {
		switch {
		case op.Kind == OpFree && len(r.ages) > 0:
			i := int(op.Pick % uint64(len(r.ages)))
			r.coming = append(r.coming, coming{frees: true, addr: r.ages[i]})
			r.ages = slices.Delete(r.ages, i, i+1)
			continue
		case op.Kind == OpAlloc:
			r.coming = append(r.coming, coming{request: r.requestOf(op, r.ids+1)})
		}
		break
	}
	return r.coming
}

func (r *runner) comingIn(events []trace.Event, requests replay.Requests) []coming {
	r.coming = r.coming[:0]
	for i := range events[:min(len(events), mostComing)] {
		switch e := &events[i]; e.Kind {
		case trace.Free:
			at := slices.IndexFunc(r.live, func(d demand) bool { return d.id == e.ID })
			if at < 0 {
				return r.coming
			}
			r.coming = append(r.coming, coming{frees: true, addr: r.main.blocks[at].Addr})
			continue
		case trace.Alloc:
			r.coming = append(r.coming, coming{request: requests.Of(e)})
		}
		break
	}
	return r.coming
}

// foresee queries the strategy's predictions of the next calls. Only the instance that is looked at
// is queried, so a query must not change any result.
func (r *runner) foresee(next []coming) {
	f := &r.forecast
	if f.frees = len(next) > 0 && next[0].frees && r.powers.has(power.PowerNeighbours); f.frees {
		f.addr = next[0].addr
		f.below, f.above = power.FreeNeighbours(r.main.Strategy, f.addr)
	}
	switch n := len(next); {
	case n == 0 || next[n-1].frees || !r.powers.has(power.PowerPlacer):
		f.requests = false
	case !f.requests:
		f.requests, f.injected, f.freed = true, r.main.faults.Injected(), f.freed[:0]
		for _, c := range next[:n-1] {
			f.freed = append(f.freed, c.addr)
		}
		f.placed = power.CanPlace(r.main.Strategy, next[n-1].request, f.freed)
	}
}

// foreseen compares the answer to a request with the forecast. Injected faults are excluded.
func (r *runner) foreseen() error {
	f := &r.forecast
	if !f.requests || !r.isRequest {
		return nil
	}
	f.requests = false
	if r.main.faults.Injected() != f.injected {
		return nil
	}
	more := r.usage().Calls.Obtained() > r.calls.Obtained()
	return Foreseen(r.request, f.freed, f.placed, r.subject.Promises.ExactPlacer, r.answer.Err, more)
}

// Foreseen checks invariant I65: a request, for which the blocks at some addresses were freed, is
// granted if the prediction was that it can be placed. If it was that it cannot, exact means that
// it is granted only with more memory from the device.
func Foreseen(r alloc.Request, freed []device.Addr, placed, exact bool, answered error, more bool) error {
	switch {
	case placed && answered != nil:
		return violated(IForeseen, "%d bytes at a multiple of %d can be placed, by the prediction, once %v are free; the "+
			"request was answered by %v",
			uint64(r.Size), uint64(r.Align), freed, quoted(answered))
	case !placed && exact && answered == nil && !more:
		return violated(IForeseen, "%d bytes at a multiple of %d cannot be placed, by the prediction, once %v are free; the "+
			"request was granted in memory that was held",
			uint64(r.Size), uint64(r.Align), freed)
	}
	return nil
}

func (r *runner) joined() error {
	f := &r.forecast
	if !f.frees || r.outcome != freed {
		return nil
	}
	f.frees = false
	i := slices.IndexFunc(r.was.walk, func(c alloc.Chunk) bool { return c.Addr == f.addr && c.State == alloc.Live })
	if i < 0 {
		return nil // the walk was judged before
	}
	exact := r.subject.Promises.ExactNeighbours
	return Joined(r.was.walk, r.is.walk, r.was.walk[i], f.below, f.above, exact,
		r.is.stats.Reserved < r.was.stats.Reserved)
}

// Joined checks invariant I64: a live chunk that was freed is one free chunk with as many bytes
// below and above as was predicted, which were free before. With exact it is joined with no more.
// The walks are from before and after. Memory that was released at once is not in the second.
func Joined(before, after []alloc.Chunk, b alloc.Chunk, below, above device.Size, exact, returned bool) error {
	low, high := b.Addr-device.Addr(below), b.End().Add(above)
	for _, c := range before {
		inside := c.Addr < high && c.End() > low && c.Addr != b.Addr
		if inside && (c.Region != b.Region || c.State != alloc.Free && c.State != alloc.Slack) || c.Region == b.Region &&
			low < b.Region {
			return violated(INeighbours, "block %v has %d bytes of free memory below and %d above, by the prediction; there is "+
				"%v chunk %v",
				b.Addr, uint64(below), uint64(above), c.State, c.Addr)
		}
	}
	if returned {
		return nil
	}
	i := slices.IndexFunc(after, func(c alloc.Chunk) bool { return c.Addr <= b.Addr && b.Addr < c.End() })
	if i < 0 {
		return violated(INeighbours, "block %v was freed and is in no chunk, though nothing went back", b.Addr)
	}
	c := after[i]
	apart := c.Addr > b.Addr || c.End() < b.End() // its parts are in several chunks
	switch {
	case apart && below|above == 0, c.State == alloc.Free && c.Addr == low && c.End() == high:
	case c.State == alloc.Free && c.Addr <= low && c.End() >= high && !exact:
	case c.State != alloc.Free && below|above == 0: // it waits, or is set aside
	default:
		return violated(INeighbours, "block %v of %d bytes would be one chunk with %d bytes below and %d above, by "+
			"the prediction; it is in %v chunk %v of %d bytes",
			b.Addr, uint64(b.Size), uint64(below), uint64(above), c.State, c.Addr, uint64(c.Size))
	}
	return nil
}

// noNeighbours checks invariant I64 for an address without a live block.
func (r *runner) noNeighbours(a device.Addr) error {
	if !r.powers.has(power.PowerNeighbours) {
		return nil
	}
	if below, above := power.FreeNeighbours(r.main.Strategy, a); below|above != 0 {
		return violated(INeighbours, "no live block starts at %v, and yet it has %d bytes of free memory below and %d above",
			a, uint64(below), uint64(above))
	}
	return nil
}
