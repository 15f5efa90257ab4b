package devicetest

import "github.com/vramyard/vramyard/device"

var (
	needStreams = []device.Capability{device.CapStreams}
	needTime    = []device.Capability{device.CapStreams, device.CapTimeline}
)

var streamPromises = []promise{
	{name: "EventsAreDoneWhenSynchronized", needs: needStreams, run: eventsDone},
	{name: "EventsAreAccounted", needs: needStreams, run: eventsAccounted},
	{name: "EventsAreNotMisused", needs: needStreams, run: eventMisuse},
	{name: "WaitsAreSynchronizedToo", needs: needStreams, run: waitsSynchronized},
	{name: "ReleaseWaitsForAllWork", needs: needTime, run: releaseWaits},
}

// busy yields numbers of streams: the default stream, small numbers and large ones.
func busy(yield func(device.Stream) bool) {
	for _, s := range []device.Stream{0, 1, 7, 1 << 40, ^device.Stream(0)} {
		if !yield(s) {
			return
		}
	}
}

// eventsDone records events on several streams and synchronizes by event, by stream and by device.
func eventsDone(r *rig) {
	e := r.newEvent()
	if !r.done(nil, e) {
		r.Errorf("an event that was never recorded is not done")
	}
	r.syncEvent(nil, e)
	r.wait(nil, 3, e)
	for s := range busy {
		for i, sync := range []func(){
			func() { r.syncEvent(nil, e) }, func() { r.syncStream(nil, s) }, func() { r.syncDevice(nil) },
		} {
			r.record(nil, e, s)
			r.record(nil, e, s) // a mark may be moved before it is done
			sync()
			if !r.done(nil, e) {
				r.Errorf("the event was recorded on stream %d, the %s was synchronized, and it is not done", s,
					[]string{"event", "stream", "device"}[i])
			}
		}
	}
	r.destroyEvent(nil, e)
}

func eventsAccounted(r *rig) {
	was := r.d.Usage()
	var all []device.Event
	seen := map[device.Event]bool{}
	for i := range 100 {
		e := r.newEvent()
		if seen[e] {
			r.Fatalf("event %d was created twice", e)
		}
		seen[e] = true
		all = append(all, e)
		r.record(nil, e, device.Stream(i%3))
	}
	r.requireGrowth(was, device.Usage{Events: 100})
	for i := range all {
		e := all[(i*37)%len(all)] // in another order, done or not
		r.destroyEvent(nil, e)
		if i%10 == 0 {
			r.syncStream(nil, 1)
		}
	}
	r.requireGrowth(was, device.Usage{})
}

// eventMisuse uses invalid events: zero, unknown, of another device, and destroyed.
func eventMisuse(r *rig) {
	o := r.other()
	foreign, mine, stale := o.newEvent(), r.newEvent(), r.newEvent()
	o.record(nil, foreign, 1)
	r.record(nil, mine, 1)
	r.record(nil, stale, 1)
	r.destroyEvent(nil, stale)
	for _, wrong := range []device.Event{0, ^device.Event(0), foreign, stale} {
		r.record(device.ErrEvent, wrong, 1)
		r.done(device.ErrEvent, wrong)
		r.wait(device.ErrEvent, 2, wrong)
		r.syncEvent(device.ErrEvent, wrong)
		r.destroyEvent(device.ErrEvent, wrong)
		if r.time != nil {
			if _, err := r.time.Ordered(wrong, 1); !answers(err, device.ErrEvent) {
				r.Errorf("Ordered(%d) returned %q, want %q", wrong, text(err), device.ErrEvent)
			}
		}
	}
	for range 8 { // a number that comes back would let the stale one pass
		again := r.newEvent()
		r.record(device.ErrEvent, stale, 1)
		r.destroyEvent(device.ErrEvent, stale)
		r.destroyEvent(nil, again)
	}
	r.syncEvent(nil, mine)
	r.destroyEvent(nil, mine)
	r.destroyEvent(device.ErrEvent, mine)
	o.destroyEvent(device.ErrEvent, mine)
	o.syncDevice(nil)
	o.destroyEvent(nil, foreign)
}

// waitsSynchronized checks that synchronizing a stream also waits for the events that the stream
// waits for.
func waitsSynchronized(r *rig) {
	first, second, third := r.newEvent(), r.newEvent(), r.newEvent()
	r.record(nil, first, 1)
	r.wait(nil, 2, first)
	r.record(nil, second, 2)
	r.wait(nil, 3, second)
	r.wait(nil, 3, second) // once more changes nothing
	r.destroyEvent(nil, second)
	r.record(nil, third, 3)
	r.syncEvent(nil, third)
	if !r.done(nil, first) {
		r.Errorf("a stream that waits for the event indirectly was synchronized, and the event is not done")
	}
	r.record(nil, first, 1)
	r.wait(nil, 1, first) // a stream that waits for itself does not wait
	r.syncStream(nil, 1)
	if !r.done(nil, first) {
		r.Errorf("the stream was synchronized and an event on it is not done")
	}
	r.destroyEvent(nil, first)
	r.destroyEvent(nil, third)
}

// releaseWaits checks that Release waits for all queued work.
func releaseWaits(r *rig) {
	g := r.reserve(nil, device.MiB, 0)
	e := r.newEvent()
	r.work(5, long)
	r.record(nil, e, 5)
	r.release(nil, g.Addr)
	if !r.done(nil, e) {
		r.Errorf("a region was released and work queued before has not finished")
	}
	r.destroyEvent(nil, e)
}
