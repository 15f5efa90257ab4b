package page

import (
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/replay/follow"
	"github.com/vramyard/vramyard/harness/trace"
)

// Instant is the state after an event.
type Instant struct {
	Event   int           // its number
	Labels  []string      // why it is shown
	Regions []InstantArea // in the order of the walk
	Chunks  []Cell        // in the order of the walk: the largest
	More    int           // chunks that are left out
	// RegionsMore are regions that are left out, with their chunks.
	RegionsMore int
}

// InstantArea is a region at an instant.
type InstantArea struct {
	device.Region
	Stream uint16       // of its first chunk in Trace.Streams, or OtherStream
	Pool   alloc.PoolID // private pool; zero is the default
}

// Cell is a chunk at an instant.
type Cell struct {
	Region    uint32      // in Instant.Regions
	Addr      device.Addr // first byte
	Size      device.Size // bytes
	Requested device.Size // bytes asked for, if it is in use
	ID        uint64      // of the allocation in the trace, if it is in use
	State     alloc.State // what it is
	Class     int32       // bin, order or size class; alloc.NoClass where it has none
	Tag       uint32      // in Trace.Tags
	Stream    uint16      // in Trace.Streams, or OtherStream
}

// moments are the events whose instants are wanted, with their labels.
type moments struct {
	events []int
	labels map[int][]string
}

func (m *moments) want(event int, label string) {
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
	m.want(r.run.Peaks[Reserved].Event, "peak reserved")
	m.want(r.run.Peaks[Requested].Event, "peak requested")
	if len(r.run.Failures) > 0 {
		m.want(r.run.Failures[0].Event, "first failure")
	}
	m.want(r.last, "end")
	for _, e := range r.o.Events {
		if e <= r.last {
			m.want(e, "chosen")
		}
	}
	slices.Sort(m.events)
	return m
}

// painter makes the raster and the instants of a run in a second replay.
type painter struct {
	follower
	trace    *Trace
	space    *Space
	raster   *raster
	wanted   *moments
	next     int // in wanted
	instants []Instant
}

// second returns what replays a second time.
func (r *collector) second() *painter {
	p := &painter{
		follower: follower{o: r.o}, trace: r.trace, space: &r.run.Space, wanted: r.moments(),
		raster: newRaster(r.trace.Grid.Events, r.run.Space.Bytes, r.o.Columns, r.o.Rows),
	}
	p.watch = follow.Watcher{
		Granted: func(e *trace.Event, b *follow.Block) {
			b.Note = int(r.trace.tagOf(e))
			p.raster.add(b.Born, p.space.Y(b.Addr), float64(b.Size), 1)
		},
		Gone: func(event int, b *follow.Block) { p.raster.add(event, p.space.Y(b.Addr), float64(b.Size), -1) },
	}
	return p
}

// event takes the state after an event if it is wanted.
func (p *painter) event(o *replay.Observation) error {
	p.tap.NewCalls()
	if p.next == len(p.wanted.events) || o.Event != p.wanted.events[p.next] {
		return nil
	}
	p.next++
	at := p.look(p.trace, o.Event)
	at.Labels = p.wanted.labels[o.Event]
	p.instants = append(p.instants, at)
	return nil
}

// look returns the state of the strategy. The note of a block is the number of its tag.
func (f *follower) look(t *Trace, event int) Instant {
	at := Instant{Event: event}
	blocks := map[device.Addr]*follow.Block{}
	for b := range f.blocks.Blocks {
		blocks[b.Addr] = b
	}
	var region device.Addr
	for c := range f.strategy.Walk {
		if n := len(at.Regions); n == 0 || region != c.Region {
			region = c.Region
			at.Regions = append(at.Regions, InstantArea{
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
