package verify

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace/torch"
)

// ErrNoHistory: the snapshot has no allocations to predict.
var ErrNoHistory = errors.New("the snapshot has no history of allocations to predict")

// FromTimeline returns the history of a device in a PyTorch snapshot. The caller sets Name and
// Hash.
//
// Errors: ErrNoHistory.
func FromTimeline(c *torch.Timeline) (*History, error) {
	if c.Report.Allocs == 0 {
		return nil, ErrNoHistory
	}
	f := timelineReader{c: c, pools: map[[2]uint64]alloc.PoolID{}}
	for _, s := range c.Segments {
		f.h.Segments = append(f.h.Segments, Segment{
			Region: regionOf(s), Stream: device.Stream(s.Stream), Pool: f.pool(s.Pool),
			PoolUnknown: s.PoolUnknown, Grows: s.Expandable,
			Small: s.Expandable && s.Small,
		})
	}
	for id, o := range c.Opening {
		f.h.Blocks = append(f.h.Blocks, Block{uint64(id), device.Addr(o.Addr), device.Size(o.Size), device.Size(o.Granted)})
		f.addrs = append(f.addrs, device.Addr(o.Addr))
	}
	slices.SortFunc(f.h.Blocks, func(a, b Block) int { return cmp.Compare(a.Addr, b.Addr) })
	n := len(c.Traffic) + len(c.Endings)
	for _, s := range c.Steps {
		if s == torch.Alloc || s == torch.Free || s == torch.Completed {
			n++
		}
	}
	f.h.Steps, f.addrs = make([]Step, 0, n), slices.Grow(f.addrs, c.Report.Allocs)
	err := f.steps()
	return &f.h, err
}

func regionOf(s torch.HeldSegment) device.Region {
	return device.Region{Addr: device.Addr(s.Addr), Size: device.Size(s.Size)}
}

// timelineReader converts a timeline to a history.
type timelineReader struct {
	c     *torch.Timeline
	h     History
	addrs []device.Addr              // by ID: address of the allocation
	pools map[[2]uint64]alloc.PoolID // private pools by their IDs in the file
}

func (f *timelineReader) pool(p [2]uint64) alloc.PoolID {
	if p == [2]uint64{} {
		return 0
	}
	id, ok := f.pools[p]
	if !ok {
		id = alloc.PoolID(len(f.pools) + 1)
		f.pools[p] = id
		f.h.Pools = append(f.h.Pools, p)
	}
	return id
}

// steps converts the entries in order. A free takes effect when it completes.
func (f *timelineReader) steps() error {
	from, traffic, endings := &f.c.Device.History, f.c.Traffic, f.c.Endings
	for i, step := range f.c.Steps {
		if len(traffic) > 0 && traffic[0].Entry == i {
			t := traffic[0]
			traffic = traffic[1:]
			f.h.Steps = append(f.h.Steps, f.traffic(t))
			continue
		}
		id := f.c.IDs[i]
		switch step {
		case torch.Alloc:
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
		case torch.Free, torch.Completed:
			f.free(i, id)
		case torch.None:
			if e := from.At(i); e.Action == torch.ActionConf {
				f.h.Steps = append(f.h.Steps, Step{Kind: Configure, Event: i, Conf: from.Confs[e.Category]})
			}
		}
	}
	return nil
}

func (f *timelineReader) traffic(t torch.Traffic) Step {
	r := regionOf(t.Segment)
	s := Step{
		Event: t.Entry, Addr: r.Addr, Size: r.Size, Stream: device.Stream(t.Segment.Stream), Pool: f.pool(t.Segment.Pool),
		Small: t.Segment.Expandable && t.Segment.Small, PoolUnknown: t.Taken && t.Segment.PoolUnknown,
	}
	switch {
	case t.Segment.Expandable && t.Taken:
		s.Kind = SegmentMap
	case t.Segment.Expandable:
		s.Kind = SegmentUnmap
	case t.Taken:
		s.Kind = SegmentAlloc
	default:
		s.Kind = SegmentFree
	}
	return s
}

func (f *timelineReader) free(entry int, id uint32) {
	f.h.Steps = append(f.h.Steps, Step{Kind: Free, Event: entry, ID: uint64(id), Addr: f.addrs[id]})
}
