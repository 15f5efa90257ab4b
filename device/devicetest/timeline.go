package devicetest

import "github.com/vramyard/vramyard/device"

// long is work that nothing in the suite outlasts without waiting for it: ten minutes.
const long = 600e9

var timelinePromises = []promise{
	{name: "WorkTakesItsTime", needs: needTime, run: workTakesTime},
	{name: "EventsAreNotDoneEarly", needs: needTime, run: eventsNotEarly},
	{name: "RecordingAgainMovesTheMark", needs: needTime, run: marksMove},
	{name: "WaitsHoldThePresentMark", needs: needTime, run: waitsHoldMarks},
	{name: "OrderFollowsWaits", needs: needTime, run: orderFollowsWaits},
}

func (r *rig) work(s device.Stream, ns uint64) {
	r.Helper()
	r.told("Work", r.time.Work(s, ns))
}

func (r *rig) drain(s device.Stream) {
	r.Helper()
	r.told("Drain", r.time.Drain(s))
}

func (r *rig) elapse(ns uint64) {
	r.Helper()
	r.told("Elapse", r.time.Elapse(ns))
}

// told fails the test if a call of a timeline failed.
func (r *rig) told(what string, err error) {
	r.Helper()
	if err != nil {
		r.Fatalf("%s was answered by %q", what, err)
	}
}

// is fails the test unless an event is done or not, as it is wanted.
func (r *rig) is(want bool, e device.Event, why string) {
	r.Helper()
	if got := r.done(nil, e); got != want {
		r.Errorf("%s: the event is done: %v, want %v", why, got, want)
	}
}

// ordered fails the test unless what is queued on s runs after the event, or not.
func (r *rig) ordered(want bool, e device.Event, s device.Stream, why string) {
	r.Helper()
	got, err := r.time.Ordered(e, s)
	if err != nil || got != want {
		r.Errorf("%s: stream %d is ordered after the event: %v (%s), want %v", why, s, got, text(err), want)
	}
}

// workTakesTime checks the clocks of the host and of streams.
func workTakesTime(r *rig) {
	start := r.time.Now()
	r.elapse(1000)
	if now := r.time.Now(); now != start+1000 {
		r.Errorf("at %d the host did something for 1000 ns, and it is %d", start, now)
	}
	for range 2 {
		from := max(r.time.StreamTime(1), r.time.Now())
		r.work(1, 5000)
		if end := r.time.StreamTime(1); end != from+5000 {
			r.Errorf("work of 5000 ns that begins at %d ends at %d", from, end)
		}
	}
	idle := r.time.StreamTime(2)
	if idle > r.time.Now() {
		r.Errorf("nothing is queued on stream 2, which ends at %d; it is %d", idle, r.time.Now())
	}
	r.work(1, long)
	e := r.newEvent()
	r.record(nil, e, 1)
	end := r.time.StreamTime(1)
	r.wait(nil, 2, e)
	r.work(2, 7)
	if after := r.time.StreamTime(2); after < end+7 {
		r.Errorf("a stream waited for an event at %d, worked for 7 ns and ends at %d", end, after)
	}
	r.syncEvent(nil, e)
	if r.time.Now() < end {
		r.Errorf("the host waited for an event at %d and it is %d", end, r.time.Now())
	}
	end = r.time.StreamTime(2)
	r.syncStream(nil, 2)
	if r.time.Now() < end {
		r.Errorf("the host waited for a stream that ends at %d and it is %d", end, r.time.Now())
	}
	r.work(3, long)
	end = r.time.StreamTime(3)
	r.syncDevice(nil)
	if r.time.Now() < end {
		r.Errorf("the host waited for all work, which ends at %d, and it is %d", end, r.time.Now())
	}
	r.destroyEvent(nil, e)
}

