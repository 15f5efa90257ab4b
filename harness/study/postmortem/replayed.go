package postmortem

import (
	"errors"
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

// FirstOOM selects the first request that runs out of memory as [Options].Event.
const FirstOOM = -1

// Options select the request to explain.
type Options struct {
	// index of a request, or of a refusal of the recorded program; or FirstOOM
	Event  int
	FreeAt replay.FreeAt // as in [replay.Options]
	// returns the stack of an allocation, innermost frame first; nil: unknown
	Stacks func(id uint64) []string
	Device func() (device.Device, error) // returns a new device; called several times
	// called every stepEvents events; an error ends the replay; may be nil
	Step func(event int) error
}

// Outcome is the outcome of the request.
type Outcome string

// The outcomes.
const (
	Granted  Outcome = "granted"
	Refused  Outcome = "refused"    // out of memory
	Invalid  Outcome = "invalid"    // the strategy never grants such a request
	NotBuilt Outcome = "not built"  // the device is too small for the strategy
	NoOOM    Outcome = "no refusal" // with FirstOOM: no request ran out of memory
)

// Schema is the schema of a [Verdict] in JSON.
const Schema = "vramyard-postmortem/1"

// Verdict is a strategy's response to a request of a trace. Sizes are bytes, times nanoseconds.
type Verdict struct {
	Schema     string           `json:"schema"`               // the constant Schema
	Provenance provenance.Build `json:"provenance"`           // the program, set by the caller
	Trace      string           `json:"trace"`                // name of the trace
	Hash       string           `json:"trace_sha256"`         // hash of the decompressed trace
	Config     any              `json:"config"`               // configuration of the strategy
	Strategy   string           `json:"strategy"`             // name and preset
	Outcome    Outcome          `json:"outcome"`              // the outcome
	Event      int              `json:"event"`                // index of the request; -1: none
	ID         uint64           `json:"id"`                   // allocation ID
	Size       device.Size      `json:"requested_bytes"`      // requested
	Stream     device.Stream    `json:"stream"`               // of the request
	Before     int              `json:"refused_before_count"` // earlier requests that ran out of memory
	// failed requests of the whole trace, set by the caller
	Failures int         `json:"refused_count,omitempty"`
	Took     device.Size `json:"taken_bytes"`      // additional memory reserved
	Gave     device.Size `json:"given_back_bytes"` // memory released
	Held     device.Size `json:"reserved_bytes"`   // reserved afterwards
	Calls    uint64      `json:"device_calls"`     // driver calls
	Time     uint64      `json:"device_time_ns"`   // their time by the cost model
	Report   *Report     `json:"report,omitempty"` // if refused: the explanation
}

// Replay replays a trace through a strategy up to a request and reports the outcome. If it ran out
// of memory, the report is tested: the named blocks are freed and the request is repeated. Plans
// that work come first, plans that failed are marked.
//
// Errors: the event is not a request, a replay fails, or Options.Device fails.
func Replay(p *replay.Prepared, setup setting.Setup, o Options) (*Verdict, error) {
	at := moment{p: p, setup: setup, o: o}
	if err := at.find(); err != nil {
		return nil, err
	}
	head := p.Head().Header
	v := &Verdict{Schema: Schema, Trace: head.Name, Hash: head.Hash, Config: setup.Config, Strategy: setup.Name,
		Event: o.Event}
	err := at.reach()
	switch {
	case errors.Is(err, device.ErrOutOfMemory) && at.s == nil:
		v.Outcome = NotBuilt
		return v, nil
	case err != nil:
		return nil, err
	case at.s == nil:
		v.Outcome = NoOOM
		return v, nil
	}
	at.fill(v)
	if v.Outcome != Refused {
		return v, nil
	}
	who, pool, err := at.look()
	if err != nil {
		return nil, err
	}
	heap := at.heap()
	v.Report = Explain(heap, at.need(heap, pool), who)
	v.Report.Requester = &at.requester
	return v, at.prove(v.Report)
}

// moment is a replay stopped at a request.
type moment struct {
	p     *replay.Prepared
	setup setting.Setup
	o     Options
	event int // requested or found

	s         alloc.Strategy
	faults    *device.Faults
	request   alloc.Request
	ids       map[device.Addr]uint64 // IDs of the last allocations granted, by address
	requester Owner                  // owner of the request, if known so far
	err       error
	usage     device.Usage // before the request
	refused   int          // earlier requests that ran out of memory

	granted func(replay.Observation) // is called for each grant; nil for nothing
}

// stepEvents is the number of events between calls of Options.Step.
const stepEvents = 1 << 14

// errReached ends a replay at the request.
var errReached = errors.New("reached the request")

func (m *moment) find() error {
	m.event = m.o.Event
	if m.event == FirstOOM {
		return nil
	}
	e, err := m.eventAt(m.event)
	if err != nil {
		return err
	}
	switch e.Kind {
	case trace.Alloc, trace.LiveAtStart, trace.Refused:
		return nil
	}
	return fmt.Errorf("event %d: %v: want a request", m.event, e.Kind)
}

func (m *moment) eventAt(event int) (e trace.Event, err error) {
	head := m.p.Head()
	if event < 0 || event >= head.Events {
		return e, fmt.Errorf("event %d: %s has %d events", event, head.Header.Name, head.Events)
	}
	at := 0
	err = m.p.Source().Batches(func(events []trace.Event) error {
		if event < at+len(events) {
			e = events[event-at]
			return errReached
		}
		at += len(events)
		return nil
	})
	if errors.Is(err, errReached) {
		err = nil
	}
	return e, err
}

// reach replays up to the request. s stays nil if it does not exist. The strategy is abandoned with
// its device, without Close.
func (m *moment) reach() error {
	dev, err := m.o.Device()
	if err != nil {
		return err
	}
	m.s, m.refused, m.ids = nil, 0, map[device.Addr]uint64{}
	_, err = m.p.Run(m.setup, dev, replay.Options{FreeAt: m.o.FreeAt, Observe: m.observe})
	if errors.Is(err, errReached) {
		err = nil
	}
	return err
}

func (m *moment) observe(o replay.Observation) error {
	if o.Panic != nil {
		return fmt.Errorf("event %d: the strategy panicked: %v", o.Event, o.Panic)
	}
	if o.Strategy == nil || o.Event >= m.p.Head().Events {
		return nil
	}
	if m.o.Step != nil && o.Event >= 0 && o.Event%stepEvents == 0 {
		if err := m.o.Step(o.Event); err != nil {
			return err
		}
	}
	refused := o.Called && o.Request.Size > 0 && errors.Is(o.Err, alloc.ErrOutOfMemory)
	if o.Request.Size > 0 && o.Err == nil {
		m.ids[o.Block.Addr] = o.Request.ID
		if m.granted != nil {
			m.granted(o)
		}
	}
	if o.Event >= 0 && o.Event == m.event || m.event == FirstOOM && refused {
		m.event, m.s, m.faults = o.Event, o.Strategy, o.Faults
		m.request, m.err = o.Request, o.Err
		return errReached
	}
	if refused {
		m.refused++
	}
	m.usage = o.Faults.Usage()
	return nil
}

func (m *moment) fill(v *Verdict) {
	now := m.faults.Usage()
	v.Event, v.ID, v.Size, v.Stream, v.Before = m.event, m.request.ID, m.request.Size, m.request.Stream, m.refused
	v.Held, v.Calls, v.Time = now.Held, now.Calls.Total()-m.usage.Calls.Total(), now.Time-m.usage.Time
	if now.Held > m.usage.Held {
		v.Took = now.Held - m.usage.Held
	} else {
		v.Gave = m.usage.Held - now.Held
	}
	switch {
	case m.err == nil:
		v.Outcome = Granted
	case errors.Is(m.err, alloc.ErrOutOfMemory):
		v.Outcome = Refused
	default:
		v.Outcome = Invalid
	}
}

// heap returns the memory of the strategy, tagged with allocation IDs.
func (m *moment) heap() *Heap {
	h := &Heap{}
	for c := range m.s.Walk {
		if inUse(&c) {
			c.Tag = m.ids[c.Addr]
		}
		h.Chunks = append(h.Chunks, c)
	}
	u, s := m.faults.Usage(), m.s.Stats()
	h.Capacity = u.Capacity
	if u.Capacity > 0 {
		free := u.Free()
		h.DeviceFree = &free
	}
	if s.Limit > 0 {
		left := s.Limit - min(s.Limit, s.Reserved)
		if h.DeviceFree == nil || left < *h.DeviceFree {
			h.DeviceFree = &left
		}
	}
	return h
}

func (m *moment) need(h *Heap, pool alloc.PoolID) Need {
	p := m.setup.Promises
	n := Need{Request: m.request, Pool: pool, Returns: power.Has(m.s, power.PowerTrimmer), Fits: fitsOf(p)}
	if why, ok := power.LastRefusal(m.s); ok {
		n.Segment = why.Asked
	}
	if power.Has(m.s, power.PowerCounted) {
		n.PageOf = torchPages(p)
	} else {
		n.PageOf = pagesOf(p, h, m.faults)
	}
	n.Block = leastBlock(&n, p)
	n.grow(h)
	if m.request.Align > p.Quantum {
		n.Align = m.request.Align
	}
	if keepsBuddies(p) && n.Block&(n.Block-1) == 0 {
		n.Align = max(n.Align, n.Block)
	}
	return n
}

// look scans the trace up to the request. It returns the owners of the current blocks, and the
// private pool of the request.
func (m *moment) look() (OwnerLookup, alloc.PoolID, error) {
	owners := map[uint64]Owner{}
	for c := range m.s.Walk {
		if inUse(&c) {
			owners[m.ids[c.Addr]] = Owner{}
		}
	}
	var pools []trace.Event // redirections
	src := m.p.Source()
	at := 0
	err := src.Batches(func(events []trace.Event) error {
		for i := range events {
			e := &events[i]
			if at == m.event {
				m.requester = m.owner(src, e, at)
				return errReached
			}
			switch e.Kind {
			case trace.Alloc, trace.LiveAtStart:
				if _, there := owners[e.ID]; there {
					owners[e.ID] = m.owner(src, e, at)
				}
			case trace.PoolBegin:
				pools = append(pools, *e)
			case trace.PoolEnd:
				if k := slices.IndexFunc(pools, func(p trace.Event) bool { return p.Arg == e.Arg }); k >= 0 {
					pools = slices.Delete(pools, k, k+1)
				}
			}
			at++
		}
		return nil
	})
	if err != nil && !errors.Is(err, errReached) {
		return nil, 0, err
	}
	return func(tag uint64) Owner { return owners[tag] }, m.pool(pools), nil
}

func (m *moment) owner(src trace.Source, e *trace.Event, at int) Owner {
	o := Owner{Known: true, ID: e.ID, Born: at, Age: m.event - at, Tag: src.TagOf(e)}
	if o.Tag == trace.RoundedTag { // it marks a rounded size
		o.Tag = ""
	}
	if e.Kind == trace.LiveAtStart {
		o.Born = -1
	}
	if m.o.Stacks != nil {
		o.Stack = m.o.Stacks(e.ID)
	}
	return o
}

// pool returns the private pool of the request, or 0.
func (m *moment) pool(begun []trace.Event) (id alloc.PoolID) {
	if !power.Has(m.s, power.PowerPrivatePools) {
		return 0
	}
	for _, p := range begun {
		if p.Stream != m.request.Stream && p.Stream != power.AllStreams {
			continue
		}
		id = alloc.PoolID(p.Arg)
		if !m.setup.Promises.LastPoolFirst {
			break
		}
	}
	return id
}

// prove tests plans until one works: it frees the blocks and repeats the request. Each further plan
// needs a new replay. Plans with pending blocks are not tested.
func (m *moment) prove(r *Report) error {
	for i := range r.Plans {
		p := &r.Plans[i]
		if p.Waits > 0 {
			continue
		}
		if m.s == nil {
			if err := m.reach(); err != nil {
				return err
			}
		}
		ok, err := m.try(p)
		if err != nil {
			return err
		}
		p.Proven = &ok
		m.s = nil
		if ok {
			break
		}
	}
	slices.SortStableFunc(r.Plans, func(a, b Plan) int { return a.doubt() - b.doubt() })
	return nil
}

func (m *moment) try(p *Plan) (bool, error) {
	for _, b := range p.Blocks {
		if err := m.s.Free(b.Addr); err != nil {
			return false, fmt.Errorf("free of the live block at %v: %w", b.Addr, err)
		}
	}
	_, err := m.s.Alloc(m.request)
	return err == nil, nil
}

// doubt orders plans: tested successfully, untested, failed.
func (p *Plan) doubt() int {
	switch {
	case p.Proven == nil:
		return 1
	case *p.Proven:
		return 0
	}
	return 2
}
