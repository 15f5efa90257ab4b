package page

import (
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/replay/follow"
	"github.com/vramyard/vramyard/harness/trace"
)

// Snapshot is a snapshot after an event.
type Snapshot struct {
	Event         int              // its number
	Labels        []string         // reasons for taking it
	Regions       []SnapshotRegion // in walk order
	Chunks        []Cell           // the largest chunks, in walk order
	ChunksOmitted int              // omitted chunks
	// omitted regions; their chunks are omitted too
	RegionsOmitted int
}

// SnapshotRegion is a region in a snapshot.
type SnapshotRegion struct {
	device.Region
	Stream uint16       // index in Trace.Streams of its first chunk's stream, or OtherStream
	Pool   alloc.PoolID // private pool; 0: the default pool
}

// Cell is a chunk in a snapshot.
type Cell struct {
	Region    uint32      // index in Snapshot.Regions
	Addr      device.Addr // first byte
	Size      device.Size // bytes
	Requested device.Size // requested bytes, if in use
	ID        uint64      // trace ID of the allocation, if in use
	State     alloc.State // state
	Class     int32       // bin, order or size class; may be alloc.NoClass
	Tag       uint32      // index in Trace.Tags
	Stream    uint16      // index in Trace.Streams, or OtherStream
}

// moments are the events to take snapshots at, with their labels.
type moments struct {
	events []int
	labels map[int][]string
}

func (m *moments) add(event int, label string) {
	if event < 0 {
		return
	}
	if _, ok := m.labels[event]; !ok {
		m.events = append(m.events, event)
	}
	m.labels[event] = append(m.labels[event], label)
}

func (r *collector) moments() *moments {
	m := &moments{labels: map[int][]string{}}
	m.add(r.run.Peaks[Reserved].Event, "peak reserved")
	m.add(r.run.Peaks[Requested].Event, "peak requested")
	if len(r.run.Failures) > 0 {
		m.add(r.run.Failures[0].Event, "first failure")
	}
	m.add(r.last, "end")
	for _, e := range r.o.Events {
		if e <= r.last {
			m.add(e, "chosen")
		}
	}
	slices.Sort(m.events)
	return m
}

// painter fills the raster and takes the snapshots in a second replay.
type painter struct {
	follower
	trace     *Trace
	space     *Space
	raster    *raster
	wanted    *moments
	next      int // index in wanted
	snapshots []Snapshot
}

// painter returns the painter for the second replay.
func (r *collector) painter() *painter {
	p := &painter{
		follower: follower{o: r.o}, trace: r.trace, space: &r.run.Space, wanted: r.moments(),
		raster: newRaster(r.trace.Grid.Events, r.run.Space.Bytes, r.o.Columns, r.o.Rows),
	}
	p.watch = follow.Watcher{
		Granted: func(e *trace.Event, b *follow.Block) {
			b.Note = int(r.trace.tagOf(e))
			p.raster.add(b.Born, p.space.Y(b.Addr), float64(b.Size), 1)
		},
		Reclaimed: func(event int, b *follow.Block) { p.raster.add(event, p.space.Y(b.Addr), float64(b.Size), -1) },
	}
	return p
}

// event takes a snapshot if one is wanted after this event.
func (p *painter) event(o *replay.Observation) error {
	p.tap.NewCalls()
	if p.next == len(p.wanted.events) || o.Event != p.wanted.events[p.next] {
		return nil
	}
	p.next++
	at := p.snapshot(p.trace, o.Event)
	at.Labels = p.wanted.labels[o.Event]
	p.snapshots = append(p.snapshots, at)
	return nil
}

// snapshot takes a snapshot. A block's Note is the index of its tag.
func (f *follower) snapshot(t *Trace, event int) Snapshot {
	at := Snapshot{Event: event}
	blocks := map[device.Addr]*follow.Block{}
	for b := range f.blocks.Blocks {
		blocks[b.Addr] = b
	}
	var region device.Addr
	for c := range f.strategy.Walk {
		if n := len(at.Regions); n == 0 || region != c.Region {
			region = c.Region
			at.Regions = append(at.Regions, SnapshotRegion{
				Region: device.Region{Addr: c.Region}, Stream: t.streamOf(c.Stream), Pool: c.Pool,
			})
		}
		n := len(at.Regions) - 1
		at.Regions[n].Size += c.Size
		x := Cell{
			Region: uint32(n), Addr: c.Addr, Size: c.Size, Requested: c.Requested, State: c.State, Class: c.Class,
			Stream: t.streamOf(c.Stream),
		}
		if b := blocks[c.Addr]; b != nil && (c.State == alloc.Live || c.State == alloc.Pending) {
			x.ID, x.Tag = b.ID, uint32(b.Note)
		}
		at.Chunks = append(at.Chunks, x)
	}
	at.keep(f.o.Chunks)
	return at
}
