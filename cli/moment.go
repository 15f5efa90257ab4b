package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/inspect"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/postmortem"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
)

// errSeen ends a replay whose state was taken.
var errSeen = errors.New("the state was taken")

// moment takes the state of a strategy in a replay: after one event, or else after the first
// request that finds no memory, or at the end.
type moment struct {
	wanted, last int    // the event of --at, negative for none, and the last event of the trace
	event        int    // the event of the state
	refused      bool   // its request found no memory
	name         string // of the strategy
	state        inspect.MemoryMap

	actions uint64                           // allocations and frees so far
	grants  map[device.Addr]uint64           // number of the action that granted each live block
	history [formats.DumpHistory]device.Size // bytes in use after the last actions, each at its number
}

// addMoment adds the flags of the state at one event.
func (f *replayFlags) addMoment(c *cobra.Command) {
	f.files.add(c, "memory-map",
		`write the state as TensorFlow's MemoryDump, a protocol buffer, to this file, "-" for standard output`)
	f.files.add(c, "bins",
		`write the free chunks as TensorFlow's 21 bins, a column for each, to this file, "-" for standard output`).text = true
	chunks := f.files.add(c, "chunks",
		`write every chunk with its request, step and operation to this file, as JSON if it ends in .json, "-" for standard output`)
	chunks.text, chunks.words = true, true
	c.Flags().StringVar(&f.address, "address", "",
		`show only the chunk at this address, such as "0x7f0000000000", and its neighbors; without --chunks on standard output`)
	c.Flags().IntVar(&f.history, "history", 0, "show this many of the last blocks that began at --address")
	c.Flags().IntVar(&f.at, "at", -1,
		"event after which --memory-map, --bins, --chunks and --html take the state, counted from 0; the default -1 is the "+
			"first request that finds no memory, or else the end")
}

func (f *replayFlags) wantsState() bool {
	return f.files.wanted("memory-map") || f.files.wanted("bins") || f.files.wanted("chunks")
}

// judgeMoment checks the flags of the state.
func (f *replayFlags) judgeMoment() error {
	if f.address != "" {
		chunks := f.files.of("chunks")
		chunks.path = cmp.Or(chunks.path, "-")
		if _, err := f.query(); err != nil {
			return flagError("address", err)
		}
	}
	switch {
	case f.history < 0:
		return flagError("history", fmt.Errorf("%d: want a number of blocks", f.history))
	case f.history > 0 && f.address == "":
		return flagError("history", errors.New("needs --address"))
	case f.at < -1:
		return flagError("at", fmt.Errorf("event %d: want the number of an event, from 0 on", f.at))
	case f.at >= 0 && !f.wantsState() && !f.files.wanted("html"):
		return flagError("at", errors.New("needs --memory-map, --bins, --chunks, --address or --html"))
	}
	return nil
}

// takeState replays once more for the flags of [replayFlags.addMoment].
func (f *replayFlags) takeState(p *replay.Prepared, t trace.Source, setup setting.Setup, cfg sim.Config,
	o replay.Options) error {
	h := t.Head()
	if f.at >= h.Events {
		return flagError("at", fmt.Errorf("event %d: %s has %d events, counted from 0", f.at, h.Header.Name, h.Events))
	}
	if !f.wantsState() {
		return nil
	}
	dev, err := sim.New(cfg)
	if err != nil {
		return err
	}
	m := &moment{wanted: f.at, last: h.Events - 1, name: setup.Name, grants: map[device.Addr]uint64{}}
	o = replay.Options{FreeAt: o.FreeAt, StopAtOOM: o.StopAtOOM, Watch: o.Watch, Observe: m.observe}
	if _, err := p.Run(setup, dev, o); err != nil && !errors.Is(err, errSeen) {
		return err
	}
	if err := f.takeChunks(p, t, setup, cfg, o); err != nil {
		return err
	}
	f.files.of("memory-map").fill = func(w io.Writer) error {
		return formats.WriteMemoryDump(w, &m.state, m.extras(p.Tag))
	}
	f.files.of("bins").fill = func(w io.Writer) error {
		return report.Bins(w, m.where(h.Header.Name), &m.state)
	}
	return nil
}

// query returns what --address and --history select.
func (f *replayFlags) query() (q postmortem.Query, err error) {
	if f.address == "" {
		return q, nil
	}
	n, err := strconv.ParseUint(f.address, 0, 64)
	if err != nil || n == 0 {
		return q, fmt.Errorf("%q: want an address such as 0x7f0000000000", f.address)
	}
	return postmortem.Query{Address: device.Addr(n), History: f.history}, nil
}

// takeChunks replays once more for --chunks and --address.
func (f *replayFlags) takeChunks(p *replay.Prepared, t trace.Source, setup setting.Setup, cfg sim.Config,
	o replay.Options) error {
	if !f.files.wanted("chunks") {
		return nil
	}
	q, err := f.query()
	if err != nil {
		return err
	}
	at := postmortem.Options{
		Event: f.at, FreeAt: o.FreeAt, Step: o.Watch, Device: func() (device.Device, error) { return sim.New(cfg) },
	}
	if stacks := f.allocationStacks[t]; stacks != nil {
		at.Stacks = stacks.Places
	}
	v, err := postmortem.At(p, setup, at, q)
	if err != nil {
		return err
	}
	v.Provenance = provenance.Read()
	f.files.of("chunks").fill = func(w io.Writer) error {
		if endingOf(f.files.of("chunks").path) == ".json" {
			return encodeJSON(w, v)
		}
		return report.PostmortemInstant(w, v)
	}
	return nil
}

// observe follows a replay and takes the state. An event may be observed twice; the last time
// counts.
func (m *moment) observe(o replay.Observation) error {
	over := o.Event > m.last || m.wanted >= 0 && o.Event > m.wanted
	if over && m.state.Bins != nil {
		return errSeen
	}
	if o.Strategy == nil || over {
		return nil
	}
	if o.Of != nil && o.Called {
		m.follow(o)
	}
	m.refused = errors.Is(o.Err, alloc.ErrOutOfMemory)
	if o.Event == m.wanted || m.wanted < 0 && (m.refused || o.Event == m.last) {
		m.event, m.state = o.Event, inspect.MapOf(o.Strategy, m.name)
	}
	if m.wanted < 0 && m.refused {
		return errSeen
	}
	return nil
}

// follow numbers allocations and frees, and keeps the bytes in use after the last of them.
func (m *moment) follow(o replay.Observation) {
	switch granted := o.Block != (alloc.Block{}); {
	case o.Err != nil:
		return
	case granted:
		m.actions++
		m.grants[o.Block.Addr] = m.actions
	case o.Addr != 0 && o.Of.Kind != trace.Use:
		m.actions++
		delete(m.grants, o.Addr)
	default:
		return
	}
	m.history[m.actions%formats.DumpHistory] = o.Strategy.Stats().Allocated
}

// extras returns the rest of a MemoryDump.
func (m *moment) extras(op func(tag uint64) string) formats.DumpExtras {
	x := formats.DumpExtras{Op: op, Actions: m.grants, First: 1}
	if m.actions > formats.DumpHistory {
		x.First = m.actions - formats.DumpHistory + 1
	}
	for n := x.First; n <= m.actions; n++ {
		x.History = append(x.History, m.history[n%formats.DumpHistory])
	}
	return x
}

// where describes the state.
func (m *moment) where(name string) string {
	if m.refused {
		return fmt.Sprintf("%s on %s after event %d, which found no memory", m.name, name, m.event)
	}
	return fmt.Sprintf("%s on %s after event %d", m.name, name, m.event)
}
