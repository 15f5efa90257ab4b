package props_test

import (
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// The planted bugs of slotted; each must be found.
const (
	ignoresUses      bug = "a recorded stream is forgotten"
	forgetsSecond    bug = "only the first recorded stream is waited for"
	marksAtUse       bug = "the mark is recorded when the stream is, not when the block is freed"
	crossesStreams   bug = "memory that another stream freed is taken without waiting"
	waitsOnWrong     bug = "the stream that freed the memory waits, not the one that gets it"
	reusesMark       bug = "the mark of a free goes to the next free while it is still needed"
	pollsNothing     bug = "a poll finds nothing"
	pollsEverything  bug = "a poll takes everything for finished"
	pollLies         bug = "a poll says no bytes"
	pollHidesFault   bug = "a poll keeps an error of the device to itself"
	freesPending     bug = "a block can be freed again while it is pending"
	keepsEvents      bug = "close keeps the events that are in use"
	usesAfterFree    bug = "a stream can be recorded for a pending block"
	losesUnrecorded  bug = "a mark that the device refuses is not tried again"
	placesByStream   bug = "memory for stream 2 comes from the other end"
	useSurfacesFault bug = "recording a stream fails when the device refuses a call"
)

// slot is a piece of memory that one block takes whole.
type slot struct {
	alloc.Chunk
	uses []device.Stream // recorded, while it is live
	todo []device.Stream // to be marked: the device refused
	wait []device.Event  // marks of the streams that were recorded
	own  device.Event    // mark of the stream that freed it; zero if that has finished
}

// slotted is a small strategy with streams, meant to be obviously right: a region is cut into
// slots of one size. With a bug it is wrong.
type slotted struct {
	src     device.Source
	streams device.Streams
	bug     bug
	regions [][]slot
	idle    []device.Event
	stats   alloc.Stats
	closed  bool
}

const (
	slotSize    = 256
	slotsEach   = 2
	slotRegions = 3
)

func newSlotted(src device.Source, b bug) (*slotted, error) {
	streams, ok := device.StreamsOf(src)
	if !ok {
		return nil, device.ErrUnsupported
	}
	return &slotted{src: src, streams: streams, bug: b}, nil
}

func (s *slotted) Alloc(r alloc.Request) (alloc.Block, error) {
	switch {
	case s.closed:
		return alloc.Block{}, alloc.ErrClosed
	case r.Size == 0 || r.Size > slotSize || r.Align > slotSize || r.Align != 0 && !device.IsPowerOfTwo(r.Align):
		return alloc.Block{}, alloc.ErrInvalidRequest
	}
	_ = s.settle() // what the device refuses to tell is looked for later
	for _, ready := range []func(*slot) bool{
		func(c *slot) bool { return c.own == 0 || c.Stream == r.Stream || s.bug == crossesStreams },
		func(c *slot) bool {
			done, err := s.streams.Done(c.own)
			return err == nil && done
		},
		func(c *slot) bool {
			if s.bug == waitsOnWrong {
				return s.streams.Wait(c.Stream, c.own) == nil
			}
			return s.streams.Wait(r.Stream, c.own) == nil
		},
	} {
		if b, ok := s.take(r, ready); ok {
			return b, nil
		}
	}
	if err := s.grow(); err != nil {
		s.stats.OOMs++
		return alloc.Block{}, alloc.ErrOutOfMemory
	}
	b, _ := s.take(r, func(c *slot) bool { return c.own == 0 })
	return b, nil
}

// take grants the first free slot that is ready.
func (s *slotted) take(r alloc.Request, ready func(*slot) bool) (alloc.Block, bool) {
	for _, region := range s.regions {
		for i := range region {
			c := &region[i]
			if s.bug == placesByStream && r.Stream == 2 {
				c = &region[len(region)-1-i]
			}
			if c.State != alloc.Free || !ready(c) {
				continue
			}
			s.retire(&c.own)
			c.State, c.Requested, c.Stream, c.Tag, c.uses = alloc.Live, r.Size, r.Stream, r.Tag, nil
			s.stats.Granted(r.Size, slotSize)
			return alloc.Block{Addr: c.Addr, Size: slotSize}, true
		}
	}
	return alloc.Block{}, false
}

// grow adds a region.
func (s *slotted) grow() error {
	if len(s.regions) == slotRegions {
		return alloc.ErrOutOfMemory
	}
	r, err := s.src.Reserve(slotSize*slotsEach, slotSize)
	if err != nil {
		s.stats.ReserveFailures++
		return err
	}
	s.stats.RegionAdded(r.Size)
	var region []slot
	for i := range slotsEach {
		at := r.Addr.Add(device.Size(i) * slotSize)
		region = append(region, slot{Chunk: alloc.Chunk{Region: r.Addr, Addr: at, Size: slotSize, Class: alloc.NoClass}})
	}
	s.regions = append(s.regions, region)
	return nil
}

// find returns the slot at a, if it is in the state.
func (s *slotted) find(a device.Addr, in alloc.State) *slot {
	for _, region := range s.regions {
		for i := range region {
			if region[i].Addr == a && region[i].State == in {
				return &region[i]
			}
		}
	}
	return nil
}

func (s *slotted) RecordStream(a device.Addr, on device.Stream) error {
	if s.closed {
		return alloc.ErrClosed
	}
	c := s.find(a, alloc.Live)
	if c == nil && s.bug == usesAfterFree && s.find(a, alloc.Pending) != nil {
		return nil
	}
	if c == nil {
		return alloc.ErrInvalidFree
	}
	switch {
	case s.bug == useSurfacesFault:
		e, err := s.streams.NewEvent()
		s.retire(&e)
		if err != nil {
			return err
		}
	case s.bug == marksAtUse:
		if e, err := s.mark(on); err == nil {
			c.wait = append(c.wait, e)
			return nil
		}
	case s.bug == ignoresUses && s.stats.Allocs > 1, s.bug == forgetsSecond && len(c.uses) > 0:
		return nil
	}
	if on != c.Stream && !slices.Contains(c.uses, on) {
		c.uses = append(c.uses, on)
	}
	return nil
}

// mark returns an event behind what is queued on a stream.
func (s *slotted) mark(on device.Stream) (e device.Event, err error) {
	if n := len(s.idle); n > 0 {
		e, s.idle = s.idle[n-1], s.idle[:n-1]
	} else if e, err = s.streams.NewEvent(); err != nil {
		return 0, err
	}
	if err = s.streams.Record(e, on); err != nil {
		s.idle = append(s.idle, e)
		return 0, err
	}
	if s.bug == reusesMark && len(s.idle) == 0 {
		s.idle = append(s.idle, e)
	}
	return e, nil
}

// retire keeps an event for later.
func (s *slotted) retire(e *device.Event) {
	if *e != 0 && !slices.Contains(s.idle, *e) {
		s.idle = append(s.idle, *e)
	}
	*e = 0
}

func (s *slotted) Free(a device.Addr) error {
	if s.closed {
		return alloc.ErrClosed
	}
	c := s.find(a, alloc.Live)
	if c == nil {
		if s.bug == freesPending && s.find(a, alloc.Pending) != nil {
			return nil
		}
		return alloc.ErrInvalidFree
	}
	s.stats.Freed(c.Requested, slotSize)
	s.stats.Active += slotSize // until it is found to be finished
	c.State, c.todo = alloc.Pending, c.uses
	own, err := s.mark(c.Stream)
	if c.own = own; err != nil {
		c.todo = append(c.todo, c.Stream)
	}
	_ = s.record(c) // tried again when somebody looks
	s.clear(c)
	return nil
}

// record marks the streams of a pending slot that are not marked yet.
func (s *slotted) record(c *slot) error {
	for len(c.todo) > 0 {
		e, err := s.mark(c.todo[0])
		if err != nil && s.bug != losesUnrecorded {
			return err
		}
		if c.todo = c.todo[1:]; err == nil {
			c.wait = append(c.wait, e)
		}
	}
	return nil
}

// clear makes a slot free that waits for nothing more.
func (s *slotted) clear(c *slot) {
	if len(c.wait) > 0 || len(c.todo) > 0 {
		return
	}
	c.State, c.Requested, c.Tag = alloc.Free, 0, 0
	if c.own == 0 {
		c.Stream = 0
	}
	s.stats.Active -= slotSize
}

// settle looks which pending slots are finished.
func (s *slotted) settle() (first error) {
	for _, region := range s.regions {
		for i := range region {
			c := &region[i]
			if c.State != alloc.Pending {
				continue
			}
			err := s.record(c)
			for len(c.wait) > 0 && err == nil {
				var done bool
				if done, err = s.streams.Done(c.wait[0]); !done {
					break
				}
				s.retire(&c.wait[0])
				c.wait = c.wait[1:]
			}
			if first == nil {
				first = err
			}
			s.clear(c)
		}
	}
	return first
}

func (s *slotted) Poll() (device.Size, error) {
	before := s.stats.Active
	var err error
	switch s.bug {
	case pollsNothing:
		return 0, nil
	case pollsEverything:
		for _, region := range s.regions {
			for i := range region {
				if region[i].State == alloc.Pending {
					for j := range region[i].wait {
						s.retire(&region[i].wait[j])
					}
					region[i].wait, region[i].todo = nil, nil
					s.clear(&region[i])
				}
			}
		}
	default:
		err = s.settle()
	}
	switch s.bug {
	case pollLies:
		return 0, err
	case pollHidesFault:
		err = nil
	}
	return before - s.stats.Active, err
}

func (s *slotted) Close() (err error) {
	s.closed = true
	for i := len(s.regions) - 1; i >= 0; i-- {
		if e := s.src.Release(s.regions[i][0].Region); e != nil {
			err = e
			continue
		}
		for j := range s.regions[i] {
			c := &s.regions[i][j]
			if s.bug == keepsEvents {
				break
			}
			s.retire(&c.own)
			for k := range c.wait {
				s.retire(&c.wait[k])
			}
		}
		s.stats.RegionReleased(slotSize * slotsEach)
		s.regions = slices.Delete(s.regions, i, i+1)
	}
	if len(s.regions) == 0 {
		s.stats.Emptied()
	}
	s.idle = slices.DeleteFunc(s.idle, func(e device.Event) bool {
		failed := s.streams.DestroyEvent(e)
		if failed != nil {
			err = failed
		}
		return failed == nil
	})
	return err
}

func (s *slotted) Walk(yield func(alloc.Chunk) bool) {
	for _, region := range s.regions {
		for _, c := range region {
			if !yield(c.Chunk) {
				return
			}
		}
	}
}

func (s *slotted) MaxRequest() device.Size { return slotSize }
func (s *slotted) Stats() alloc.Stats      { return s.stats }
func (s *slotted) Check() error            { return nil }
