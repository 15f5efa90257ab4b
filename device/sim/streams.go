package sim

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/internal/handle"
)

var (
	_ device.Streams  = (*Device)(nil)
	_ device.Timeline = (*Device)(nil)
)

// streams is the queued work of a device.
type streams struct {
	index  map[device.Stream]int32
	queues []queue
	busy   []int32 // streams with unfinished tickets, and some without
	events handle.Table[event]
	orders orders
}

// queue is a stream. Work, records and waits each take a ticket.
type queue struct {
	queued  uint64 // the last ticket
	drained uint64 // all tickets up to this one have finished
	clock   uint64 // nanoseconds: completion of all queued work
	after   order  // marks of other streams that precede the next ticket
	busy    bool   // whether it is in streams.busy
}

// event is the last record of an event.
type event struct {
	mark
	before order // marks of other streams that precede it
}

// newStreams returns streams without queued work.
func newStreams(ordinal uint8) streams {
	return streams{
		index:  map[device.Stream]int32{},
		events: handle.Table[event]{Ordinal: ordinal},
		orders: newOrders(),
	}
}

// indexOf returns the index of a stream, adding the stream if it is new.
func (t *streams) indexOf(s device.Stream) int32 {
	i, ok := t.index[s]
	if !ok {
		i = int32(len(t.queues))
		t.queues = append(t.queues, queue{})
		t.index[s] = i
	}
	return i
}

// enqueue takes a ticket for work that starts now at the earliest, and returns the stream.
func (t *streams) enqueue(i int32, now uint64) *queue {
	q := &t.queues[i]
	q.queued++
	q.clock = max(q.clock, now)
	if !q.busy {
		q.busy = true
		t.busy = append(t.busy, i)
	}
	return q
}

// finish marks the tickets of stream i up to ticket as finished. If those are all, the stream's
// clock is at most now.
func (t *streams) finish(i int32, ticket, now uint64) {
	q := &t.queues[i]
	q.drained = max(q.drained, ticket)
	if q.drained == q.queued {
		q.clock = min(q.clock, now)
		t.orders.drop(q.after)
		q.after = 0
	}
}

// finishAll marks the marks of a set as finished. It skips nodes that have finished already.
func (t *streams) finishAll(id order, now uint64) {
	t.orders.hold(id) // finishing a stream drops sets
	t.finishBelow(id, 0, now)
	t.orders.drop(id)
}

// finishBelow is finishAll for a node whose first stream has the index first.
func (t *streams) finishBelow(id order, first int32, now uint64) {
	o := &t.orders
	switch {
	case o.allFinished(id):
	case id < 0:
		for i, m := range o.leaves[-id].marks {
			if m.ticket != 0 {
				t.finish(first+int32(i), m.ticket, now)
			}
		}
		o.leaves[-id].finished = true
	default:
		children, level := o.inner[id].children, o.inner[id].level
		for i, child := range children {
			t.finishBelow(child, first+int32(i)<<(fanLog*level), now)
		}
		o.inner[id].finished = true
	}
}

// finished reports whether everything up to a mark has finished.
func (d *Device) finished(m mark) bool {
	return m.stream < 0 || m.ticket <= d.streams.queues[m.stream].drained ||
		d.cfg.Clock == Timed && m.time <= d.now
}

func (d *Device) event(e device.Event) (*event, error) {
	t := &d.streams.events
	if i, ok := t.Find(uint64(e)); ok {
		return t.At(i), nil
	}
	return nil, device.ErrEvent
}

// NewEvent implements [device.Streams]. There may be 268 million events.
func (d *Device) NewEvent() (device.Event, error) {
	e, err := d.newEvent()
	if err == nil {
		d.usage.Events++
	}
	return e, d.count(device.CallNewEvent, 0, err)
}

// newEvent is NewEvent without the account, like the other unexported methods below.
func (d *Device) newEvent() (device.Event, error) {
	e, v, ok := d.streams.events.Add()
	if !ok {
		return 0, device.ErrOutOfMemory
	}
	*v = event{mark: mark{stream: -1}}
	return device.Event(e), nil
}

func (d *Device) DestroyEvent(e device.Event) error {
	err := d.destroyEvent(e)
	if err == nil {
		d.usage.Events--
	}
	return d.count(device.CallDestroyEvent, 0, err)
}

func (d *Device) destroyEvent(e device.Event) error {
	t := &d.streams
	i, ok := t.events.Find(uint64(e))
	if !ok {
		return device.ErrEvent
	}
	t.orders.drop(t.events.At(i).before)
	t.events.Remove(i)
	return nil
}

