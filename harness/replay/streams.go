package replay

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// use replays the use of a block by another stream. It skips allocations that were not granted.
func (r *runner) use(e *trace.Event, o *op) error {
	if o.place == noPlace || !r.blocks[o.place].live {
		return nil
	}
	a := r.blocks[o.place].addr
	err := power.RecordStream(r.s, a, e.Stream)
	r.observe(Observation{Addr: a, Stream: e.Stream, Err: err})
	switch {
	case errors.Is(err, alloc.ErrUnsupported):
		r.res.Ignored++
		return nil
	case err != nil:
		return fmt.Errorf("use of live allocation %d by stream %d: %w", e.ID, uint64(e.Stream), err)
	}
	return nil
}

// drain replays the moment at which all work queued on a stream has finished. It is unsupported
// unless both the strategy and the device have streams.
func (r *runner) drain(s device.Stream) error {
	line, ok := device.TimelineOf(r.top)
	if !ok || !power.Has(r.s, power.PowerStreamRecorder) {
		return alloc.ErrUnsupported
	}
	r.observation.Stream, r.observation.Drained = s, true
	return line.Drain(s)
}

// firstDelay is the lowest of the streams that stand for the unknown causes of delayed frees. The
// streams of a program are small numbers or addresses of the driver's objects, so they are lower.
const firstDelay device.Stream = 1 << 63

// checkStream returns an error if an event of a trace with delayed frees names a stream that could
// be one of those.
func checkStream(i int, e *trace.Event) error {
	switch e.Kind {
	case trace.Alloc, trace.LiveAtStart, trace.Refused, trace.Use, trace.Drain:
		if e.Stream >= firstDelay {
			return fmt.Errorf("event %d: stream %d: want less than 2^63, from where on streams stand for delayed frees",
				i, e.Stream)
		}
	}
	return nil
}

// freeLate replays a free after which the memory is pending. If the trace has the completion of the
// free, a stream of its own is recorded for the block, and drained at the completion. Until then no
// other block has its place, so the place identifies the stream.
func (r *runner) freeLate(i int, o *op) error {
	b := &r.blocks[o.place]
	if !b.live {
		return nil
	}
	if r.when == atCompletion {
		r.deferFree(o)
		return nil
	}
	s := firstDelay + device.Stream(o.place)
	if o.kind == opDelayed {
		if err := power.RecordStream(r.s, b.addr, s); err != nil {
			return fmt.Errorf("use of live allocation %d by a stream of its own: %w", r.event(i).ID, err)
		}
	}
	err := r.free(i, o)
	if o.kind == opDelayed {
		r.observation.Stream, r.observation.Delayed = s, true
	}
	r.active()
	return err
}

// completed replays the completion of a delayed free.
func (r *runner) completed(i int, o *op) error {
	switch {
	case r.when == atRequest:
		return alloc.ErrUnsupported
	case o.kind != opDelayed:
		return nil // the free was not delayed
	case r.when == onStreams:
		return r.drain(firstDelay + device.Stream(o.place))
	case !r.blocks[o.place].live:
		return nil
	}
	final := *o
	final.size = 0 // deferFree has subtracted its requested bytes
	err := r.free(i, &final)
	if !r.blocks[o.place].live {
		r.kept -= o.size
	}
	return err
}

// deferFree counts a block as freed by the program; the strategy keeps it until the free completes.
func (r *runner) deferFree(o *op) {
	r.requested -= o.size
	r.kept += o.size
	if r.streamUsage != nil {
		r.streamUsage[o.stream].freed(o.size, 0)
	}
}

// active returns the bytes that are live or pending.
func (r *runner) active() device.Size {
	if r.mayPend {
		s := r.s.Stats()
		r.pending = s.Active - s.Allocated
		r.res.PeakPending = max(r.res.PeakPending, r.pending)
	}
	return r.allocated + r.pending
}

// streamUsage holds the live bytes of the requests of one stream, and their peaks.
type streamUsage struct {
	requested, allocated device.Size
	StreamFigures
}

func (f *streamUsage) granted(requested, size device.Size) {
	f.Allocs++
	f.requested += requested
	f.allocated += size
	f.PeakRequested = max(f.PeakRequested, f.requested)
	f.PeakAllocated = max(f.PeakAllocated, f.allocated)
}

func (f *streamUsage) freed(requested, size device.Size) {
	f.requested -= requested
	f.allocated -= size
}

// perStream returns the figures of each stream, by its number. A single stream has the figures of
// the replay.
func (r *runner) perStream() []StreamFigures {
	if !r.o.Figures || len(r.p.streams) == 0 {
		return nil
	}
	if r.streamUsage == nil {
		p := r.res.Peak
		return []StreamFigures{{Stream: r.p.streams[0], Allocs: r.allocs, PeakRequested: p.Requested,
			PeakAllocated: p.Allocated}}
	}
	all := make([]StreamFigures, len(r.streamUsage))
	for i, f := range r.streamUsage {
		all[i] = f.StreamFigures
		all[i].Stream = r.p.streams[i]
	}
	slices.SortFunc(all, func(a, b StreamFigures) int { return cmp.Compare(a.Stream, b.Stream) })
	return all
}
