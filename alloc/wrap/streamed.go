package wrap

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// streamed is a strategy with the wrapper of [Streamed].
type streamed struct {
	Forwarder
	guard *guard
	flows flows
	spare spares

	index index.AddrMap
	rows  []grant // by handle, rows[0] is unused
	free  []uint32
	at    index.AddrOf

	queues   []uses   // by stream that was recorded
	retry    []uint32 // pending blocks with unmarked streams, or whose free failed
	retrying []uint32 // buffer that is exchanged with retry
	pending  int      // number of pending blocks

	stats   alloc.Stats // counters of requests and blocks; the others come from the strategy
	refusal power.Refusal
	refused bool // the last refusal was made here
	closed  bool
}

// grant is a block that is live or pending, as the strategy granted it. The caller's reference is
// the handle of the row. The block of an idle row is zero.
type grant struct {
	alloc.Block
	requested device.Size
	flow      int32           // flow of the request's stream
	waits     int32           // number of marks that are not known to be done
	freed     bool            // the block is pending
	used      []device.Stream // recorded streams that are not marked yet
}

// uses are the marks of one stream for pending blocks, oldest first.
type uses struct {
	stream device.Stream
	marks  []use
	first  int // the marks before it are done
}

// use is an event after the use of a pending block.
type use struct {
	event device.Event
	block uint32
}

// Streamed builds a strategy over dev and makes it safe for programs with several streams, by
// PyTorch's rules. Memory freed by a stream is usable at once by requests of the same stream.
// Before it is granted to another stream, that stream waits on the device for the work that the
// first had queued, unless that is known to be done. The host never waits. The strategy byRange
// blocks as without streams.
//
// The result is a [power.StreamRecorder] and a [power.Poller]. A freed block with recorded streams
// is pending until they have passed the free. Every call polls, and a request that finds no memory
// waits for pending blocks and is retried once. Memory is unmapped and released only after all work
// has finished. For a strategy with aliases, waits cover all memory freed by other streams, at any
// address.
//
// A strategy that already is a StreamRecorder is returned unchanged. Streamed fails if the strategy
// cannot be built, or dev has no streams. A request fails with [alloc.ErrOutOfMemory] if the device
// refuses to mark a stream for it. In addition to the strategy's cost, a call takes a look-up by
// address, and O(streams) once there are two. Once warm, nothing is allocated on the heap.
func Streamed(dev device.Device, build func(device.Source) (alloc.Strategy, error)) (alloc.Strategy, error) {
	streams, ok := device.StreamsOf(dev)
	if !ok {
		return nil, errors.New("alloc: Streamed over a device without streams")
	}
	s := &streamed{
		flows: flows{streams: streams, index: map[device.Stream]int32{}},
		spare: spares{streams: streams},
		index: index.NewAddrMap(),
		rows:  make([]grant, 1),
	}
	s.at = func(h uint32) device.Addr { return s.rows[h].Addr }
	s.guard = newGuard(dev, streams, s.flows.allDone)
	inner, err := build(s.guard)
	if err != nil {
		return nil, err
	}
	if power.Has(inner, power.PowerStreamRecorder) {
		s.guard.open = true
		return inner, nil
	}
	s.Forwarder = Forward(inner, nil)
	return s, nil
}

func (s *streamed) Alloc(r alloc.Request) (alloc.Block, error) {
	b, err := s.inner.Alloc(r)
	if err != nil && s.pending > 0 && errors.Is(err, alloc.ErrOutOfMemory) {
		if n, _ := s.retire(s.waitEvent); n > 0 {
			b, err = s.inner.Alloc(r)
		}
	}
	if err != nil {
		s.refused = false
		if errors.Is(err, alloc.ErrOutOfMemory) {
			s.stats.OOMs++
		}
		return alloc.Block{}, err
	}
	flow := s.flows.flowOf(r.Stream)
	if cause := s.flows.order(flow, b, !s.guard.aliased); cause != nil {
		return alloc.Block{}, s.refuse(r, b, cause)
	}
	h := s.row()
	s.rows[h] = grant{Block: b, requested: r.Size, flow: flow, used: s.rows[h].used[:0]}
	s.index.Put(b.Addr, h, s.at)
	s.poll()
	s.stats.Granted(r.Size, b.Size)
	b.Ref = h
	return b, nil
}

