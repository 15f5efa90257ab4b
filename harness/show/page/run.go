package page

import (
	"encoding/json"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
)

// Picture is what is drawn of one replay. Slices by bucket are as long as the grid of the trace.
type Picture struct {
	Strategy string          // name and preset
	Config   json.RawMessage // the strategy's configuration
	Result   *replay.Result  // of the replay that was drawn, without its figures
	Capacity device.Size     // of the device; 0 is unlimited

	Curves     Curves                    // of the sums and of fragmentation
	Calls      [device.NumCalls][]uint32 // by kind, then by bucket: calls to the device; nil where there are none
	DeviceTime []float64                 // by bucket: nanoseconds that they took
	OOMs       []uint32                  // by bucket: requests that found no memory
	Peaks      [numSums]Peak             // by sum
	Failures   []Failure                 // the first requests that were not granted
	Failed     int                       // how many were not granted
	FirstOOM   int                       // event of the first request that found no memory; -1 for none

	Space       Space             // the axis of addresses
	Rects       []Rect            // by birth: blocks, those of the most byte-events
	RectsLeft   Left              // blocks that are not in Rects
	Regions     []Stretch         // by birth: memory that was held, likewise
	RegionsLeft Left              // memory that is not in Regions
	Raster      *Raster           // of all blocks
	Instants    []Instant         // by event
	Alloc       *replay.Histogram // nanoseconds of single calls of Alloc; nil without Options.Latency
	Free        *replay.Histogram // likewise of Free
}

// Left is what a picture leaves out.
type Left struct {
	Count      int     // how many
	ByteEvents float64 // bytes times events, together
}

// Failure is a request that was not granted.
type Failure struct {
	Event  int         // its number
	Time   int64       // nanoseconds, or trace.NoTime
	Asked  device.Size // bytes
	ID     uint64      // of the allocation in the trace
	Tag    uint32      // in Trace.Tags
	Stream uint16      // in Trace.Streams, or OtherStream
	Error  string      // what the strategy answered
	Reason string      // why, as far as it says
	Free   device.Size // bytes in free chunks, as far as it says
	Hole   device.Size // the largest free chunk, as far as it says
}

// Draw replays the trace through the strategy of setup and keeps what is drawn. p is the trace made
// ready; on returns a fresh device for every replay. It fails where a replay does.
func (t *Trace) Draw(p *replay.Prepared, setup setting.Setup, on func() (device.Device, error),
	o Options) (*Picture, error) {
	o = o.withDefaults()
	r := newCollector(t, o)
	res, err := r.replay(p, setup, on, r.event)
	if err != nil {
		return nil, err
	}
	r.finish()
	r.run.Result, r.run.Strategy, r.run.Config = res, setup.Name, res.Config
	second := r.second()
	if _, err := second.replay(p, setup, on, second.event); err != nil {
		return nil, err
	}
	r.run.Raster, r.run.Instants = second.raster.finish(second.last+1), second.instants
	if o.Latency {
		dev, err := on()
		if err != nil {
			return nil, err
		}
		timed, err := p.Run(setup, dev, replay.Options{FreeAt: o.FreeAt, StopAtOOM: o.StopAtOOM, Latency: true})
		if err != nil {
			return nil, err
		}
		r.run.Alloc, r.run.Free = timed.Latency.AllocCalls, timed.Latency.FreeCalls
	}
	return r.run, nil
}

// note returns a number for what is known of a block.
func (r *collector) note(n note) int {
	if k := len(r.unused); k > 0 {
		i := r.unused[k-1]
		r.unused = r.unused[:k-1]
		r.notes[i] = n
		return i
	}
	r.notes = append(r.notes, n)
	return len(r.notes) - 1
}

// timeOf returns the time of an event, or of the last one before that has one.
func (r *collector) timeOf(e *trace.Event) int64 {
	if e.Time != trace.NoTime {
		r.time = e.Time
	}
	return r.time
}
