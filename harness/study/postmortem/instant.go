package postmortem

import (
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
)

// InstantSchema is the schema of an [Instant] in JSON.
const InstantSchema = "vramyard-instant/1"

// Instant is the heap of a strategy after an event of a trace: every chunk, or one with its
// neighbors. Sizes are bytes.
type Instant struct {
	Schema     string           `json:"schema"`       // the constant InstantSchema
	Provenance provenance.Build `json:"provenance"`   // the program, set by the caller
	Trace      string           `json:"trace"`        // name of the trace
	Hash       string           `json:"trace_sha256"` // hash of the decompressed trace
	Strategy   string           `json:"strategy"`     // name and preset
	Config     any              `json:"config"`       // configuration of the strategy
	Event      int              `json:"event"`        // index of the event

	Stats  alloc.Stats `json:"-"`      // counters of the strategy
	Chunks []Part      `json:"chunks"` // by address
	// with an address: the chunks that began there before, newest last
	History []Earlier `json:"history,omitempty"`
}

// Part is a chunk of an [Instant].
type Part struct {
	alloc.Chunk `json:"-"`

	Region    device.Addr   `json:"region"`                  // start of its region
	Addr      device.Addr   `json:"address"`                 // first byte
	State     string        `json:"state"`                   // free, live, pending and so on
	Asked     bool          `json:"asked,omitempty"`         // it contains the address that was asked for
	Requested device.Size   `json:"requested_bytes"`         // TensorFlow's RequestedSize
	Allocated device.Size   `json:"allocated_bytes"`         // TensorFlow's AllocatedSize
	ID        uint64        `json:"allocation_id,omitempty"` // TensorFlow's AllocationId; 0 unless live
	Class     int32         `json:"class"`                   // bin or size class, -1 for none
	Stream    device.Stream `json:"stream"`                  // of the request
	Owner     *Owner        `json:"owner,omitempty"`         // of a block
	Step      string        `json:"step,omitempty"`          // mark of the step of its request
	Operation string        `json:"operation,omitempty"`     // tag of its request in the trace
}

// Earlier is a block that began at an address before.
type Earlier struct {
	Event     int         `json:"event"`           // of its request
	ID        uint64      `json:"allocation_id"`   // number of the grant, from 1
	Requested device.Size `json:"requested_bytes"` // requested
	Allocated device.Size `json:"allocated_bytes"` // granted
}

// Query selects what an [Instant] shows.
type Query struct {
	Address device.Addr // only the chunk that contains it, and its neighbors; 0: every chunk
	History int         // last blocks at the address
}

// At replays a trace up to Options.Event and returns the heap after it. The event need not be a
// request. With FirstOOM, if no request runs out of memory, it is the last event.
//
// Errors: there is no such event or chunk, a replay fails, or Options.Device fails.
func At(p *replay.Prepared, setup setting.Setup, o Options, q Query) (*Instant, error) {
	m := moment{p: p, setup: setup, o: o, event: o.Event}
	if o.Event != FirstOOM {
		if _, err := m.eventAt(o.Event); err != nil {
			return nil, err
		}
	}
	grants, serials := uint64(0), map[device.Addr]uint64{}
	head := p.Head().Header
	v := &Instant{Schema: InstantSchema, Trace: head.Name, Hash: head.Hash, Strategy: setup.Name, Config: setup.Config}
	m.granted = func(o replay.Observation) {
		grants++
		serials[o.Block.Addr] = grants
		if o.Block.Addr == q.Address && q.History > 0 {
			v.History = append(v.History, Earlier{o.Event, grants, o.Request.Size, o.Block.Size})
			v.History = v.History[max(0, len(v.History)-q.History):]
		}
	}
	err := m.reach()
	if err == nil && m.s == nil { // no request was refused
		m.event, grants, v.History = p.Head().Events-1, 0, nil
		err = m.reach()
	}
	if err != nil {
		return nil, err
	}
	if m.s == nil {
		return nil, fmt.Errorf("%s: %s has no events", setup.Name, head.Name)
	}
	v.Event = m.event
	m.event++ // to look at the event itself, too
	owners, _, err := m.look()
	if err != nil {
		return nil, err
	}
	steps, err := trace.Steps(p.Source())
	if err != nil {
		return nil, err
	}
	v.Stats = m.s.Stats()
	for c := range m.s.Walk {
		v.Chunks = append(v.Chunks, m.part(c, serials, owners, steps))
	}
	return v, v.narrow(m.s, q)
}

// part describes a chunk.
func (m *moment) part(c alloc.Chunk, serials map[device.Addr]uint64, owners OwnerLookup, steps []trace.Step) Part {
	x := Part{Chunk: c, Region: c.Region, Addr: c.Addr, State: c.State.String(), Requested: c.Requested,
		Allocated: c.Size, ID: c.ID, Class: c.Class, Stream: c.Stream}
	if !inUse(&c) {
		return x
	}
	if x.ID == 0 && c.State == alloc.Live {
		x.ID = serials[c.Addr]
	}
	owner := owners(m.ids[c.Addr])
	x.Owner, x.Operation = &owner, owner.Tag
	for _, s := range steps {
		if s.First <= owner.Born && owner.Born < s.End {
			x.Step = s.Name
		}
	}
	return x
}

// narrow keeps the chunk that contains the address of a query, and its neighbors in the region. It
// takes the sizes of a block from the strategy's own answer.
func (v *Instant) narrow(s alloc.Inspector, q Query) error {
	if q.Address == 0 {
		return nil
	}
	i := slices.IndexFunc(v.Chunks, func(x Part) bool { return q.Address >= x.Addr && q.Address < x.End() })
	if i < 0 {
		return fmt.Errorf("event %d: no chunk contains address %v", v.Event, q.Address)
	}
	x := &v.Chunks[i]
	x.Asked = true
	if c, err := power.BlockAt(s, x.Addr); err == nil {
		x.Requested, x.Allocated = c.Requested, c.Size
	}
	from, to := i, i+1
	if i > 0 && v.Chunks[i-1].Region == x.Region {
		from--
	}
	if to < len(v.Chunks) && v.Chunks[to].Region == x.Region {
		to++
	}
	v.Chunks = v.Chunks[from:to]
	return nil
}
