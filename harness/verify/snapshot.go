package verify

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/history"
)

// Errors of histories that nothing can be predicted of.
var (
	ErrNoHistory  = errors.New("the snapshot has no history of allocations to predict")
	ErrExpandable = errors.New("the snapshot has expandable segments, whose ranges of addresses are not in the file: they cannot be predicted")
)

// FromCourse returns the history that a device's part of a PyTorch snapshot is. Name and hash are the
// caller's to set.
//
// Errors: ErrNoHistory; ErrExpandable.
func FromCourse(c *history.Course) (*History, error) {
	if c.Report.Allocs == 0 {
		return nil, ErrNoHistory
	}
	f := courseReader{c: c, pools: map[[2]uint64]alloc.PoolID{}}
	for _, s := range c.Segments {
		if s.Expandable {
			return nil, ErrExpandable
		}
		f.h.Segments = append(f.h.Segments, Segment{regionOf(s), device.Stream(s.Stream), f.pool(s.Pool)})
	}
	for id, o := range c.Opening {
		f.h.Blocks = append(f.h.Blocks, Block{uint64(id), device.Addr(o.Addr), device.Size(o.Size), device.Size(o.Granted)})
		f.addrs = append(f.addrs, device.Addr(o.Addr))
	}
	slices.SortFunc(f.h.Blocks, func(a, b Block) int { return cmp.Compare(a.Addr, b.Addr) })
	return &f.h, f.steps()
}

// regionOf returns where a segment lies.
func regionOf(s history.Segment) device.Region {
	return device.Region{Addr: device.Addr(s.Addr), Size: device.Size(s.Size)}
}

// courseReader makes a history of a course.
type courseReader struct {
	c     *history.Course
	h     History
	addrs []device.Addr              // by id: where the allocation lies
	pools map[[2]uint64]alloc.PoolID // private pools by their numbers in the file
}

// pool returns the number of a pool.
func (f *courseReader) pool(p [2]uint64) alloc.PoolID {
	if p == [2]uint64{} {
		return 0
	}
	id, ok := f.pools[p]
	if !ok {
		id = alloc.PoolID(len(f.pools) + 1)
		f.pools[p] = id
	}
	return id
}

// steps takes what happened, in the order of the entries. A free takes effect where it is completed.
func (f *courseReader) steps() error {
	from, traffic, endings := &f.c.Device.History, f.c.Traffic, f.c.Endings
	for i, step := range f.c.Steps {
		if len(traffic) > 0 && traffic[0].Entry == i {
			t := traffic[0]
			traffic = traffic[1:]
			if t.Segment.Expandable {
				return ErrExpandable
			}
			r := regionOf(t.Segment)
			s := Step{Kind: SegmentFree, Event: i, Addr: r.Addr, Size: r.Size, Stream: device.Stream(t.Segment.Stream)}
			if t.Taken {
				s.Kind, s.Pool = SegmentAlloc, f.pool(t.Segment.Pool)
			}
			f.h.Steps = append(f.h.Steps, s)
			continue
		}
		id := f.c.IDs[i]
		switch step {
		case history.Alloc:
			for ; len(endings) > 0 && endings[0].Entry == i; endings = endings[1:] {
				f.free(i, endings[0].ID)
			}
			e := from.At(i)
			if e.Size == 0 || e.Size >= beyond {
				return fmt.Errorf("entry %d: an allocation of %d bytes: want more than 0 and less than 2^60", i, e.Size)
			}
			f.addrs = append(f.addrs, device.Addr(e.Addr))
			f.h.Steps = append(f.h.Steps, Step{
				Kind: Alloc, Event: i, ID: uint64(id), Addr: device.Addr(e.Addr), Size: device.Size(e.Size),
				Stream: device.Stream(from.Streams[e.Stream]),
			})
		case history.Free, history.Completed:
			f.free(i, id)
		}
	}
	return nil
}

// free takes the end of an allocation.
func (f *courseReader) free(entry int, id uint32) {
	f.h.Steps = append(f.h.Steps, Step{Kind: Free, Event: entry, ID: uint64(id), Addr: f.addrs[id]})
}
