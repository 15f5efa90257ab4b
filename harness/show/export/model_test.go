package export_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/vramyard/vramyard/harness/trace/torch"
)

// model is memory as the entries of a history say it is, kept as plainly as can be.
type model struct {
	segments map[uint64]uint64 // whole ones
	mapped   [][2]uint64       // ranges of mapped memory, by address, those side by side joined
	blocks   map[uint64]held
}

// held is a block that is not free.
type held struct {
	requested uint64
	stream    int64
	given     bool
}

// replayed applies a history to empty memory.
func replayed(h *torch.History) (*model, error) {
	m := &model{segments: map[uint64]uint64{}, blocks: map[uint64]held{}}
	last := int64(0)
	for i := range h.Len() {
		e := h.At(i)
		if err := m.apply(e, h.Streams[e.Stream]); err != nil {
			return nil, fmt.Errorf("entry %d, %v %#x %d: %w", i, e.Action, e.Addr, e.Size, err)
		}
		if e.Time < last {
			return nil, fmt.Errorf("entry %d: time goes back", i)
		}
		last = e.Time
	}
	return m, nil
}

// apply applies an entry.
func (m *model) apply(e torch.Entry, stream int64) error {
	b, found := m.blocks[e.Addr]
	switch e.Action {
	case torch.ActionSnapshot: // of nothing at all
		if e.Addr != 0 || e.Size != 0 || len(m.segments) > 0 {
			return fmt.Errorf("have %d segments", len(m.segments))
		}
	case torch.ActionAlloc:
		if found {
			return fmt.Errorf("a block of %d bytes is there", b.requested)
		}
		if !m.holds(e.Addr, e.Size) {
			return fmt.Errorf("no memory is held there")
		}
		m.blocks[e.Addr] = held{requested: e.Size, stream: stream}
	case torch.ActionFreeRequested:
		if !found || b != (held{e.Size, stream, false}) {
			return fmt.Errorf("have %+v", b)
		}
		b.given = true
		m.blocks[e.Addr] = b
	case torch.ActionFreeCompleted:
		if !found || b != (held{e.Size, stream, true}) {
			return fmt.Errorf("have %+v", b)
		}
		delete(m.blocks, e.Addr)
	case torch.ActionSegmentAlloc:
		if m.touches(e.Addr, e.Size) {
			return fmt.Errorf("memory is held there")
		}
		m.segments[e.Addr] = e.Size
	case torch.ActionSegmentFree:
		if m.segments[e.Addr] != e.Size || m.used(e.Addr, e.Size) {
			return fmt.Errorf("have a segment of %d bytes, used: %v", m.segments[e.Addr], m.used(e.Addr, e.Size))
		}
		delete(m.segments, e.Addr)
	case torch.ActionSegmentMap:
		if m.touches(e.Addr, e.Size) {
			return fmt.Errorf("memory is held there")
		}
		m.grow(e.Addr, e.Addr+e.Size)
	case torch.ActionSegmentUnmap:
		if !m.holds(e.Addr, e.Size) || m.used(e.Addr, e.Size) {
			return fmt.Errorf("held: %v, used: %v", m.holds(e.Addr, e.Size), m.used(e.Addr, e.Size))
		}
		m.shrink(e.Addr, e.Addr+e.Size)
	case torch.ActionOOM:
	default:
		return fmt.Errorf("unexpected")
	}
	return nil
}

// grow adds a mapped range.
func (m *model) grow(from, to uint64) {
	m.mapped = append(m.mapped, [2]uint64{from, to})
	slices.SortFunc(m.mapped, func(a, b [2]uint64) int { return int(int64(a[0]) - int64(b[0])) })
	var list [][2]uint64
	for _, r := range m.mapped {
		if n := len(list); n > 0 && list[n-1][1] == r[0] {
			list[n-1][1] = r[1]
			continue
		}
		list = append(list, r)
	}
	m.mapped = list
}