// poll frees pending blocks that are done. It follows successful calls only, because a call
// refused as a mistake must change nothing. Errors of the device are retried.
func (s *streamed) poll() {
	if s.pending > 0 {
		_, _ = s.retire(s.queryEvent)
	}
}

// refuse returns a block that cannot be granted to the strategy, and returns the error of the
// request.
func (s *streamed) refuse(r alloc.Request, b alloc.Block, cause error) error {
	if err := s.freeRef(b); err != nil {
		// The block has no owner and must not be lost: it is retried like a pending one.
		h := s.row()
		s.rows[h] = grant{Block: b, flow: 0, freed: true, used: s.rows[h].used[:0]}
		s.index.Put(b.Addr, h, s.at)
		s.stats.Active += b.Size
		s.stats.PeakActive = max(s.stats.PeakActive, s.stats.Active)
		s.pending++
		s.retry = append(s.retry, h)
	}
	s.stats.OOMs++
	s.refused = true
	s.refusal = power.Refusal{Reason: power.ReasonDevice, Request: r, Device: cause,
		LargestHole: power.LargestFree(s.inner)}
	for c := range s.inner.Walk {
		if c.State == alloc.Free {
			s.refusal.Free += c.Size
		}
	}
	return alloc.ErrOutOfMemory
}

// row returns the handle of an unused row.
func (s *streamed) row() uint32 {
	if n := len(s.free); n > 0 {
		h := s.free[n-1]
		s.free = s.free[:n-1]
		return h
	}
	s.rows = append(s.rows, grant{})
	return uint32(len(s.rows) - 1)
}

// find returns the live block that starts at an address.
func (s *streamed) find(a device.Addr) (uint32, error) {
	if s.closed {
		return index.NoHandle, alloc.ErrClosed
	}
	if h := s.index.Get(a, s.at); h != index.NoHandle && !s.rows[h].freed {
		return h, nil
	}
	return index.NoHandle, alloc.ErrInvalidFree
}

func (s *streamed) Free(a device.Addr) error {
	h, err := s.find(a)
	if a == 0 && !s.closed {
		return s.inner.Free(a) // the strategy may ignore address 0
	}
	if err != nil {
		return err
	}
	return s.release(h)
}

// FreeRef implements [power.Referenced], whether the strategy does or not.
func (s *streamed) FreeRef(b alloc.Block) error {
	h := b.Ref
	switch {
	case h == index.NoHandle:
		return s.Free(b.Addr)
	case s.closed:
		return alloc.ErrClosed
	case int(h) >= len(s.rows) || s.rows[h].Addr != b.Addr || s.rows[h].Size == 0 || s.rows[h].freed:
		return alloc.ErrInvalidFree
	}
	return s.release(h)
}

// release frees a live block, or makes it pending.
func (s *streamed) release(h uint32) error {
	g := &s.rows[h]
	if len(g.used) == 0 {
		s.guard.dirty = true
		if err := s.freeRef(g.Block); err != nil {
			return err
		}
		s.stats.Freed(g.requested, g.Size)
		s.forget(h)
		s.poll()
		return nil
	}
	g.freed = true
	s.pending++
	s.stats.Freed(g.requested, g.Size)
	s.stats.Active += g.Size
	_ = s.finish(h) // errors are retried later
	return nil
}

// forget records that a block is free, and releases its row.
func (s *streamed) forget(h uint32) {
	g := &s.rows[h]
	s.index.Unlink(g.Addr, h)
	s.flows.freed(g.flow, g.Block, !s.guard.aliased)
	g.Block = alloc.Block{}
	s.free = append(s.free, h)
}

