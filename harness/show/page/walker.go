package page

import (
	"context"
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/replay/follow"
	"github.com/vramyard/vramyard/harness/trace"
)

// errClosed is returned by a closed [Walker].
var errClosed = errors.New("the replay has ended")

// Walker is a replay that can be advanced to one event after another and waits in between. The next
// event costs one event; a new replay would start from the beginning. Create it with [Trace.Walker]
// and close it after use. It is not safe for concurrent use.
//
// It runs in a goroutine of its own rather than in a coroutine of package iter, because a replay
// stays on one thread while it measures time.
type Walker struct {
	run      func(*Walker) error // runs the whole replay
	requests chan step
	answers  chan *Snapshot // nil if the context of the step ended; closed when the replay has ended
	current  step           // the current step
	last     int
	err      error // why the replay ended
}

// step is a request to advance.
type step struct {
	ctx   context.Context
	event int // advance to the state after it
}

// Walker returns a replay that has not started, through the strategy of setup. p and on are as in
// [Trace.Draw]. It holds a thread, a batch of the trace, the strategy and its device.
func (t *Trace) Walker(p *replay.Prepared, setup setting.Setup, on func() (device.Device, error), o Options) *Walker {
	run := func(w *Walker) error {
		o.Step = func(int) error {
			for w.current.ctx.Err() != nil {
				if err := w.reply(nil); err != nil {
					return err
				}
			}
			return nil
		}
		f := follower{o: o.withDefaults()}
		f.watch = follow.Watcher{Granted: func(e *trace.Event, b *follow.Block) { b.Note = int(t.tagOf(e)) }}
		_, err := f.replay(p, setup, on, func(o *replay.Observation) error {
			f.tap.NewCalls()
			for w.last = o.Event; o.Event >= w.current.event; { // loops if the same event is requested again
				at := f.snapshot(t, w.current.event)
				if err := w.reply(&at); err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil {
			err = errors.New("the trace ends before the event")
		}
		return err
	}
	return &Walker{last: -1, run: run}
}

// reply answers a step and waits for the next one.
func (w *Walker) reply(at *Snapshot) error {
	w.answers <- at
	next, ok := <-w.requests
	if !ok {
		return errClosed
	}
	w.current = next
	return nil
}

// Last returns the event after which the replay waits; -1 before the start.
func (w *Walker) Last() int { return w.last }

// To replays up to an event, at or after [Walker.Last], and returns the state after it. If ctx
// ends, the replay pauses and can be continued; after any other error it has ended.
func (w *Walker) To(ctx context.Context, event int) (*Snapshot, error) {
	if event < w.last {
		return nil, errors.New("want an event at or after the last one replayed")
	}
	if w.err != nil {
		return nil, w.err
	}
	if w.requests == nil {
		w.requests, w.answers, w.current = make(chan step), make(chan *Snapshot), step{ctx, event}
		go func() {
			defer close(w.answers)
			defer func() {
				if p := recover(); p != nil { // a panic must not end the program
					w.err = fmt.Errorf("the replay panicked: %v", p)
				}
			}()
			w.err = w.run(w)
		}()
	} else {
		w.requests <- step{ctx, event}
	}
	at, ok := <-w.answers
	switch {
	case !ok:
		return nil, w.err
	case at == nil:
		return nil, ctx.Err()
	}
	return at, nil
}

// Close ends the replay and waits until it has ended.
func (w *Walker) Close() {
	if w.requests == nil || w.err != nil {
		w.err = errClosed
		return
	}
	close(w.requests)
	<-w.answers // closed, since no further step can be requested
}

// Reopen returns a copy of a trace that was stored without its source, ready for replays.
func (t Trace) Reopen(src trace.Source) *Trace {
	t.src, t.tags, t.streams = src, map[string]uint32{}, map[device.Stream]uint16{}
	for i, text := range t.Tags[min(1, len(t.Tags)):] {
		t.tags[text] = uint32(i + 1)
	}
	for i, s := range t.Streams {
		t.streams[s] = uint16(i)
	}
	return &t
}
