package wrap

import (
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// flow is a stream with requests. Its frees are numbered. A stream that is ordered after a free is
// ordered after all earlier ones.
type flow struct {
	stream device.Stream
	frees  uint64       // the last free
	done   uint64       // last free that is known to have finished
	event  device.Event // recorded after the free with the number marked; none if that is 0
	marked uint64
	passed []uint64 // by flow: its last free that this stream was made to wait for
}

// freedRange is a freed range of memory. Its address is the key in flows.ranges.
type freedRange struct {
	size device.Size
	flow int32  // stream of the request
	free uint64 // number of the last free in it
}

// flows records which stream freed which memory, and makes streams wait for each other. Memory
// outside of the freed ranges was never freed, or by the first stream before there was a second.
type flows struct {
	streams device.Streams
	all     []flow // by first use
	index   map[device.Stream]int32
	ranges  index.AddrList[freedRange]
	first   uint64   // last free of the first stream before there was a second
	waitFor []uint64 // by flow: the free to wait for
}

// flowOf returns the flow of a stream, and creates it on first use.
func (f *flows) flowOf(s device.Stream) int32 {
	if len(f.all) > 0 && f.all[0].stream == s {
		return 0 // most programs have only one
	}
	i, ok := f.index[s]
	if !ok {
		i = int32(len(f.all))
		f.all = append(f.all, flow{stream: s})
		f.index[s] = i
		f.waitFor = append(f.waitFor, 0)
		for k := range f.all {
			f.all[k].passed = append(f.all[k].passed, make([]uint64, len(f.all)-len(f.all[k].passed))...)
		}
		if i == 1 {
			f.first = f.all[0].frees
		}
	}
	return i
}

// freed records that a block of a flow is free. byRange has the meaning of order.
func (f *flows) freed(i int32, b alloc.Block, byRange bool) {
	w := &f.all[i]
	w.frees++
	if len(f.all) == 1 || !byRange {
		return
	}
	f.cut(b)
	r := freedRange{size: b.Size, flow: i, free: w.frees}
	p, _ := f.ranges.Search(b.Addr)
	if next := f.ranges.Above(p); f.ranges.Holds(next) {
		if e := f.ranges.Entry(next); e.Addr == b.Addr.Add(b.Size) && e.Value.flow == i {
			r.size += e.Value.size
			f.ranges.Delete(next)
			p, _ = f.ranges.Search(b.Addr)
		}
	}
	if e, ok := f.ranges.Below(p); ok && e.Addr.Add(e.Value.size) == b.Addr && e.Value.flow == i {
		r.size += e.Value.size
		e.Value = r
		p, _ = f.ranges.Search(e.Addr)
		f.ranges.Set(p, e)
		return
	}
	f.ranges.Insert(p, index.AddrEntry[freedRange]{Addr: b.Addr, Value: r})
}

// order makes new work on the stream of a flow run after all work that may still use the memory of
// a block that was just granted. Without byRange, the block may have any freed memory.
func (f *flows) order(i int32, b alloc.Block, byRange bool) error {
	if len(f.all) == 1 {
		return nil
	}
	if byRange {
		clear(f.waitFor)
		f.waitFor[0] = f.first
		f.overlap(b, func(r freedRange) { f.waitFor[r.flow] = max(f.waitFor[r.flow], r.free) })
	} else {
		for k := range f.all {
			f.waitFor[k] = f.all[k].frees
		}
	}
	for k := range f.all {
		if f.follow(i, int32(k), f.waitFor[k]) == nil {
			continue
		}
		// If no mark can be recorded, synchronize.
		if err := f.streams.SyncDevice(); err != nil {
			return err
		}
		f.allDone()
		break
	}
	if byRange {
		f.cut(b)
	}
	return nil
}

// follow makes the stream of flow i wait for a free of flow k.
func (f *flows) follow(i, k int32, free uint64) error {
	w, o := &f.all[i], &f.all[k]
	if i == k || free <= w.passed[k] || free <= o.done {
		return nil
	}
	if o.marked >= free {
		done, err := f.streams.Done(o.event)
		if err != nil {
			return err
		}
		if done {
			o.done = o.marked
			return nil
		}
	} else if err := f.mark(o); err != nil {
		return err
	}
	if err := f.streams.Wait(w.stream, o.event); err != nil {
		return err
	}
	w.passed[k] = o.marked
	return nil
}

// mark records the event of a flow after all its frees.
func (f *flows) mark(o *flow) (err error) {
	if o.event == 0 {
		if o.event, err = f.streams.NewEvent(); err != nil {
			return err
		}
	}
	if err = f.streams.Record(o.event, o.stream); err != nil {
		return err
	}
	o.marked = o.frees
	return nil
}

// allDone records that all work has finished.
func (f *flows) allDone() {
	for k := range f.all {
		f.all[k].done = f.all[k].frees
	}
	f.ranges.Clear()
}

// overlap calls visit with every freedRange that shares bytes with a block.
func (f *flows) overlap(b alloc.Block, visit func(freedRange)) {
	end := b.Addr.Add(b.Size)
	p, ok := f.ranges.Floor(b.Addr)
	if ok && f.ranges.Entry(p).Addr.Add(f.ranges.Entry(p).Value.size) <= b.Addr {
		p = f.ranges.Next(p)
	}
	for p = f.ranges.Above(p); f.ranges.Holds(p) && f.ranges.Entry(p).Addr < end; p = f.ranges.Next(p) {
		visit(f.ranges.Entry(p).Value)
	}
}

// cut removes the bytes of a block from the freed ranges.
func (f *flows) cut(b alloc.Block) {
	end := b.Addr.Add(b.Size)
	f.split(end)
	f.split(b.Addr)
	p, _ := f.ranges.Search(b.Addr)
	for p = f.ranges.Above(p); f.ranges.Holds(p) && f.ranges.Entry(p).Addr < end; {
		p = f.ranges.Above(f.ranges.Delete(p))
	}
}

// split splits a freedRange that has bytes on both sides of an address.
func (f *flows) split(at device.Addr) {
	p, ok := f.ranges.Floor(at)
	if !ok {
		return
	}
	e := f.ranges.Entry(p)
	n := at.Sub(e.Addr)
	if n == 0 || n >= e.Value.size {
		return
	}
	upper := e.Value
	upper.size -= n
	e.Value.size = n
	f.ranges.Set(p, e)
	p, _ = f.ranges.Search(at)
	f.ranges.Insert(p, index.AddrEntry[freedRange]{Addr: at, Value: upper})
}

// close destroys the events. Refused events stay; the error is the first refusal.
func (f *flows) close() (first error) {
	for k := range f.all {
		o := &f.all[k]
		if o.event == 0 {
			continue
		}
		if err := f.streams.DestroyEvent(o.event); err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		o.event, o.marked = 0, 0
	}
	return first
}

func (f *flows) bytes() (n device.Size) {
	const flowBytes, wordBytes, valueBytes = 64, 8, 24
	for k := range f.all {
		n += flowBytes + device.Size(cap(f.all[k].passed))*wordBytes
	}
	return n + device.Size(cap(f.waitFor))*wordBytes + f.ranges.Bytes(valueBytes)
}

// spares keeps events for reuse.
type spares struct {
	streams device.Streams
	events  []device.Event
}

// record returns an event after the work queued on a stream.
func (s *spares) record(on device.Stream) (device.Event, error) {
	if len(s.events) == 0 {
		e, err := s.streams.NewEvent()
		if err != nil {
			return 0, err
		}
		s.events = append(s.events, e)
	}
	last := len(s.events) - 1
	e := s.events[last]
	if err := s.streams.Record(e, on); err != nil {
		return 0, err
	}
	s.events = s.events[:last]
	return e, nil
}

func (s *spares) close() (first error) {
	s.events = slices.DeleteFunc(s.events, func(e device.Event) bool {
		err := s.streams.DestroyEvent(e)
		if err != nil && first == nil {
			first = err
		}
		return err == nil
	})
	return first
}