// RecordStream implements [power.StreamRecorder]. It costs O(streams recorded for the block).
func (s *streamed) RecordStream(a device.Addr, on device.Stream) error {
	h, err := s.find(a)
	if err != nil {
		return err
	}
	g := &s.rows[h]
	if on == s.flows.all[g.flow].stream {
		return nil
	}
	for _, known := range g.used {
		if known == on {
			return nil
		}
	}
	g.used = append(g.used, on)
	return nil
}

// finish records a mark on each stream that uses a pending block, and frees the block if there is
// no mark to wait for. On error, the device's, it is retried.
func (s *streamed) finish(h uint32) error {
	g := &s.rows[h]
	for n := len(g.used); n > 0; n = len(g.used) {
		on := g.used[n-1]
		e, err := s.spare.record(on)
		if err != nil {
			s.retry = append(s.retry, h)
			return err
		}
		g.used = g.used[:n-1]
		g.waits++
		q := s.queueOf(on)
		q.marks = append(q.marks, use{e, h})
	}
	if g.waits > 0 {
		return nil
	}
	s.guard.dirty = true
	if err := s.freeRef(g.Block); err != nil {
		s.retry = append(s.retry, h)
		return err
	}
	s.pending--
	s.stats.Active -= g.Size
	s.forget(h)
	return nil
}

// queueOf returns the marks of a stream. Programs record few streams.
func (s *streamed) queueOf(on device.Stream) *uses {
	for i := range s.queues {
		if s.queues[i].stream == on {
			return &s.queues[i]
		}
	}
	s.queues = append(s.queues, uses{stream: on})
	return &s.queues[len(s.queues)-1]
}

func (s *streamed) queryEvent(e device.Event) (bool, error) { return s.flows.streams.Done(e) }

func (s *streamed) waitEvent(e device.Event) (bool, error) {
	err := s.flows.streams.SyncEvent(e)
	return err == nil, err
}

// retire frees the pending blocks whose marks are done, and returns their bytes. The error is the
// first of the device, or of the strategy if it could not free.
func (s *streamed) retire(done func(device.Event) (bool, error)) (device.Size, error) {
	before := s.stats.Active
	var first error
	keep := func(err error) {
		if err != nil && first == nil {
			first = err
		}
	}
	s.retry, s.retrying = s.retrying[:0], s.retry
	for _, h := range s.retrying {
		keep(s.finish(h))
	}
	for i := range s.queues {
		// Work on one stream finishes in order, so no mark after an unfinished one is done.
		for q := &s.queues[i]; q.first < len(q.marks); {
			m := q.marks[q.first]
			finished, err := done(m.event)
			keep(err)
			if !finished {
				break
			}
			q.first++
			s.spare.events = append(s.spare.events, m.event)
			g := &s.rows[m.block]
			if g.waits--; g.waits == 0 && len(g.used) == 0 {
				keep(s.finish(m.block))
			}
		}
		s.queues[i].compact()
	}
	return before - s.stats.Active, first
}

// compact removes the passed marks once they are the majority.
func (q *uses) compact() {
	if 2*q.first >= len(q.marks) {
		q.marks = q.marks[:copy(q.marks, q.marks[q.first:])]
		q.first = 0
	}
}

// Poll implements [power.Poller]. It queries the device once for each finished use and once for
// each stream that was recorded.
func (s *streamed) Poll() (device.Size, error) {
	if s.closed {
		return 0, alloc.ErrClosed
	}
	return s.retire(s.queryEvent)
}

func (s *streamed) Stats() alloc.Stats {
	in, own := s.inner.Stats(), s.stats
	own.Reserved, own.Forgotten, own.PeakReserved = in.Reserved, in.Forgotten, in.PeakReserved
	own.Limit, own.NextRegion, own.Regions = in.Limit, in.NextRegion, in.Regions
	own.Reserves, own.ReserveFailures, own.Releases = in.Reserves, in.ReserveFailures, in.Releases
	return own
}

func (s *streamed) Walk(yield func(alloc.Chunk) bool) {
	if s.pending == 0 {
		s.inner.Walk(yield)
		return
	}
	for c := range s.inner.Walk {
		if c.State == alloc.Live {
			if h := s.index.Get(c.Addr, s.at); h != index.NoHandle && s.rows[h].freed {
				c.State = alloc.Pending
			}
		}
		if !yield(c) {
			return
		}
	}
}