// Record implements [device.Streams]. O(1).
func (d *Device) Record(e device.Event, s device.Stream) error {
	v, err := d.event(e)
	if err := d.count(device.CallRecord, 0, err); err != nil {
		return err
	}
	d.record(v, s)
	return nil
}

func (d *Device) record(v *event, s device.Stream) {
	t := &d.streams
	i := t.indexOf(s)
	q := t.enqueue(i, d.now)
	before := t.orders.hold(q.after)
	t.orders.drop(v.before)
	*v = event{mark: mark{stream: i, ticket: q.queued, time: q.clock}, before: before}
}

// Done implements [device.Streams]. O(1).
func (d *Device) Done(e device.Event) (bool, error) {
	v, err := d.event(e)
	if err := d.count(device.CallDone, 0, err); err != nil {
		return false, err
	}
	return d.finished(v.mark), nil
}

// Wait implements [device.Streams]. O(log streams), and O(1) for each stream that precedes only one
// of both.
func (d *Device) Wait(s device.Stream, e device.Event) error {
	v, err := d.event(e)
	if err := d.count(device.CallWait, 0, err); err != nil {
		return err
	}
	d.wait(s, v)
	return nil
}

func (d *Device) wait(s device.Stream, v *event) {
	t := &d.streams
	i := t.indexOf(s)
	q := t.enqueue(i, d.now)
	if d.finished(v.mark) || v.stream == i {
		return
	}
	q.clock = max(q.clock, v.time)
	if !t.orders.follows(q.after, v.mark) {
		q.after = t.orders.join(q.after, v.mark, v.before)
	}
}

// SyncEvent implements [device.Streams]. Pools are trimmed to their thresholds.
func (d *Device) SyncEvent(e device.Event) error {
	v, err := d.event(e)
	if err := d.count(device.CallSyncEvent, 0, err); err != nil {
		return err
	}
	if !d.finished(v.mark) {
		d.waitUntil(v.time, device.CallSyncEvent)
	}
	if v.stream >= 0 {
		d.streams.finishAll(v.before, d.now)
		d.streams.finish(v.stream, v.ticket, d.now)
	}
	d.pools.pollAll()
	return nil
}

// SyncStream implements [device.Streams]. Pools are trimmed to their thresholds.
func (d *Device) SyncStream(s device.Stream) error {
	if err := d.count(device.CallSyncStream, 0, nil); err != nil {
		return err
	}
	d.waitUntil(d.StreamTime(s), device.CallSyncStream)
	d.drain(s)
	d.pools.pollAll()
	return nil
}

// SyncDevice implements [device.Streams]. Pools are trimmed to their thresholds. O(streams with
// queued work).
func (d *Device) SyncDevice() error {
	if err := d.count(device.CallSyncDevice, 0, nil); err != nil {
		return err
	}
	d.waitForAll(device.CallSyncDevice)
	d.pools.pollAll()
	return nil
}

// waitForAll makes a call wait until all queued work has finished.
func (d *Device) waitForAll(c device.Call) {
	t := &d.streams
	for _, i := range t.busy {
		d.waitUntil(t.queues[i].clock, c)
	}
	for _, i := range t.busy {
		t.finish(i, t.queues[i].queued, d.now)
		t.queues[i].busy = false
	}
	t.busy = t.busy[:0]
}

// Work implements [device.Timeline]. It never fails.
func (d *Device) Work(s device.Stream, ns uint64) error {
	q := d.streams.enqueue(d.streams.indexOf(s), d.now)
	q.clock = addTimes(q.clock, ns)
	return nil
}

// Drain implements [device.Timeline]. It never fails. O(streams that precede s and are not
// finished).
func (d *Device) Drain(s device.Stream) error {
	d.drain(s)
	return nil
}

func (d *Device) drain(s device.Stream) {
	t := &d.streams
	if i, ok := t.index[s]; ok {
		t.finishAll(t.queues[i].after, d.now)
		t.finish(i, t.queues[i].queued, d.now)
	}
}

// Elapse implements [device.Timeline]. It never fails.
func (d *Device) Elapse(ns uint64) error {
	d.now = addTimes(d.now, ns)
	return nil
}

func (d *Device) Now() uint64 { return d.now }

func (d *Device) StreamTime(s device.Stream) uint64 {
	if i, ok := d.streams.index[s]; ok {
		return d.streams.queues[i].clock
	}
	return 0
}

// Ordered implements [device.Timeline]. O(log streams).
func (d *Device) Ordered(e device.Event, s device.Stream) (bool, error) {
	v, err := d.event(e)
	if err != nil {
		return false, err
	}
	if d.finished(v.mark) {
		return true, nil
	}
	i, ok := d.streams.index[s]
	return ok && (v.stream == i || d.streams.orders.follows(d.streams.queues[i].after, v.mark)), nil
}
