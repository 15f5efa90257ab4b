package torch

import (
	"bufio"
	"fmt"
	"io"
)

// Write writes a snapshot as a pickle of protocol 4 that Python, PyTorch's tools and its viewer can
// read. Equal snapshots give equal bytes.
//
// The viewer requires more than the format, which Write does not check: blocks tile their segments;
// the live blocks agree with the history; each free has both entries; if any entry has a category,
// at least one is "unknown"; addresses are below 1<<53.
//
// Precondition: devices are sorted by ordinal, and ordinals are below 4096.
func Write(w io.Writer, s *Snapshot) error {
	if err := writable(s); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	b := &writer{
		emitter: emitter{w: bufio.NewWriterSize(w, 1<<16), keys: map[string]uint32{}},
		s:       s,
		strings: make([]uint32, len(s.Strings)),
		frames:  make([]uint32, len(s.Frames)),
		stacks:  map[uint32]uint32{},
	}
	b.byte(0x80, 4)
	if err := b.snapshot(); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	b.byte('.')
	return b.w.Flush()
}

// writable checks the ordinals of the devices.
func writable(s *Snapshot) error {
	for i, d := range s.Devices {
		if d.Ordinal < 0 || d.Ordinal >= maxDevice || i > 0 && d.Ordinal <= s.Devices[i-1].Ordinal {
			return fmt.Errorf("device %d in place %d, want rising ordinals from 0 to %d", d.Ordinal, i, maxDevice-1)
		}
	}
	return nil
}

// writer writes a snapshot.
type writer struct {
	emitter

	s *Snapshot
	// Index in the memo, plus 1; 0 if not written yet.
	strings, frames []uint32
	stacks          map[uint32]uint32
}

func (b *writer) snapshot() error {
	b.dict()
	b.key("segments")
	b.segments()
	b.key("device_traces")
	b.traces()
	if len(b.s.Settings) > 0 {
		b.key("allocator_settings")
		if err := b.settings(); err != nil {
			return err
		}
	}
	b.key("external_annotations")
	b.annotations()
	b.endDict()
	return nil
}

func (b *writer) string(id uint32) {
	if index := b.strings[id]; index != 0 {
		b.get(index - 1)
		return
	}
	b.text(b.s.Strings[id])
	b.strings[id] = b.memoize() + 1
}

// stack writes a list of frames. Equal stacks are one list in the memo, as PyTorch writes them.
func (b *writer) stack(id uint32) {
	if index := b.stacks[id]; index != 0 {
		b.get(index - 1)
		return
	}
	b.list()
	for f := range b.s.Stack(id) {
		b.item()
		b.frame(f)
	}
	b.endList()
	b.stacks[id] = b.memoize() + 1
}

func (b *writer) frame(id uint32) {
	if index := b.frames[id]; index != 0 {
		b.get(index - 1)
		return
	}
	f := b.s.Frames[id]
	b.dict()
	b.key("filename")
	b.string(f.File)
	b.key("line")
	b.int(f.Line)
	b.key("name")
	b.string(f.Function)
	b.endDict()
	b.frames[id] = b.memoize() + 1
}

func (b *writer) segments() {
	b.list()
	for i := range b.s.Devices {
		d := &b.s.Devices[i]
		for j := range d.Segments {
			b.item()
			b.segment(d.Ordinal, &d.Segments[j])
		}
	}
	b.endList()
}

func (b *writer) segment(device int, s *Segment) {
	b.dict()
	b.key("device")
	b.int(int64(device))
	b.number("address", s.Addr)
	b.number("total_size", s.Total)
	b.number("allocated_size", s.Allocated)
	b.number("active_size", s.Active)
	b.number("requested_size", s.Requested)
	b.key("stream")
	b.int(s.Stream)
	b.key("segment_type")
	if s.Large {
		b.key("large")
	} else {
		b.key("small")
	}
	b.key("segment_pool_id")
	b.pool(s.Pool)
	b.key("is_expandable")
	b.bool(s.Expandable)
	b.key("frames")
	b.stack(s.Stack)
	b.key("blocks")
	b.list()
	for _, block := range s.Blocks {
		b.item()
		b.block(block)
	}
	b.endList()
	b.endDict()
}

func (b *writer) number(key string, x uint64) {
	b.key(key)
	b.uint(x)
}

func (b *writer) pool(pool [2]uint64) {
	b.uint(pool[0])
	b.uint(pool[1])
	b.byte(0x86)
}

// blockStates holds the names of the states in files.
var blockStates = [...]string{
	Inactive: "inactive", ActiveAllocated: "active_allocated", ActivePendingFree: "active_pending_free",
}

func (b *writer) block(block Block) {
	b.dict()
	b.number("address", block.Addr)
	b.number("size", block.Size)
	b.number("requested_size", block.Requested)
	b.key("state")
	b.key(blockStates[block.State])
	b.key("frames")
	b.stack(block.Stack)
	b.endDict()
}

// traces writes the histories, a list for each device up to the last.
func (b *writer) traces() {
	b.list()
	next := 0
	for i := range b.s.Devices {
		d := &b.s.Devices[i]
		for ; next < d.Ordinal; next++ {
			b.item()
			b.list()
			b.endList()
		}
		b.item()
		b.history(&d.History)
		next++
	}
	b.endList()
}

func (b *writer) history(h *History) {
	traced := false
	for i := 0; i < h.Len() && !traced; i++ {
		traced = h.At(i).Stack != 0
	}
	b.list()
	for i := range h.Len() {
		b.item()
		b.entry(h, h.At(i), traced)
	}
	b.endList()
}

func (b *writer) entry(h *History, e Entry, traced bool) {
	b.dict()
	b.key("action")
	b.key(e.Action.String())
	addr := "addr"
	if e.Action == ActionOOM {
		addr = "device_free"
	}
	b.number(addr, e.Addr)
	b.number("size", e.Size)
	b.key("stream")
	b.int(h.Streams[e.Stream])
	if e.Time != NoTime {
		b.key("time_us")
		b.int(e.Time)
	}
	if traced {
		b.key("frames")
		b.stack(e.Stack)
	}
	if e.Action == ActionConf {
		b.key("settings")
		b.text(h.Confs[e.Category])
	} else if e.Category != 0 {
		b.key("category")
		b.string(e.Category)
	}
	if h.Pools != nil {
		b.key("segment_pool_id")
		b.pool(h.Pools[e.Pool])
	}
	b.endDict()
}

func (b *writer) annotations() {
	b.list()
	for _, a := range b.s.Annotations {
		b.item()
		b.dict()
		b.key("name")
		b.string(a.Name)
		b.key("stage")
		if a.Start {
			b.key("START")
		} else {
			b.key("END")
		}
		b.key("device")
		b.int(int64(a.Device))
		if a.Time != NoTime {
			b.key("time_us")
			b.int(a.Time)
		}
		b.endDict()
	}
	b.endList()
}

func (b *writer) settings() error {
	b.dict()
	for _, set := range b.s.Settings {
		b.text(set.Key)
		if set.Text {
			b.text(set.Value)
			continue
		}
		if err := b.setting(set.Value); err != nil {
			return fmt.Errorf("setting %s: %w", set.Key, err)
		}
	}
	b.endDict()
	return nil
}
