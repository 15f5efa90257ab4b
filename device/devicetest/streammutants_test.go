package devicetest_test

import (
	"errors"

	"github.com/vramyard/vramyard/device"
)

var contentsMutants = []broken{
	{"a comparison finds a difference", "FilledContentsAreRead", func(m mutant) device.Device { return &blind{m} }},
	{"the first difference is found", "ContentsAgreeWithBytes", func(m mutant) device.Device { return &coarse{m} }},
	{"a fill writes all", "FilledContentsAreRead", func(m mutant) device.Device { return &shortFill{m} }},
	{"words are aligned to addresses", "FilledContentsAreRead", func(m mutant) device.Device { return &shifted{m} }},
	{"a refused fill writes nothing", "AdjacentMappingsTakeOneCall", func(m mutant) device.Device { return &partFill{m} }},
	{"only held memory is read", "OnlyHeldMemoryIsAccessed", func(m mutant) device.Device { return &reading{m} }},
}

var streamMutants = []broken{
	{"an event is not done early", "EventsAreNotDoneEarly", func(m mutant) device.Device { return &early{m} }},
	{"an event without a mark is done", "EventsAreDoneWhenSynchronized", func(m mutant) device.Device {
		return &never{mutant: m}
	}},
	{"a mark moves", "RecordingAgainMovesTheMark", func(m mutant) device.Device { return &once{mutant: m} }},
	{"a wait waits", "WaitsAreSynchronizedToo", func(m mutant) device.Device { return &hurrying{m} }},
	{"a wait is for the current mark", "WaitsHoldTheCurrentMark", func(m mutant) device.Device {
		return &lateMark{mutant: m}
	}},
	{"a drain affects one stream", "EventsAreNotDoneEarly", func(m mutant) device.Device { return &drainAll{m} }},
	{"synchronizing a stream finishes it", "EventsAreDoneWhenSynchronized", func(m mutant) device.Device {
		return &lazySync{m}
	}},
	{"events are counted", "EventsAreAccounted", accounting(func(u *device.Usage) { u.Events = 0 })},
	{"an event is destroyed once", "EventsAreNotMisused", func(m mutant) device.Device { return &immortal{m} }},
	{"order goes one way", "OrderFollowsWaits", func(m mutant) device.Device { return &allOrdered{m} }},
	{"order follows waits", "OrderFollowsWaits", func(m mutant) device.Device { return &unordered{m} }},
	{"the clock of the host advances", "WorkTakesItsTime", func(m mutant) device.Device { return &stopped{m} }},
}

type blind struct{ mutant }

func (m *blind) Compare(a device.Addr, n device.Size, pattern uint32) (device.Addr, bool, error) {
	_, _, err := m.mutant.Compare(a, n, pattern)
	return 0, true, err
}

type coarse struct{ mutant }

func (m *coarse) Compare(a device.Addr, n device.Size, pattern uint32) (device.Addr, bool, error) {
	at, same, err := m.mutant.Compare(a, n, pattern)
	return at &^ 3, same, err
}

type shortFill struct{ mutant }

func (m *shortFill) Fill(a device.Addr, n device.Size, pattern uint32) error {
	if n > 1 && n < 1<<40 {
		n--
	}
	return m.mutant.Fill(a, n, pattern)
}

type shifted struct{ mutant }

func (m *shifted) Fill(a device.Addr, n device.Size, pattern uint32) error {
	turn := 8 * (uint32(a) % 4)
	return m.mutant.Fill(a, n, pattern<<turn|pattern>>(32-turn))
}

type partFill struct{ mutant }

func (m *partFill) Fill(a device.Addr, n device.Size, pattern uint32) error {
	err := m.mutant.Fill(a, n, pattern)
	if errors.Is(err, device.ErrUnmapped) && m.mutant.Fill(a, 4096, pattern) == nil {
		m.made[device.CallFill].Done--
	} else if errors.Is(err, device.ErrUnmapped) {
		m.forgiven[device.CallFill].Failed++
	}
	return err
}

type reading struct{ mutant }

func (m *reading) Compare(a device.Addr, n device.Size, pattern uint32) (device.Addr, bool, error) {
	at, same, err := m.mutant.Compare(a, n, pattern)
	return at, same, m.forgive(device.CallCompare, err, device.ErrUnmapped)
}

type early struct{ mutant }

func (m *early) Done(e device.Event) (bool, error) {
	_, err := m.mutant.Done(e)
	return err == nil, err
}

type never struct {
	mutant
	recorded map[device.Event]bool
}

func (m *never) Record(e device.Event, s device.Stream) error {
	if m.recorded == nil {
		m.recorded = map[device.Event]bool{}
	}
	m.recorded[e] = true
	return m.mutant.Record(e, s)
}

func (m *never) Done(e device.Event) (bool, error) {
	done, err := m.mutant.Done(e)
	return done && m.recorded[e], err
}

type once struct {
	mutant
	recorded map[device.Event]bool
}

func (m *once) Record(e device.Event, s device.Stream) error {
	if m.recorded == nil {
		m.recorded = map[device.Event]bool{}
	}
	if m.recorded[e] {
		return m.skip(device.CallRecord)
	}
	err := m.mutant.Record(e, s)
	m.recorded[e] = err == nil
	return err
}

type hurrying struct{ mutant }

func (m *hurrying) Wait(s device.Stream, e device.Event) error {
	if _, err := m.Ordered(e, s); err != nil {
		return m.mutant.Wait(s, e)
	}
	return m.skip(device.CallWait)
}

// lateMark waits for the mark of the event at the time of the drain, not of the wait.
type lateMark struct {
	mutant
	waits map[device.Stream]device.Event
}

func (m *lateMark) Wait(s device.Stream, e device.Event) error {
	if m.waits == nil {
		m.waits = map[device.Stream]device.Event{}
	}
	m.waits[s] = e
	return m.mutant.Wait(s, e)
}

func (m *lateMark) Drain(s device.Stream) error {
	if e := m.waits[s]; e != 0 && m.SyncEvent(e) == nil {
		m.made[device.CallSyncEvent].Done--
	}
	return m.mutant.Drain(s)
}

type drainAll struct{ mutant }

func (m *drainAll) Drain(device.Stream) error {
	for _, s := range []device.Stream{0, 1, 2, 3, 7, 1 << 40, ^device.Stream(0)} {
		if err := m.mutant.Drain(s); err != nil {
			return err
		}
	}
	return nil
}

type lazySync struct{ mutant }

func (m *lazySync) SyncStream(device.Stream) error { return m.skip(device.CallSyncStream) }

type immortal struct{ mutant }

func (m *immortal) DestroyEvent(e device.Event) error {
	return m.forgive(device.CallDestroyEvent, m.mutant.DestroyEvent(e), device.ErrEvent)
}

type allOrdered struct{ mutant }

func (m *allOrdered) Ordered(e device.Event, s device.Stream) (bool, error) {
	_, err := m.mutant.Ordered(e, s)
	return err == nil, err
}

type unordered struct{ mutant }

func (m *unordered) Ordered(e device.Event, s device.Stream) (bool, error) {
	done, err := m.Done(e)
	if err == nil {
		m.made[device.CallDone].Done--
	}
	return done, err
}

type stopped struct{ mutant }

func (m *stopped) Elapse(uint64) error { return nil }
