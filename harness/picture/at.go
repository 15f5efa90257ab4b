package picture

import (
	"errors"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/follow"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
)

// errSeen ends a replay that has come far enough.
var errSeen = errors.New("seen")

// At replays the trace through the strategy of setup up to an event and returns the state after it. p and on
// are those of [Trace.Record]. It costs one replay of the events up to there.
func (t *Trace) At(
	p *replay.Prepared, setup alloc.Setup, on func() (device.Device, error), event int, o Options,
) (*Instant, error) {
	f := follower{o: o.withDefaults()}
	f.watch = follow.Watcher{Granted: func(e *trace.Event, b *follow.Block) { b.Note = int(t.tagOf(e)) }}
	var at Instant
	_, err := f.replay(p, setup, on, func(o *replay.Observation) error {
		f.tap.NewCalls()
		if o.Event < event {
			return nil
		}
		at = f.look(t, event)
		return errSeen
	})
	if err == nil {
		return nil, errors.New("the trace ends before the event")
	}
	if !errors.Is(err, errSeen) {
		return nil, err
	}
	return &at, nil
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
