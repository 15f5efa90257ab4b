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

// errClosed is returned by a [Walker] that is over.
var errClosed = errors.New("the replay is over")

// Walker is a replay that stops at the events it is told, one after the other, and can wait there:
// the next event after it costs one event more, where a new replay costs all before it. Make one
// with [Trace.Walker]. It is not safe for concurrent use, and must be closed.
//
// It has a goroutine of its own and no coroutine of package iter, for a replay keeps to one thread
// while it takes its time.
type Walker struct {
	run  func(*Walker) error // the whole replay
	asks chan step
	said chan *Instant // nil when the context of the step has ended; closed when the replay is over
	on   step          // what the replay is at
	last int
	err  error // why it is over
}

// step is a way to go.
type step struct {
	ctx   context.Context
	event int // up to the state after it
}

// Walker returns a replay through the strategy of setup that has not begun. p and on are those of
// [Trace.Draw]. It holds what the strategy, its device and a piece of the trace need, and a thread.
func (t *Trace) Walker(p *replay.Prepared, setup setting.Setup, on func() (device.Device, error), o Options) *Walker {
	run := func(w *Walker) error {
		o.Step = func(int) error {
			for w.on.ctx.Err() != nil {
				if err := w.say(nil); err != nil {
					return err
				}
			}
			return nil
		}
		f := follower{o: o.withDefaults()}
		f.watch = follow.Watcher{Granted: func(e *trace.Event, b *follow.Block) { b.Note = int(t.tagOf(e)) }}
		_, err := f.replay(p, setup, on, func(o *replay.Observation) error {
			f.tap.NewCalls()
			for w.last = o.Event; o.Event >= w.on.event; { // more than once if it is asked for the same event again
				at := f.look(t, w.on.event)
				if err := w.say(&at); err != nil {
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

// say answers a step and waits for the next one.
func (w *Walker) say(at *Instant) error {
	w.said <- at
	next, ok := <-w.asks
	if !ok {
		return errClosed
	}
	w.on = next
	return nil
}

// Last returns the event after which the replay waits; -1 if it has not begun.
func (w *Walker) Last() int { return w.last }

// To replays up to an event that does not lie before [Walker.Last], and returns the state after it.
// If ctx ends, the replay waits where it is, and can go on from there; after any other error it is
// over.
func (w *Walker) To(ctx context.Context, event int) (*Instant, error) {
	if event < w.last {
		return nil, errors.New("the event lies before those that were replayed")
	}
	if w.err != nil {
		return nil, w.err
	}
	if w.asks == nil {
		w.asks, w.said, w.on = make(chan step), make(chan *Instant), step{ctx, event}
		go func() {
			defer close(w.said)
			defer func() {
				if p := recover(); p != nil { // else the program would end for one question
					w.err = fmt.Errorf("the replay broke: %v", p)
				}
			}()
			w.err = w.run(w)
		}()
	} else {
		w.asks <- step{ctx, event}
	}
	at, ok := <-w.said
	switch {
	case !ok:
		return nil, w.err
	case at == nil:
		return nil, ctx.Err()
	}
	return at, nil
}

// Close ends the replay and waits for its end.
func (w *Walker) Close() {
	if w.asks == nil || w.err != nil {
		w.err = errClosed
		return
	}
	close(w.asks)
	<-w.said // it is closed, for nothing is asked any more
}

// Reopen returns a trace that was kept without its source, ready to be replayed again.
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
