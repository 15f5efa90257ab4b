package devicetest

import (
	"math/rand/v2"

	"github.com/vramyard/vramyard/device"
)

// place is a position in a stream: after its first n entries.
type place struct {
	stream device.Stream
	n      int
}

// recorded is an event and its mark.
type recorded struct {
	event device.Event
	mark  place  // n is 0 until it is recorded
	time  uint64 // completion of its work
}

// streamModel models streams as lists of entries, each of which may wait for a place in another
// stream.
type streamModel struct {
	*rig
	rng     *rand.Rand
	queued  map[device.Stream][]place // what each entry waits for
	drained map[device.Stream]int     // entries known to be finished
	events  []*recorded
	byTime  bool // work also finishes when the clock passes its end
}

func streamsAgree(r *rig) {
	m := &streamModel{rig: r, rng: r.rng(3), queued: map[device.Stream][]place{}, drained: map[device.Stream]int{}}
	m.probe()
	for range 2000 {
		m.step()
		m.checkEvent()
	}
	for _, e := range m.events {
		r.destroyEvent(nil, e.event)
	}
}

// probe detects whether work finishes when the clock passes its end.
func (m *streamModel) probe() {
	e := m.newEvent()
	m.work(100, 10)
	m.record(nil, e, 100)
	m.elapse(1e9)
	m.byTime = m.done(nil, e)
	m.syncDevice(nil)
	m.destroyEvent(nil, e)
}

// finishTo records that the first n entries of a stream are finished, and with them everything they
// waited for.
func (m *streamModel) finishTo(s device.Stream, n int) {
	for i := m.drained[s]; i < n; i++ {
		m.drained[s] = i + 1
		if w := m.queued[s][i]; w.n > 0 {
			m.finishTo(w.stream, w.n)
		}
	}
}

// queue adds an entry to a stream.
func (m *streamModel) queue(s device.Stream, waitsFor place) place {
	m.queued[s] = append(m.queued[s], waitsFor)
	return place{s, len(m.queued[s])}
}

func (m *streamModel) step() {
	s := device.Stream(m.rng.IntN(5))
	if len(m.events) < 2 || len(m.events) < 12 && m.rng.IntN(10) == 0 {
		m.events = append(m.events, &recorded{event: m.newEvent()})
		return
	}
	i := m.rng.IntN(len(m.events))
	e := m.events[i]
	switch k := m.rng.IntN(40); {
	case k < 10:
		m.work(s, 1+m.rng.Uint64N(100_000))
		m.queue(s, place{})
	case k < 22:
		m.record(nil, e.event, s)
		e.mark, e.time = m.queue(s, place{}), m.time.StreamTime(s)
	case k < 32:
		m.wait(nil, s, e.event)
		m.queue(s, e.mark)
	case k < 34:
		m.drain(s)
		m.finishTo(s, len(m.queued[s]))
	case k < 36:
		m.syncEvent(nil, e.event)
		m.finishTo(e.mark.stream, e.mark.n)
	case k == 36:
		m.syncStream(nil, s)
		m.finishTo(s, len(m.queued[s]))
	case k == 37 && m.rng.IntN(4) == 0:
		m.syncDevice(nil)
		for s := range device.Stream(5) {
			m.finishTo(s, len(m.queued[s]))
		}
	case k == 38:
		m.destroyEvent(nil, e.event)
		m.events = append(m.events[:i], m.events[i+1:]...)
	default:
		m.elapse(m.rng.Uint64N(100_000))
	}
}

// checkEvent checks whether an event is done, and which streams are ordered after it.
func (m *streamModel) checkEvent() {
	if len(m.events) == 0 {
		return
	}
	e := m.events[m.rng.IntN(len(m.events))]
	drained := m.drained[e.mark.stream] >= e.mark.n
	got := m.done(nil, e.event)
	if drained && !got {
		m.Fatalf("the event is at entry %d of stream %d, the entries up to %d have finished, and it is not done",
			e.mark.n, e.mark.stream, m.drained[e.mark.stream])
	}
	if got && !drained && (!m.byTime || e.time > m.time.Now()) {
		m.Fatalf("the event is at entry %d of stream %d and time %d; %d entries finished, the clock is %d, and it is done",
			e.mark.n, e.mark.stream, e.time, m.drained[e.mark.stream], m.time.Now())
	}
	s := device.Stream(m.rng.IntN(5))
	want := got || e.mark.stream == s || m.reaches(place{s, len(m.queued[s])}, e.mark, map[place]bool{})
	m.requireOrder(want, e.event, s, "by the waits that were queued")
}

// reaches reports whether the work after from is ordered after to by the queued waits.
func (m *streamModel) reaches(from, to place, seen map[place]bool) bool {
	for i := from.n - 1; i >= 0; i-- {
		at := place{from.stream, i}
		if seen[at] {
			return false
		}
		seen[at] = true
		w := m.queued[from.stream][i]
		if w.n > 0 && (w.stream == to.stream && w.n >= to.n || m.reaches(w, to, seen)) {
			return true
		}
	}
	return false
}
