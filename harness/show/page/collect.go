package page

import (
	"errors"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/replay/follow"
	"github.com/vramyard/vramyard/harness/trace"
)

// maxSamples bounds the regular samples of the largest free chunk. New peaks are sampled in
// addition.
const maxSamples = 1 << 16

// collector builds a [Picture] during the first replay.
type collector struct {
	follower
	trace *Trace
	run   *Picture
	time  int64 // of the last event with a time

	space      Space
	held       spans
	reserved   topK[ReservedRange]
	rects      topK[Rect]
	rect       Rect // argument of Options.Each
	notes      []note
	freeNotes  []int // free indices of notes
	sampleMask int   // an event is sampled if its number has none of these bits
	streams    bool  // the strategy supports streams

	credit  float64 // budget for walks
	classes map[device.Addr]int32
}

func newCollector(t *Trace, o Options) *collector {
	n := t.Grid.Len()
	r := &collector{
		follower: follower{o: o}, trace: t, time: trace.NoTime,
		run:      &Picture{Curves: newCurves(n), DeviceTime: make([]float64, n), OOMs: make([]uint32, n), FirstOOM: -1},
		reserved: newTopK[ReservedRange](o.Regions), rects: newTopK[Rect](o.Blocks),
		space: Space{most: o.Ranges}, credit: 1 << 20, classes: map[device.Addr]int32{},
	}
	for stride := 1; t.Grid.Events/stride > maxSamples; stride *= 2 {
		r.sampleMask = 2*stride - 1
	}
	for i := range r.run.Peaks {
		r.run.Peaks[i].Event = -1
	}
	r.watch = follow.Watcher{Granted: r.granted, Reclaimed: r.reclaimed, Memory: r.memory}
	return r
}

func (r *collector) granted(e *trace.Event, b *follow.Block) {
	r.space.hold(b.Addr, b.Size)
	b.Note = r.note(note{tag: r.trace.tagOf(e), class: alloc.NoClass})
}

func (r *collector) reclaimed(event int, b *follow.Block) {
	r.keep(r.rectOf(b, uint32(event)))
	r.freeNotes = append(r.freeNotes, b.Note)
}

func (r *collector) keep(rect Rect) {
	r.rect = rect // a local variable would escape to the heap for each block
	if r.o.Each != nil {
		r.o.Each(&r.rect)
	}
	r.rects.add(rect, rect.weight(r.trace.Grid.Events))
}

func (r *collector) event(o *replay.Observation) error {
	if o.Event == 0 {
		r.streams = power.Has(r.strategy, power.PowerStreamRecorder)
	}
	bucket := o.Event >> r.trace.Grid.Shift
	now := r.timeOf(o.Of)
	r.countCalls(bucket)
	s := r.strategy.Stats()
	sums := [numSums]device.Size{r.blocks.Requested(), s.Allocated, s.Active, r.tap.Held()}
	most := sums
	most[Reserved] = r.tap.MostHeld()
	grown := most[Reserved] > r.run.Peaks[Reserved].Bytes
	for k, bytes := range most {
		if p := &r.run.Peaks[k]; bytes > p.Bytes {
			*p = Peak{o.Event, bytes}
		}
	}
	c := &r.run.Curves
	for k, curve := range []*Curve{&c.Requested, &c.Allocated, &c.Active, &c.Reserved} {
		curve.add(bucket, float64(sums[k]))
	}
	c.Reserved.add(bucket, float64(most[Reserved]))
	c.Pending.add(bucket, float64(s.Active-s.Allocated))
	c.Internal.add(bucket, share(s.Requested, s.Allocated))
	if grown || o.Event&r.sampleMask == 0 {
		r.sampleFree(bucket, s.Active, sums[Reserved])
	}
	r.failure(o, bucket, now)
	if last := r.trace.Grid.Last(bucket); o.Event == last {
		r.sampleWalk()
	}
	return nil
}

// sampleFree records the largest free chunk and the external fragmentation.
func (r *collector) sampleFree(bucket int, active, reserved device.Size) {
	largest := power.LargestFree(r.strategy)
	r.run.Curves.LargestFree.add(bucket, float64(largest))
	external := 0.0
	if free := reserved - active; free != 0 && free >= reserved/100 {
		external = 1 - float64(largest)/float64(free)
	}
	r.run.Curves.External.add(bucket, external)
}

// countCalls adds the driver calls of an event.
func (r *collector) countCalls(bucket int) {
	for _, c := range r.tap.NewCalls() {
		n := &r.run.Calls[c.Kind]
		if *n == nil {
			*n = make([]uint32, r.trace.Grid.Len())
		}
		(*n)[bucket]++
		r.run.DeviceTime[bucket] += float64(c.Took)
	}
}

// failure records a failed request. Requests of size 0, which some strategies refuse, do not count.
func (r *collector) failure(o *replay.Observation, bucket int, now int64) {
	e := o.Of
	if o.Err == nil || e.Size == 0 || e.Kind != trace.Alloc && e.Kind != trace.LiveAtStart {
		return
	}
	if errors.Is(o.Err, alloc.ErrOutOfMemory) {
		r.run.OOMs[bucket]++
		if r.run.FirstOOM < 0 {
			r.run.FirstOOM = o.Event
		}
	}
	r.run.Failed++
	if len(r.run.Failures) >= r.o.Failures {
		return
	}
	f := Failure{
		Event: o.Event, Time: now, Requested: e.Size, ID: e.ID, Tag: r.trace.tagOf(e), Stream: r.trace.streamOf(e.Stream),
		Error: o.Err.Error(),
	}
	if why, ok := power.LastRefusal(r.strategy); ok {
		f.Reason, f.Free, f.Hole = why.Reason.String(), why.Free, why.LargestHole
	}
	r.run.Failures = append(r.run.Failures, f)
}

// finish completes the results of the first replay.
func (r *collector) finish() {
	run := r.run
	run.Capacity = r.capacity
	for b := range r.blocks.Blocks {
		r.keep(r.rectOf(b, Never))
	}
	for i := range r.held {
		r.reservedRange(r.held[i].ReservedRange)
	}
	r.space.settle()
	run.Space = r.space
	run.Rects, run.Regions = r.rects.kept(byBirth), r.reserved.kept(byStart)
	run.RectsOmitted = Omitted{r.rects.Count, r.rects.Weight}
	run.RegionsOmitted = Omitted{r.reserved.Count, r.reserved.Weight}
}
