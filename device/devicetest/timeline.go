package devicetest

import "github.com/vramyard/vramyard/device"

// long is work that nothing in the suite outlasts without waiting for it: ten minutes.
const long = 600e9

var timelinePromises = []promise{
	{name: "WorkTakesItsTime", needs: needTime, run: workTakesTime},
	{name: "EventsAreNotDoneEarly", needs: needTime, run: eventsNotEarly},
	{name: "RecordingAgainMovesTheMark", needs: needTime, run: marksMove},
	{name: "WaitsHoldTheCurrentMark", needs: needTime, run: waitsHoldMarks},
	{name: "OrderFollowsWaits", needs: needTime, run: orderFollowsWaits},
}

func (r *rig) work(s device.Stream, ns uint64) {
	r.Helper()
	r.requireSuccess("Work", r.time.Work(s, ns))
}

func (r *rig) drain(s device.Stream) {
	r.Helper()
	r.requireSuccess("Drain", r.time.Drain(s))
}

func (r *rig) elapse(ns uint64) {
	r.Helper()
	r.requireSuccess("Elapse", r.time.Elapse(ns))
}

// requireSuccess fails the test if a call of a timeline failed.
func (r *rig) requireSuccess(what string, err error) {
	r.Helper()
	if err != nil {
		r.Fatalf("%s returned %q", what, err)
	}
}

// requireDone fails the test unless Done returns want. why describes the situation.
func (r *rig) requireDone(want bool, e device.Event, why string) {
	r.Helper()
	if got := r.done(nil, e); got != want {
		r.Errorf("%s: the event is done: %v, want %v", why, got, want)
	}
}

// requireOrder fails the test unless Ordered returns want for work queued on s from now on.
func (r *rig) requireOrder(want bool, e device.Event, s device.Stream, why string) {
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
		r.Errorf("the clock went from %d to %d, want 1000 ns more", start, now)
	}
	for range 2 {
		from := max(r.time.StreamTime(1), r.time.Now())
		r.work(1, 5000)
		if end := r.time.StreamTime(1); end != from+5000 {
			r.Errorf("work of 5000 ns that starts at %d ends at %d", from, end)
		}
	}
	idle := r.time.StreamTime(2)
	if idle > r.time.Now() {
		r.Errorf("stream 2 has no work and ends at %d; the clock is %d", idle, r.time.Now())
	}
	r.work(1, long)
	e := r.newEvent()
	r.record(nil, e, 1)
	end := r.time.StreamTime(1)
	r.wait(nil, 2, e)
	r.work(2, 7)
	if after := r.time.StreamTime(2); after < end+7 {
		r.Errorf("a stream waits for an event at %d, has work of 7 ns, and ends at %d", end, after)
	}
	r.syncEvent(nil, e)
	if r.time.Now() < end {
		r.Errorf("the host waited for an event at %d and its clock is %d", end, r.time.Now())
	}
	end = r.time.StreamTime(2)
	r.syncStream(nil, 2)
	if r.time.Now() < end {
		r.Errorf("the host waited for a stream that ends at %d and its clock is %d", end, r.time.Now())
	}
	r.work(3, long)
	end = r.time.StreamTime(3)
	r.syncDevice(nil)
	if r.time.Now() < end {
		r.Errorf("the host waited for all work, which ends at %d, and its clock is %d", end, r.time.Now())
	}
	r.destroyEvent(nil, e)
}

// eventsNotEarly checks that an event is done exactly when its work is.
func eventsNotEarly(r *rig) {
	var all []device.Event
	for s := range busy {
		r.work(s, long)
		e := r.newEvent()
		r.record(nil, e, s)
		all = append(all, e)
	}
	for _, e := range all {
		r.requireDone(false, e, "work is queued before it")
		r.requireDone(false, e, "Done was called before")
	}
	other := r.newEvent()
	r.destroyEvent(nil, other)
	r.drain(1)
	for i, e := range all {
		r.requireDone(i == 1, e, "stream 1 alone was drained")
	}
	r.drain(2) // a stream without work
	r.work(1, long)
	r.requireDone(true, all[1], "more work was queued after it")
	r.syncEvent(nil, all[2])
	r.requireDone(true, all[2], "it was synchronized")
	for s := range busy {
		r.drain(s)
	}
	for _, e := range all {
		r.requireDone(true, e, "all streams were drained")
		r.destroyEvent(nil, e)
	}
}

// marksMove records an event again, on its stream and on another.
func marksMove(r *rig) {
	e := r.newEvent()
	r.work(1, long)
	r.record(nil, e, 1)
	r.drain(1)
	r.requireDone(true, e, "its stream was drained")
	r.work(1, long)
	r.requireDone(true, e, "its mark did not move")
	r.record(nil, e, 1)
	r.requireDone(false, e, "its mark moved after new work")
	r.work(2, long)
	r.record(nil, e, 2)
	r.drain(1)
	r.requireDone(false, e, "its mark moved to another stream")
	r.drain(2)
	r.requireDone(true, e, "that stream was drained")
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
	r.record(nil, e, 1) // the wait is for the earlier mark
	r.drain(2)
	r.requireDone(true, before, "a stream that waits for a later mark was drained")
	r.requireDone(false, e, "it was recorded again after the wait was queued")
	r.wait(nil, 3, e)
	r.destroyEvent(nil, e)
	r.work(1, long)
	r.record(nil, after, 1)
	r.record(nil, before, 3)
	r.requireDone(false, before, "its stream waits for an event that was destroyed")
	r.syncEvent(nil, before)
	r.requireDone(true, before, "it was synchronized")
	r.requireDone(false, after, "no stream waited for the last work")
	r.drain(1)
	r.requireDone(true, after, "its stream was drained")
	r.destroyEvent(nil, before)
	r.destroyEvent(nil, after)
}

// orderFollowsWaits checks the streams that are ordered after an event.
func orderFollowsWaits(r *rig) {
	e, link := r.newEvent(), r.newEvent()
	r.requireOrder(true, e, 1, "it was never recorded, so it is done")
	r.work(1, long)
	r.record(nil, e, 1)
	r.requireOrder(true, e, 1, "it is on the stream itself")
	r.requireOrder(false, e, 2, "no stream waited")
	r.wait(nil, 2, e)
	r.requireOrder(true, e, 2, "the stream waited")
	r.requireOrder(false, e, 3, "another stream waited")
	r.work(2, long)
	r.record(nil, link, 2)
	r.wait(nil, 3, link)
	r.requireOrder(true, e, 3, "the stream waited for a stream that waited")
	r.requireOrder(false, link, 1, "a wait orders in one direction")
	r.requireDone(false, e, "order does not imply completion")
	r.work(1, long)
	r.record(nil, e, 1)
	r.requireOrder(false, e, 2, "the stream waited for an earlier mark")
	r.requireOrder(true, e, 1, "it is on the stream itself")
	r.drain(1)
	r.requireOrder(true, e, 4, "it is done")
	r.syncDevice(nil)
	r.destroyEvent(nil, e)
	r.destroyEvent(nil, link)
}
