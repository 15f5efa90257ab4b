package replay

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// Waits is the outcome of a replay whose threads wait for memory. Times are nanoseconds of the
// trace; without times in the trace they are 0.
type Waits struct {
	Limit   time.Duration `json:"limit_ns"`       // longest wait of a request
	Threads int           `json:"thread_count"`   // threads that made requests
	Allocs  uint64        `json:"grant_count"`    // requests granted
	Waited  uint64        `json:"wait_count"`     // requests that found no memory at first
	Served  uint64        `json:"served_count"`   // of these, granted in the end
	Refused uint64        `json:"refused_count"`  // of these, refused in the end
	Tries   uint64        `json:"retry_count"`    // further tries of all these
	Delay   uint64        `json:"delay_ns"`       // sum of the waits
	Longest uint64        `json:"longest_ns"`     // longest wait
	Timed   bool          `json:"has_trace_time"` // the trace has times
}

// waiter is a thread of the trace.
type waiter struct {
	held    []int // events that follow the request it waits for
	request int   // event of that request
	since   int64 // time at which the wait began
	waits   bool
}

// waiting is a replay whose threads wait.
type waiting struct {
	t       *trace.Trace
	request Requests
	s       alloc.Strategy
	blocks  []alloc.Block // by slot; the zero block where none is live
	owner   []uint32      // by slot: the thread of the request
	threads map[uint32]*waiter
	queue   []*waiter // the threads that wait, the longest first
	now     int64
	dirty   bool // memory may have come back since the waiting requests were tried
	Waits
}

// RunWaiting replays a trace as threads that wait for memory, like TensorFlow's allocator and
// [wrap.Retrying]: a request that finds none waits for a free or a raised frontier, at most for
// limit. The later events of its thread wait with it; then they follow at once. A block is freed by
// the thread that requested it. Threads are folded to n, unless n is 0. Time is the trace's, so the
// result does not depend on this machine. Without times a request waits until no other thread can
// free anything.
//
// It fails for events that are neither requests nor frees, frontiers, trims or polls.
func RunWaiting(t *trace.Trace, setup setting.Setup, dev device.Device, limit time.Duration, n int) (*Waits, error) {
	request, err := RequestsOf(t.Header)
	if err != nil {
		return nil, err
	}
	s, err := setup.New(dev)
	if err != nil {
		return nil, withName(setup.Name, err)
	}
	slots := 0
	for i := range t.Events {
		if e := &t.Events[i]; e.Slot != trace.NoSlot {
			slots = max(slots, int(e.Slot)+1)
		}
	}
	w := &waiting{t: t, request: request, s: s, blocks: make([]alloc.Block, slots), owner: make([]uint32, slots),
		threads: map[uint32]*waiter{}, Waits: Waits{Limit: limit}}
	for i := range t.Events {
		if err := w.event(i, n); err != nil {
			return nil, errors.Join(fmt.Errorf("event %d: %w", i, err), s.Close())
		}
	}
	if err := w.expire(math.MaxInt64); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	w.Threads = len(w.threads)
	return &w.Waits, s.Close()
}

// event replays event i, or holds it until its thread no longer waits.
func (w *waiting) event(i, n int) error {
	e := &w.t.Events[i]
	if e.Time != trace.NoTime {
		w.Timed = true
		if err := w.expire(e.Time); err != nil {
			return err
		}
		w.now = max(w.now, e.Time)
	}
	thread := e.Thread
	switch e.Kind {
	case trace.Alloc, trace.LiveAtStart, trace.Refused:
		if n > 0 {
			thread %= uint32(n)
		}
		if e.Slot != trace.NoSlot {
			w.owner[e.Slot] = thread
		}
	case trace.Free:
		thread = w.owner[e.Slot]
	case trace.Frontier:
		_ = power.SetFrontier(w.s, e.Arg) // a no-op for a strategy without one
		w.dirty = true
		return w.retry()
	case trace.Trim:
		_, _ = power.Trim(w.s) // as a replay does, which ignores what a strategy lacks
		return nil
	case trace.Poll:
		_, _ = power.Poll(w.s)
		w.dirty = true
		return w.retry()
	case trace.Mark, trace.Print, trace.ClearStats:
		return nil
	default:
		return fmt.Errorf("%v: threads wait in traces of requests, frees and frontiers only", e.Kind)
	}
	th := w.threads[thread]
	if th == nil {
		th = &waiter{}
		w.threads[thread] = th
	}
	if th.waits {
		th.held = append(th.held, i)
		return nil
	}
	if err := w.run(th, i); err != nil {
		return err
	}
	return w.retry()
}

// run replays a request or a free of a thread that does not wait.
func (w *waiting) run(th *waiter, i int) error {
	e := &w.t.Events[i]
	if e.Kind == trace.Free {
		b := w.blocks[e.Slot]
		if b == (alloc.Block{}) {
			return nil // was not granted
		}
		w.blocks[e.Slot], w.dirty = alloc.Block{}, true
		return w.s.Free(b.Addr)
	}
	b, err := w.s.Alloc(w.request.Of(e))
	switch {
	case err == nil:
		return w.granted(e, b)
	case errors.Is(err, alloc.ErrOutOfMemory):
		w.Waited++
		th.request, th.since, th.waits = i, w.now, true
		w.queue = append(w.queue, th)
	case !errors.Is(err, alloc.ErrInvalidRequest):
		return err
	}
	return nil
}

// granted records a block. The block of a request that the recorded program was refused is freed at
// once.
func (w *waiting) granted(e *trace.Event, b alloc.Block) error {
	w.Allocs++
	if e.Kind == trace.Refused {
		w.dirty = true
		return w.s.Free(b.Addr)
	}
	w.blocks[e.Slot] = b
	return nil
}

// retry tries the waiting requests again, the longest wait first, until no try can find more memory
// than the last one.
func (w *waiting) retry() error {
	for w.dirty {
		w.dirty = false
		for _, th := range slices.Clone(w.queue) {
			e := &w.t.Events[th.request]
			w.Tries++
			b, err := w.s.Alloc(w.request.Of(e))
			if errors.Is(err, alloc.ErrOutOfMemory) {
				continue
			} else if err != nil {
				return err
			}
			w.Served++
			if err := errors.Join(w.granted(e, b), w.resume(th, w.now)); err != nil {
				return err
			}
		}
	}
	return nil
}

// resume ends the wait of a thread and replays the events that it held up.
func (w *waiting) resume(th *waiter, at int64) error {
	took := uint64(at - th.since)
	w.Delay += took
	w.Longest = max(w.Longest, took)
	w.queue = slices.DeleteFunc(w.queue, func(other *waiter) bool { return other == th })
	held := th.held
	th.held, th.waits = nil, false
	for k, i := range held {
		if th.waits {
			th.held = append(th.held, held[k:]...)
			return nil
		}
		if err := w.run(th, i); err != nil {
			return err
		}
	}
	return nil
}

// expire refuses the requests whose wait ends before a time. Their threads go on.
func (w *waiting) expire(until int64) error {
	for len(w.queue) > 0 {
		th := w.queue[0] // began to wait first, so its wait ends first
		end := th.since
		if w.Timed {
			end += int64(w.Limit)
		}
		if end > until {
			return nil
		}
		w.now = max(w.now, end)
		w.Refused++
		if err := w.resume(th, w.now); err != nil {
			return err
		}
		if err := w.retry(); err != nil {
			return err
		}
	}
	return nil
}
