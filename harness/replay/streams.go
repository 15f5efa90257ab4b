package replay

import (
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// use replays that a stream uses a block. The use of an allocation that was not granted is
// nothing.
func (r *runner) use(e *trace.Event, o *op) error {
	if o.place == noPlace || !r.blocks[o.place].live {
		return nil
	}
	a := r.blocks[o.place].addr
	err := alloc.RecordStream(r.s, a, e.Stream)
	r.saw(Observation{Addr: a, Err: err})
	switch {
	case errors.Is(err, alloc.ErrUnsupported):
		r.res.Ignored++
		return nil
	case err != nil:
		return fmt.Errorf("use of live allocation %d by stream %d: %w", e.ID, uint64(e.Stream), err)
	}
	return nil
}

// drain replays that all work queued on a stream has finished. Without a strategy that knows
// streams, and a device that has them, it tells nobody anything.
func (r *runner) drain(s device.Stream) error {
	line, ok := device.TimelineOf(r.faults)
	if !ok || !alloc.Has(r.s, alloc.PowerStreamRecorder) {
		return alloc.ErrUnsupported
	}
	return line.Drain(s)
}
