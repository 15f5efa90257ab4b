package page

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/replay/follow"
)

// follower is the common part of both replays of a trace.
type follower struct {
	o        Options
	tap      *follow.Tap
	blocks   *follow.Follower
	watch    follow.Watcher
	strategy alloc.Strategy
	capacity device.Size
	last     int                // index of the current event; -1 before the first
	seen     replay.Observation // the current event
}

// replay replays the trace once and calls event for each event.
func (f *follower) replay(
	p *replay.Prepared, setup setting.Setup, on func() (device.Device, error), event func(o *replay.Observation) error,
) (*replay.Result, error) {
	dev, err := on()
	if err != nil {
		return nil, err
	}
	f.capacity = dev.Usage().Capacity
	f.tap = follow.NewTap(dev)
	f.last = -1
	f.blocks = follow.New(f.tap, f.watch)
	return p.Run(setup, f.tap, replay.Options{FreeAt: f.o.FreeAt, StopAtOOM: f.o.StopAtOOM,
		Observe: func(seen replay.Observation) error {
			f.seen = seen // reusing it avoids garbage per event
			o := &f.seen
			switch {
			case o.Event < 0:
				if f.strategy = o.Strategy; o.Err == nil {
					f.blocks.Begin(o.Strategy, false)
				}
				return o.Err
			case o.Of == nil: // closing is not part of the run
				return nil
			}
			f.last = o.Event
			if err := f.o.step(o.Event); err != nil {
				return err
			}
			if err := f.blocks.Event(o); err != nil {
				return err
			}
			return event(o)
		}})
}
