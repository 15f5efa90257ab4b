package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/replay/follow"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/torch"
)

// Options configure a replay for an export. The zero value is ready to use.
type Options struct {
	FreeAt    replay.FreeAt // when a strategy without streams learns of a delayed free
	StopAtOOM bool          // stop at the first request that runs out of memory, as a program would

	Watch func(events int) error // see [replay.Options]
}

// Replay replays a trace through the strategy of setup on a new device, as [replay.Run] does, and
// records everything. It fails if the replay fails, or if the strategy reports impossible chunks.
func Replay(src trace.Source, setup setting.Setup, dev device.Device, o Options) (*Run, error) {
	config, err := json.Marshal(setup.Config)
	if err != nil {
		return nil, fmt.Errorf("%s: configuration: %w", setup.Name, err)
	}
	head := src.Head()
	r := &collector{
		Run: Run{
			strategy: setup.Name, config: config, header: head.Header, events: head.Events,
			torch:   &torch.Snapshot{Devices: make([]torch.Device, 1)},
			sampler: newCurveSampler(head.Events),
		},
		tap: follow.NewTap(dev), src: src, at: map[device.Addr]*follow.Block{},
		streams: map[device.Stream]uint16{}, stacks: map[string]uint32{}, stops: o.StopAtOOM,
	}
	r.blocks = follow.New(r.tap, follow.Watcher{Granted: r.granted, OOM: r.oom, Freed: r.freed, Reclaimed: r.reclaimed,
		Memory: r.memory})
	r.intern = torch.NewInterner(r.torch)
	if r.timed, err = hasTimes(src); err != nil {
		return nil, err
	}
	if _, err = replay.Run(src, setup, r.tap, replay.Options{FreeAt: o.FreeAt, StopAtOOM: o.StopAtOOM, Watch: o.Watch,
		Observe: r.observe}); err != nil {
		return nil, err
	}
	r.settle()
	return &r.Run, nil
}

// errFound ends a walk.
var errFound = errors.New("found")

func hasTimes(src trace.Source) (bool, error) {
	err := src.Batches(func(events []trace.Event) error {
		if slices.ContainsFunc(events, func(e trace.Event) bool { return e.Time != trace.NoTime }) {
			return errFound
		}
		return nil
	})
	if errors.Is(err, errFound) {
		return true, nil
	}
	return false, err
}

// collector records a run.
type collector struct {
	Run
	reserved
	builder

	tap     *follow.Tap
	blocks  *follow.Follower
	src     trace.Source
	s       alloc.Strategy
	at      map[device.Addr]*follow.Block // blocks in use at the end
	timed   bool                          // the trace has times
	stops   bool                          // the replay ends at the first request that runs out of memory
	request *trace.Event                  // the current event if it is a request, or nil
	now     int64                         // time of the current event

	intern  *torch.Interner
	streams map[device.Stream]uint16 // indices in the history
	stacks  map[string]uint32        // indices of tags
}

// observe records an event; see [replay.Options].
func (r *collector) observe(o replay.Observation) error {
	switch {
	case o.Event < 0:
		if r.s = o.Strategy; o.Err == nil {
			r.blocks.Begin(r.s, true)
		}
	case o.Event >= r.events:
		return nil // closing is not part of the run
	default:
		if err := r.event(&o); err != nil {
			return err
		}
	}
	stopped := r.stops && r.request != nil && errors.Is(o.Err, alloc.ErrOutOfMemory)
	if o.Event+1 < r.events && !stopped || o.Err != nil && o.Event < 0 {
		return nil
	}
	r.events = o.Event + 1
	r.tap.Close()
	return r.finish()
}

func (r *collector) event(o *replay.Observation) error {
	e := o.Of
	r.tick(e, o.Event)
	r.request = nil
	switch e.Kind {
	case trace.Mark:
		r.marks = append(r.marks, mark{r.now, r.intern.String(r.src.TagOf(e))})
	case trace.Conf:
		r.torch.Devices[0].History.AppendConf(r.src.TagOf(e), r.streamOf(0), r.now/1000)
	case trace.Alloc, trace.LiveAtStart:
		r.request = e
	}
	if err := r.blocks.Event(o); err != nil {
		return err
	}
	stats := r.s.Stats()
	if stats.Allocated > r.most {
		r.most, r.peak = stats.Allocated, r.now
	}
	r.sampler.add(r.now, [numCurves]device.Size{r.blocks.Requested(), stats.Allocated, stats.Active, r.tap.Held()})
	return nil
}

