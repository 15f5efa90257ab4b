package verify_test

import (
	"errors"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/verify"
)

// model is the plain part of PyTorch's caching allocator, without settings, expandable segments or
// private pools, written from its description and as simply as can be: every chunk in one slice, by
// address. It shows that histories are read and told rightly, whatever a strategy may do.
type model struct {
	alloc.Inspector // what nobody calls here
	src             device.Source
	chunks          []alloc.Chunk
}

// openModel is the Open of a target.
func openModel(src device.Source, opening []alloc.Chunk) (verify.Seedable, error) {
	return &model{src: src, chunks: slices.Clone(opening)}, nil
}

// plain is the model as a target.
var plain = verify.Target{Strategy: "model", Open: openModel}

// Alloc implements alloc.Allocator: the smallest free chunk of the pool and the stream that serves,
// the lowest of them, or a new segment.
func (m *model) Alloc(r alloc.Request) (alloc.Block, error) {
	n := max(512, (r.Size+511)/512*512)
	class, segment := power.ClassLarge, (n+2*device.MiB-1)/(2*device.MiB)*(2*device.MiB)
	switch {
	case n <= device.MiB:
		class, segment = power.ClassSmall, 2*device.MiB
	case n < 10*device.MiB:
		segment = 20 * device.MiB
	}
	best := -1
	for i, c := range m.chunks {
		if c.State == alloc.Free && c.Class == class && c.Stream == r.Stream && c.Size >= n &&
			(best < 0 || c.Size < m.chunks[best].Size) {
			best = i
		}
	}
	if best < 0 {
		region, err := m.src.Reserve(segment, 0)
		if err != nil {
			return alloc.Block{}, alloc.ErrOutOfMemory
		}
		best, _ = m.find(region.Addr)
		m.chunks = slices.Insert(m.chunks, best, alloc.Chunk{
			Region: region.Addr, Addr: region.Addr, Size: region.Size, Class: class, Stream: r.Stream,
		})
	}
	if rest := m.chunks[best].Size - n; class == power.ClassSmall && rest >= 512 || rest > device.MiB {
		tail := m.chunks[best]
		tail.Addr, tail.Size = tail.Addr.Add(n), rest
		m.chunks = slices.Insert(m.chunks, best+1, tail)
		m.chunks[best].Size = n
	}
	c := &m.chunks[best]
	c.State, c.Requested = alloc.Live, r.Size
	return alloc.Block{Addr: c.Addr, Size: c.Size}, nil
}

// find returns the place of the chunk at a.
func (m *model) find(a device.Addr) (int, bool) {
	return slices.BinarySearchFunc(m.chunks, a, func(c alloc.Chunk, a device.Addr) int {
		switch {
		case c.Addr < a:
			return -1
		case c.Addr > a:
			return 1
		}
		return 0
	})
}

// Free implements alloc.Allocator.
func (m *model) Free(a device.Addr) error {
	i, ok := m.find(a)
	if !ok || m.chunks[i].State != alloc.Live {
		return alloc.ErrInvalidFree
	}
	m.chunks[i].State, m.chunks[i].Requested = alloc.Free, 0
	for _, j := range []int{i, i - 1} { // the one above first, so that i stays
		if j < 0 || j+1 >= len(m.chunks) {
			continue
		}
		low, high := &m.chunks[j], m.chunks[j+1]
		if low.Region == high.Region && low.State == alloc.Free && high.State == alloc.Free {
			low.Size += high.Size
			m.chunks = slices.Delete(m.chunks, j+1, j+2)
		}
	}
	return nil
}

// ReleaseSegment implements verify.Seedable.
func (m *model) ReleaseSegment(at device.Addr) error {
	i, ok := m.find(at)
	if !ok || m.chunks[i].State != alloc.Free || i+1 < len(m.chunks) && m.chunks[i+1].Region == at {
		return errors.New("the segment is in use")
	}
	m.chunks = slices.Delete(m.chunks, i, i+1)
	return m.src.Release(at)
}

// Walk implements alloc.Inspector.
func (m *model) Walk(yield func(alloc.Chunk) bool) {
	for _, c := range m.chunks {
		if !yield(c) {
			return
		}
	}
}

// Check implements alloc.Inspector.
func (m *model) Check() error { return nil }

// Close implements alloc.Strategy.
func (m *model) Close() error {
	for _, c := range m.chunks {
		if c.Addr == c.Region {
			if err := m.src.Release(c.Addr); err != nil {
				return err
			}
		}
	}
	return nil
}