// shrink removes a range that is mapped.
func (m *model) shrink(from, to uint64) {
	i := slices.IndexFunc(m.mapped, func(r [2]uint64) bool { return r[0] <= from && to <= r[1] })
	r := m.mapped[i]
	m.mapped = slices.Delete(m.mapped, i, i+1)
	if r[0] < from {
		m.grow(r[0], from)
	}
	if to < r[1] {
		m.grow(to, r[1])
	}
}

// holds reports whether a range lies in one segment or in memory that is mapped.
func (m *model) holds(a, size uint64) bool {
	for _, r := range m.mapped {
		if r[0] <= a && a+size <= r[1] {
			return true
		}
	}
	for s, n := range m.segments {
		if s <= a && a+size <= s+n {
			return true
		}
	}
	return false
}

// touches reports whether some of a range is held.
func (m *model) touches(a, size uint64) bool {
	for _, r := range m.mapped {
		if r[0] < a+size && a < r[1] {
			return true
		}
	}
	for s, n := range m.segments {
		if s < a+size && a < s+n {
			return true
		}
	}
	return false
}

// used reports whether a block lies in a range.
func (m *model) used(a, size uint64) bool {
	for at := range m.blocks {
		if at >= a && at < a+size {
			return true
		}
	}
	return false
}

// total returns the bytes that are held.
func (m *model) total() (n uint64) {
	for _, r := range m.mapped {
		n += r[1] - r[0]
	}
	for _, size := range m.segments {
		n += size
	}
	return n
}

// agrees returns how the segments of a snapshot differ from the model.
func (m *model) agrees(segments []torch.Segment) error {
	seen, end := map[uint64]held{}, uint64(0)
	var grown model
	whole := map[uint64]uint64{}
	for i, s := range segments {
		if s.Addr < end {
			return fmt.Errorf("segment %d overlaps the one before", i)
		}
		if err := tiles(&s, seen); err != nil {
			return fmt.Errorf("segment %d at %#x: %w", i, s.Addr, err)
		}
		end = s.Addr + s.Total
		if s.Expandable {
			grown.grow(s.Addr, end)
		} else {
			whole[s.Addr] = s.Total
		}
	}
	if !maps.Equal(whole, m.segments) {
		return fmt.Errorf("segments %v, by the history %v", whole, m.segments)
	}
	if !slices.Equal(grown.mapped, m.mapped) {
		return fmt.Errorf("mapped %x, by the history %x", grown.mapped, m.mapped)
	}
	for a, b := range m.blocks {
		if x, ok := seen[a]; !ok || x.requested != b.requested || x.given != b.given {
			return fmt.Errorf("block at %#x: %+v, by the history %+v", a, x, b)
		}
	}
	if len(seen) != len(m.blocks) {
		return fmt.Errorf("%d blocks, by the history %d", len(seen), len(m.blocks))
	}
	return nil
}

// tiles checks the blocks of a segment and collects those that are not free.
func tiles(s *torch.Segment, seen map[uint64]held) error {
	at, sums := s.Addr, torch.Segment{}
	for i, b := range s.Blocks {
		if b.Addr != at || b.Size == 0 {
			return fmt.Errorf("block %d at %#x, want %#x", i, b.Addr, at)
		}
		at += b.Size
		if b.State == torch.Inactive {
			continue
		}
		if b.Requested > b.Size {
			return fmt.Errorf("block %d: %d bytes requested of %d", i, b.Requested, b.Size)
		}
		seen[b.Addr] = held{requested: b.Requested, given: b.State == torch.ActivePendingFree}
		sums.Active += b.Size
		sums.Requested += b.Requested
		if b.State == torch.ActiveAllocated {
			sums.Allocated += b.Size
		}
	}
	if at != s.Addr+s.Total {
		return fmt.Errorf("the blocks end at %#x of %#x", at, s.Addr+s.Total)
	}
	if s.Active != sums.Active || s.Requested != sums.Requested || s.Allocated != sums.Allocated {
		return fmt.Errorf("sums %+v", sums)
	}
	return nil
}
