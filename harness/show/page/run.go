package page

import (
	"encoding/json"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
)

// Picture is the recorded data of one replay. Slices by bucket have the length of the trace's grid.
type Picture struct {
	Strategy string          // name and preset
	Config   json.RawMessage // configuration of the strategy
	Result   *replay.Result  // of the recorded replay, without figures
	Capacity device.Size     // of the device; 0: unlimited

	Curves     Curves                    // of the sums and of fragmentation
	Calls      [device.NumCalls][]uint32 // driver calls by kind and bucket; nil: none
	DeviceTime []float64                 // by bucket: ns of driver calls
	OOMs       []uint32                  // by bucket: requests that ran out of memory
	Peaks      [numSums]Peak             // by sum
	Failures   []Failure                 // the first failed requests
	Failed     int                       // failed requests
	FirstOOM   int                       // event of the first request that ran out of memory; -1: none

	Space          Space             // the address axis
	Rects          []Rect            // by birth: the blocks of the most byte-events
	RectsOmitted   Omitted           // blocks omitted from Rects
	Regions        []ReservedRange   // by birth: the reserved ranges of the most byte-events
	RegionsOmitted Omitted           // ranges omitted from Regions
	Raster         *Raster           // of all blocks
	Snapshots      []Snapshot        // by event
	Alloc          *replay.Histogram // ns of single calls of Alloc; nil without Options.Latency
	Free           *replay.Histogram // ns of single calls of Free; nil without Options.Latency
}

// Omitted is omitted items.
type Omitted struct {
	Count      int     // number
	ByteEvents float64 // total bytes times events
}

// Failure is a failed request.
type Failure struct {
	Event     int         // its number
	Time      int64       // nanoseconds, or trace.NoTime
	Requested device.Size // bytes
	ID        uint64      // allocation ID in the trace
	Tag       uint32      // index in Trace.Tags
	Stream    uint16      // index in Trace.Streams, or OtherStream
	Error     string      // error of the strategy
	Reason    string      // reason, if the strategy reports one
	Free      device.Size // bytes in free chunks, if reported
	Hole      device.Size // largest free chunk, if reported
}

// Draw replays the trace through the strategy of setup and records a picture. p is the prepared
// trace; on returns a new device for each replay. It fails if a replay fails.
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
	second := r.painter()
	if _, err := second.replay(p, setup, on, second.event); err != nil {
		return nil, err
	}
	r.run.Raster, r.run.Snapshots = second.raster.finish(second.last+1), second.snapshots
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

// note stores data of a block and returns its index.
func (r *collector) note(n note) int {
	if k := len(r.freeNotes); k > 0 {
		i := r.freeNotes[k-1]
		r.freeNotes = r.freeNotes[:k-1]
		r.notes[i] = n
		return i
	}
	r.notes = append(r.notes, n)
	return len(r.notes) - 1
}

// timeOf returns the time of an event, or the last known time before it.
func (r *collector) timeOf(e *trace.Event) int64 {
	if e.Time != trace.NoTime {
		r.time = e.Time
	}
	return r.time
}
