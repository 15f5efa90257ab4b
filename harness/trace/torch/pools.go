package torch

import (
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// poolWriter adds private pools to a trace. A request belongs to the pool of the segment that
// serves it. Files do not have the beginning and the end of a graph capture or MemPool: the trace
// begins a pool at its first request, and releases it where its memory first goes back.
type poolWriter struct {
	held    ranges          // segments of private pools that are held now
	pools   [][2]uint64     // pools with requests; the index plus 1 is the number in the trace
	users   map[uint64]bool // whether a pool is begun and not released
	open    uint64          // pool to which the requests of stream go; 0: none
	stream  device.Stream
	traffic []Traffic // not yet reached
}

func newPoolWriter(c *Timeline) poolWriter {
	w := poolWriter{users: map[uint64]bool{}, traffic: c.Traffic}
	for _, s := range c.Segments {
		w.hold(s)
	}
	return w
}

func (w *poolWriter) hold(s HeldSegment) {
	if s.Pool != [2]uint64{} {
		w.held.put(s)
	}
}

// at returns the private pool of the memory at an address.
func (w *poolWriter) at(addr uint64) [2]uint64 {
	if p, ok := w.held.list.Floor(device.Addr(addr)); ok {
		if s := w.held.list.Entry(p).Value; addr-s.Addr < s.Size {
			return s.Pool
		}
	}
	return [2]uint64{}
}

// number returns the number of a pool in the trace, 0 for the default pool.
func (w *poolWriter) number(pool [2]uint64) uint64 {
	if pool == [2]uint64{} {
		return 0
	}
	i := slices.Index(w.pools, pool)
	if i < 0 {
		i = len(w.pools)
		w.pools = append(w.pools, pool)
	}
	return uint64(i + 1)
}

// enterPool opens or closes a pool before the step of an entry. No pool is open where a free is
// postponed or completes, because PyTorch does neither during a capture.
func (m *traceMaker) enterPool(step Step, e *Entry) error {
	h := &m.Device.History
	switch s := device.Stream(h.Streams[e.Stream]); {
	case step == Alloc:
		return m.redirect(m.pools.at(e.Addr), s)
	case step == Refused && h.Pools != nil:
		return m.redirect(h.Pools[e.Pool], s)
	case step == FreeLater, step == Completed:
		return m.endPool()
	}
	return nil
}

// redirect makes the next request of a stream go to a pool.
func (m *traceMaker) redirect(pool [2]uint64, s device.Stream) error {
	w := &m.pools
	id := w.number(pool)
	if id == w.open && s == w.stream || id == 0 && w.open == 0 {
		return nil
	}
	if err := m.endPool(); err != nil || id == 0 {
		return err
	}
	if err := m.add(trace.Event{Kind: trace.PoolBegin, Arg: id, Stream: s, Time: m.now}); err != nil {
		return err
	}
	w.open, w.stream = id, s
	if w.users[id] { // one user began it again
		return m.add(trace.Event{Kind: trace.PoolRelease, Arg: id, Time: m.now})
	}
	w.users[id] = true
	return nil
}

func (m *traceMaker) endPool() error {
	id := m.pools.open
	if id == 0 {
		return nil
	}
	m.pools.open = 0
	return m.add(trace.Event{Kind: trace.PoolEnd, Arg: id, Time: m.now})
}

// passTraffic adds the events of entry i if it is about a segment that goes back.
func (m *traceMaker) passTraffic(i int) error {
	w := &m.pools
	if len(w.traffic) == 0 || w.traffic[0].Entry != i {
		return nil
	}
	rest := w.traffic
	w.traffic = rest[1:]
	t := &rest[0]
	if t.Taken {
		w.hold(t.Segment)
		return nil
	}
	if t.Segment.Pool != [2]uint64{} {
		w.held.remove(t.Segment.Addr, t.Segment.Size, t.Segment.Expandable)
	}
	if !t.Emptied {
		return m.releasePool(t)
	}
	for k := range rest {
		if rest[k].Taken || rest[k].Entry != i+k {
			break
		}
		if err := m.releasePool(&rest[k]); err != nil {
			return err
		}
	}
	if err := m.endPool(); err != nil {
		return err
	}
	return m.add(trace.Event{Kind: trace.Trim, Time: m.now})
}

// releasePool releases the pool of a segment that goes back: the memory of a pool in use stays.
func (m *traceMaker) releasePool(t *Traffic) error {
	id := m.pools.number(t.Segment.Pool)
	if !m.pools.users[id] {
		return nil
	}
	if id == m.pools.open {
		if err := m.endPool(); err != nil {
			return err
		}
	}
	m.pools.users[id] = false
	return m.add(trace.Event{Kind: trace.PoolRelease, Arg: id, Time: m.now})
}