func (s *streamed) Check() error {
	pending, live := 0, 0
	for c := range s.Walk {
		switch c.State {
		case alloc.Live:
			live++
		case alloc.Pending:
			pending++
		}
	}
	if pending != s.pending || live != s.stats.Live || live+pending != s.index.Len() && !s.closed {
		return fmt.Errorf("alloc: Streamed counts %d live and %d pending blocks, the walk shows %d and %d, the table "+
			"%d in all",
			s.stats.Live, s.pending, live, pending, s.index.Len())
	}
	end := device.Addr(0)
	for e := range s.flows.ranges.All {
		if e.Addr < end || e.Value.size == 0 || int(e.Value.flow) >= len(s.flows.all) {
			return fmt.Errorf("alloc: Streamed has an invalid freed range at %v", e.Addr)
		}
		end = e.Addr.Add(e.Value.size)
	}
	return s.inner.Check()
}

func (s *streamed) Close() error {
	s.closed, s.guard.dirty = true, true
	s.pending, s.retry = 0, nil
	s.rows, s.free, s.index = s.rows[:1], nil, index.NewAddrMap()
	s.stats.Emptied()
	err := s.inner.Close()
	for i := range s.queues {
		for _, m := range s.queues[i].marks[s.queues[i].first:] {
			s.spare.events = append(s.spare.events, m.event)
		}
	}
	s.queues = nil
	return errors.Join(err, s.spare.close(), s.flows.close())
}

// Has adds the powers of the wrapper itself. Blocks are not moved, because work may be
// queued on them. Private pools are not passed on, because no stream may wait during a capture.
func (s *streamed) Has(p power.Power) bool {
	switch p {
	case power.PowerStreamRecorder, power.PowerPoller, power.PowerReferenced:
		return true
	}
	return p != power.PowerMover && p != power.PowerPrivatePools && p != power.PowerMemPools && s.Forwarder.Has(p)
}

// FreeNeighbours implements [power.Neighbours]: a block that other streams use is pending when it
// is freed.
func (s *streamed) FreeNeighbours(a device.Addr) (below, above device.Size) {
	if h, err := s.find(a); err != nil || len(s.rows[h].used) > 0 {
		return 0, 0
	}
	return power.FreeNeighbours(s.inner, a)
}

// CanPlace implements [power.Placer]. Blocks that other streams use count as live: a request waits
// for them if it finds no room otherwise.
func (s *streamed) CanPlace(r alloc.Request, freed []device.Addr) bool {
	return power.CanPlace(s.inner, r, slices.DeleteFunc(slices.Clone(freed), func(a device.Addr) bool {
		h, err := s.find(a)
		return err != nil || len(s.rows[h].used) > 0
	}))
}

// BlockAt implements [power.Locator]: a pending block is not live.
func (s *streamed) BlockAt(a device.Addr) (alloc.Chunk, error) {
	if _, err := s.find(a); err != nil {
		return alloc.Chunk{}, err
	}
	return power.BlockAt(s.inner, a)
}

func (s *streamed) ClearStats() {
	s.stats.Clear()
	_ = power.ClearStats(s.inner) // the caller has checked power.Has
}

func (s *streamed) LastRefusal() (power.Refusal, bool) {
	if s.refused {
		return s.refusal, true
	}
	return power.LastRefusal(s.inner)
}

func (s *streamed) MetadataBytes() device.Size {
	const rowBytes, handleBytes, markBytes = 64, 4, 16
	n, _ := power.MetadataBytes(s.inner) // the caller has checked power.Has
	n += s.index.Bytes() + s.flows.bytes() + device.Size(cap(s.rows))*rowBytes
	n += device.Size(cap(s.free)+cap(s.retry)+cap(s.retrying)) * handleBytes
	for i := range s.queues {
		n += device.Size(cap(s.queues[i].marks)) * markBytes
	}
	return n
}
