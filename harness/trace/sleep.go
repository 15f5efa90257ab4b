package trace

import (
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/device"
)

// Sleep tracks the pauses of a trace and the bytes of the live blocks that sleep. The zero value is
// ready for use. Every call takes O(1), amortized; it takes 16 bytes per slot.
type Sleep struct {
	all        bool                // the last event without a tag was a pause
	apart      map[uint32]struct{} // tags whose state differs from that
	live       device.Size         // bytes of all live blocks
	liveApart  device.Size         // of those whose tags are in apart
	liveByTag  []device.Size
	allocation []sleeper // by slot
}

// sleeper is the allocation in a slot.
type sleeper struct {
	tag  uint32
	size device.Size // 0 if it is not live
}

// Asleep returns the bytes of the live blocks that sleep.
func (s *Sleep) Asleep() device.Size {
	if s.all {
		return s.live - s.liveApart
	}
	return s.liveApart
}

func (s *Sleep) paused(tag uint32) bool {
	_, apart := s.apart[tag]
	return s.all != apart
}

// Check returns why an event of src cannot follow the events so far: it requests, frees or uses a
// block of a paused tag, or pauses or resumes what is so already. The event has its slot.
func (s *Sleep) Check(src Source, e *Event) error {
	name := func(tag uint32) string {
		if tag == 0 {
			return "every block without a tag of its own"
		}
		return "tag " + clip([]byte(src.TagOf(&Event{Tag: tag})))
	}
	switch e.Kind {
	case Alloc, Refused:
		if s.paused(e.Tag) {
			return fmt.Errorf("a request while %s is paused", name(e.Tag))
		}
	case Free, Use:
		if tag := s.allocation[e.Slot].tag; s.paused(tag) {
			return fmt.Errorf("id %d sleeps: %s is paused", e.ID, name(tag))
		}
	case Pause, Resume:
		pauses := e.Kind == Pause
		switch {
		case s.paused(e.Tag) != pauses, e.Tag == 0 && len(s.apart) > 0:
		case e.Tag == 0 && pauses:
			return errors.New("everything is paused already")
		case e.Tag == 0:
			return errors.New("nothing is paused")
		case pauses:
			return fmt.Errorf("%s is paused already", name(e.Tag))
		default:
			return fmt.Errorf("%s is not paused", name(e.Tag))
		}
	}
	return nil
}

// Step processes the next event of the trace, which has its slot.
func (s *Sleep) Step(e *Event) {
	switch e.Kind {
	case Alloc, LiveAtStart:
		s.allocation = grown(s.allocation, e.Slot)
		s.allocation[e.Slot] = sleeper{e.Tag, e.Size}
		s.count(e.Tag, e.Size)
	case Free:
		s.allocation = grown(s.allocation, e.Slot)
		p := &s.allocation[e.Slot]
		s.count(p.tag, -p.size)
		p.size = 0
	case Pause, Resume:
		s.turn(e)
	}
}

// count adds n bytes, modulo 2^64, to the live blocks of a tag.
func (s *Sleep) count(tag uint32, n device.Size) {
	s.liveByTag = grown(s.liveByTag, tag)
	s.liveByTag[tag] += n
	s.live += n
	if _, apart := s.apart[tag]; apart {
		s.liveApart += n
	}
}

// turn applies a Pause or a Resume.
func (s *Sleep) turn(e *Event) {
	if e.Tag == 0 {
		s.all, s.liveApart = e.Kind == Pause, 0
		clear(s.apart)
		return
	}
	s.liveByTag = grown(s.liveByTag, e.Tag)
	if _, apart := s.apart[e.Tag]; apart {
		delete(s.apart, e.Tag)
		s.liveApart -= s.liveByTag[e.Tag]
		return
	}
	if s.apart == nil {
		s.apart = map[uint32]struct{}{}
	}
	s.apart[e.Tag] = struct{}{}
	s.liveApart += s.liveByTag[e.Tag]
}