// eventsNotEarly checks that an event is done when its work is, and nothing else makes it so.
func eventsNotEarly(r *rig) {
	var all []device.Event
	for s := range busy {
		r.work(s, long)
		e := r.newEvent()
		r.record(nil, e, s)
		all = append(all, e)
	}
	for _, e := range all {
		r.is(false, e, "work is queued before it")
		r.is(false, e, "it was asked before")
	}
	other := r.newEvent()
	r.destroyEvent(nil, other)
	r.drain(1)
	for i, e := range all {
		r.is(i == 1, e, "stream 1 alone was drained")
	}
	r.drain(2) // on which nothing ever was
	r.work(1, long)
	r.is(true, all[1], "more work was queued behind it")
	r.syncEvent(nil, all[2])
	r.is(true, all[2], "it was synchronised")
	for s := range busy {
		r.drain(s)
	}
	for _, e := range all {
		r.is(true, e, "all streams were drained")
		r.destroyEvent(nil, e)
	}
}

// marksMove records an event again, on its stream and on another.
func marksMove(r *rig) {
	e := r.newEvent()
	r.work(1, long)
	r.record(nil, e, 1)
	r.drain(1)
	r.is(true, e, "its stream was drained")
	r.work(1, long)
	r.is(true, e, "its mark did not move")
	r.record(nil, e, 1)
	r.is(false, e, "its mark moved behind new work")
	r.work(2, long)
	r.record(nil, e, 2)
	r.drain(1)
	r.is(false, e, "its mark moved to another stream")
	r.drain(2)
	r.is(true, e, "that stream was drained")
	r.destroyEvent(nil, e)
}

// waitsHoldMarks checks that a wait is for the mark at the time of the call, even if the event is
// recorded again, and that draining a stream drains exactly the work it waits for.
func waitsHoldMarks(r *rig) {
	before, e, after := r.newEvent(), r.newEvent(), r.newEvent()
	r.work(1, long)
	r.record(nil, before, 1)
	r.record(nil, e, 1)
	r.wait(nil, 2, e)
	r.work(1, long)
	r.record(nil, e, 1) // the wait is for the mark before
	r.drain(2)
	r.is(true, before, "who waited for what comes behind it was drained")
	r.is(false, e, "it was recorded again after the wait was queued")
	r.wait(nil, 3, e)
	r.destroyEvent(nil, e)
	r.work(1, long)
	r.record(nil, after, 1)
	r.record(nil, before, 3)
	r.is(false, before, "its stream waits for an event that was destroyed")
	r.syncEvent(nil, before)
	r.is(true, before, "it was synchronised")
	r.is(false, after, "no stream waited for the last work")
	r.drain(1)
	r.is(true, after, "its stream was drained")
	r.destroyEvent(nil, before)
	r.destroyEvent(nil, after)
}

// orderFollowsWaits checks the streams that are ordered after an event.
func orderFollowsWaits(r *rig) {
	e, link := r.newEvent(), r.newEvent()
	r.ordered(true, e, 1, "it was never recorded, so it is done")
	r.work(1, long)
	r.record(nil, e, 1)
	r.ordered(true, e, 1, "it is on the stream itself")
	r.ordered(false, e, 2, "nobody waited")
	r.wait(nil, 2, e)
	r.ordered(true, e, 2, "the stream waited")
	r.ordered(false, e, 3, "another waited")
	r.work(2, long)
	r.record(nil, link, 2)
	r.wait(nil, 3, link)
	r.ordered(true, e, 3, "the stream waited for who waited")
	r.ordered(false, link, 1, "a wait orders in one direction")
	r.is(false, e, "to be ordered is not to be done")
	r.work(1, long)
	r.record(nil, e, 1)
	r.ordered(false, e, 2, "the stream waited for an earlier mark")
	r.ordered(true, e, 1, "it is on the stream itself")
	r.drain(1)
	r.ordered(true, e, 4, "it is done")
	r.syncDevice(nil)
	r.destroyEvent(nil, e)
	r.destroyEvent(nil, link)
}
