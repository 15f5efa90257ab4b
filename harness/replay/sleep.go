package replay

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// SleepFigures are the figures of a trace with pauses. Sizes are bytes, measured after each event.
// Strategies do not learn of pauses: the granted bytes of paused blocks sleep.
type SleepFigures struct {
	PeakAsleep device.Size `json:"peak_asleep_bytes"` // most bytes asleep at once
	PeakAwake  device.Size `json:"peak_awake_bytes"`  // most reserved bytes that were not asleep
	// most reserved bytes that were not asleep, from the last of several pauses to the next resume
	HeldAsleep device.Size `json:"held_asleep_bytes"`
}

// sleeper measures the figures of pauses.
type sleeper struct {
	trace.Sleep
	figures SleepFigures
	asleep  bool        // a pause was the last pause or resume
	falling bool        // only trims have followed it
	held    device.Size // highest since then
}

// slept processes an event that was replayed.
func (r *runner) slept(e *trace.Event, o *op) {
	s, own := r.sleep, *e
	if e.Kind == trace.Alloc || e.Kind == trace.LiveAtStart {
		own.Size = 0
		if b := &r.blocks[o.place]; b.live {
			own.Size = b.size
		}
	}
	s.Step(&own)
	asleep := s.Asleep()
	awake := r.held() - min(r.held(), asleep)
	s.figures.PeakAsleep = max(s.figures.PeakAsleep, asleep)
	s.figures.PeakAwake = max(s.figures.PeakAwake, awake)
	s.falling = e.Kind == trace.Pause || s.falling && e.Kind == trace.Trim
	switch {
	case e.Kind == trace.Resume:
		s.wake()
	case s.falling:
		s.asleep, s.held = true, awake
	default:
		s.held = max(s.held, awake)
	}
}

// wake ends a sleep, if there is one.
func (s *sleeper) wake() {
	if s.asleep {
		s.figures.HeldAsleep = max(s.figures.HeldAsleep, s.held)
	}
	s.asleep = false
}