// tick advances the clock to an event, and assigns times to its driver calls.
func (r *collector) tick(e *trace.Event, i int) {
	const each = 1000 // ns per event in a trace without times
	switch {
	case !r.timed:
		r.now = int64(i)*each + int64(r.tap.Spent())
	case e.Time != trace.NoTime:
		r.now = e.Time
	}
	for _, c := range r.tap.NewCalls() {
		began := r.now
		if !r.timed {
			began = int64(i)*each + int64(c.Before)
		}
		if n := len(r.calls); n > 0 {
			began = max(began, r.calls[n-1].end())
		}
		r.calls = append(r.calls, call{
			start: began, took: int64(c.Took), size: c.Size, event: i, kind: c.Kind, failed: c.Failed,
		})
		r.last = max(r.last, r.calls[len(r.calls)-1].end())
	}
	r.last = max(r.last, r.now)
}

func (r *collector) entry(e torch.Entry) {
	e.Time = r.now / 1000
	r.torch.Devices[0].History.Append(e)
}

// lifeEntry appends an action on a block to the history.
func (r *collector) lifeEntry(a torch.Action, l *life) {
	r.entry(torch.Entry{
		Action: a, Addr: uint64(l.block.Addr), Size: uint64(l.requested), Stream: l.stream, Pool: l.pool, Stack: l.stack,
	})
}

func (r *collector) streamOf(s device.Stream) uint16 {
	n, ok := r.streams[s]
	if !ok {
		h := &r.torch.Devices[0].History
		n = uint16(len(h.Streams))
		h.Streams = append(h.Streams, int64(s))
		r.streams[s] = n
	}
	return n
}

// poolOf returns the index of a private pool in the history.
func (r *collector) poolOf(id alloc.PoolID) uint16 {
	h := &r.torch.Devices[0].History
	if id == 0 {
		return 0
	}
	if h.Pools == nil {
		h.Pools = [][2]uint64{{}}
	}
	n := slices.Index(h.Pools, poolPair(id))
	if n < 0 {
		n = len(h.Pools)
		h.Pools = append(h.Pools, poolPair(id))
	}
	return uint16(n)
}

// poolPair returns the ID of a private pool in a snapshot, as for a pool created by the program.
func poolPair(id alloc.PoolID) [2]uint64 { return [2]uint64{0, uint64(id)} }

func (r *collector) stackOf(e *trace.Event) uint32 {
	text := r.src.TagOf(e)
	if text == "" {
		return 0
	}
	id, ok := r.stacks[text]
	if !ok {
		f := torch.Frame{File: r.intern.String(r.header.Name), Function: r.intern.String(text)}
		id = r.intern.Stack([]uint32{r.intern.Frame(f)})
		r.stacks[text] = id
	}
	return id
}

func (r *collector) granted(e *trace.Event, b *follow.Block) {
	b.Note = len(r.lives)
	l := life{
		block: b.Block, requested: b.Requested, id: b.ID, start: r.now, end: never,
		stack: r.stackOf(e), stream: r.streamOf(b.Stream), pool: r.poolOf(r.poolAt(b.Addr)),
	}
	r.lives = append(r.lives, l)
	r.joined = r.joined || r.spansSegments(b.Addr, b.Size)
	r.lifeEntry(torch.ActionAlloc, &l)
}

// oom records a request that ran out of memory, unless the strategy reported it.
func (r *collector) oom(o *replay.Observation) {
	e := o.Of
	x := oom{at: r.now, requested: e.Size, id: e.ID, stream: e.Stream}
	if u := r.tap.Usage(); u.Capacity != 0 {
		x.free = u.Free()
	}
	r.ooms = append(r.ooms, x)
	if !r.blocks.HasHistory() {
		r.entry(torch.Entry{
			Action: torch.ActionOOM, Addr: uint64(x.free), Size: uint64(x.requested), Stream: r.streamOf(e.Stream),
			Stack: r.stackOf(e),
		})
	}
}

func (r *collector) freed(b *follow.Block) {
	r.lifeEntry(torch.ActionFreeRequested, &r.lives[b.Note])
}

func (r *collector) reclaimed(_ int, b *follow.Block) {
	l := &r.lives[b.Note]
	l.end = r.now
	r.lifeEntry(torch.ActionFreeCompleted, l)
}

// segmentActions maps actions on memory to actions of a snapshot.
var segmentActions = map[power.ActionKind]torch.Action{
	power.SegmentAlloc: torch.ActionSegmentAlloc, power.SegmentFree: torch.ActionSegmentFree,
	power.SegmentMap: torch.ActionSegmentMap, power.SegmentUnmap: torch.ActionSegmentUnmap,
}

func (r *collector) memory(_ int, a power.Action) {
	if a.Kind == power.OutOfMemory {
		var stack uint32
		if r.request != nil {
			stack = r.stackOf(r.request)
		}
		r.entry(torch.Entry{
			Action: torch.ActionOOM, Addr: uint64(a.DeviceFree), Size: uint64(a.Size), Stream: r.streamOf(a.Stream),
			Stack: stack,
		})
		return
	}
	r.hold(a)
	r.entry(torch.Entry{
		Action: segmentActions[a.Kind], Addr: uint64(a.Addr), Size: uint64(a.Size), Stream: r.streamOf(a.Stream),
		Pool: r.poolOf(a.Pool),
	})
}
