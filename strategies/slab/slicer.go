package slab

import (
	"errors"
	"math"
	"math/bits"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/bitset"
	"github.com/vramyard/vramyard/internal/growth"
	"github.com/vramyard/vramyard/internal/planted"
	"github.com/vramyard/vramyard/internal/regions"
)

// labelDirect marks a region that is one block.
const labelDirect = -1

// slicer is the parent of the cells of [Caches]: it cuts regions into slices of equal
// size, and any slice can become a slab of any class. It is also the source that its pool
// of regions takes them from, so that they are booked in the whole: the pool's own account
// is of slices alone, and its next region in proportion to them, not to blocks beside them.
type slicer struct {
	pool  growth.Pool
	own   alloc.Stats  // the pool's account
	held  regions.Set  // every region, those of single blocks too; a label is a row or labelDirect
	total *alloc.Stats // of the strategy
	limit device.Size  // most to hold in all; 0 for no bound

	shift uint8       // log2 of a slice
	align device.Size // asked of regions
	rows  []row       // by number
	open  bitset.Set  // rows with a slice that no slab has
	spare []int32     // numbers of no row
	loose int         // slices that no slab has
	next  int32       // row that is being reserved
	err   error       // why the last region could not be had
	stuck error       // why a region without a slab could not go back, since Trim last asked
}

// row is a region that is cut into slices.
type row struct {
	region device.Region
	taken  int32      // slices that slabs have
	free   bitset.Set // slices that none has
	slabs  []int32    // of every slice, the slab that has it; none
}

// newSlicer returns a slicer that holds nothing.
func newSlicer(src device.Source, c Config, total *alloc.Stats) *slicer {
	s := &slicer{
		total: total, limit: c.Limit, shift: uint8(bits.TrailingZeros64(uint64(c.SlabBytes))),
		align: min(c.AlignBytes, c.SlabBytes),
	}
	s.held = regions.New(src, total)
	p := c.policy()
	if p.Kind != growth.Whole {
		p.Limit = 0 // which is of all regions, and kept by Reserve
	}
	s.pool = growth.New(s, &s.own, p)
	total.Limit, total.NextRegion = c.Limit, s.pool.NextRegion()
	return s
}

// Reserve implements [device.Source] for the pool, within the limit.
func (s *slicer) Reserve(size, align device.Size) (device.Region, error) {
	return s.reserve(size, align, s.next)
}

// reserve takes a region, within the limit.
func (s *slicer) reserve(size, align device.Size, label int32) (device.Region, error) {
	bounded := s.limit != 0 && !(planted.Enabled && planted.Is("caches/limit-of-slices-only") && label == labelDirect)
	if bounded && (s.total.Reserved >= s.limit || size > s.limit-s.total.Reserved) {
		return device.Region{}, regions.ErrLimit
	}
	r, err := s.held.Reserve(size, align, label)
	if err == nil && bounded && s.total.Reserved > s.limit {
		// The device rounds up. What it does not take back again stays as slack, for Trim.
		return device.Region{}, errors.Join(regions.ErrLimit, s.held.Release(r.Addr))
	}
	return r, err
}

// Release implements [device.Source] for the pool.
func (s *slicer) Release(a device.Addr) error { return s.held.Release(a) }

// bytes returns the bytes of a slice.
func (s *slicer) bytes() device.Size { return 1 << s.shift }

// Take implements [Parent]: the lowest slice that no slab has, of the row with the lowest
// number, or of a new one.
func (s *slicer) Take(_ int, slab int32, more bool) (Piece, bool) {
	n, ok := s.open.Min()
	if planted.Enabled && planted.Is("caches/grows-first") && more {
		ok = false
	}
	if !ok {
		if !more {
			return Piece{}, false
		}
		if n, ok = s.grow(); !ok {
			return Piece{}, false
		}
	}
	w := &s.rows[n]
	i, _ := w.free.Min()
	w.free.Remove(i)
	w.slabs[i] = slab
	if w.taken == 0 {
		s.pool.Occupied(w.region.Size)
	}
	w.taken++
	s.loose--
	if w.free.Len() == 0 && !(planted.Enabled && planted.Is("caches/row-left-open")) {
		s.open.Remove(n)
	}
	return Piece{Addr: w.region.Addr.Add(device.Size(i) << s.shift), Handle: n}, true
}

// Give implements [Parent]. A region without a slab goes back to the device if the policy
// says so; if the device refuses, it stays and its slices with it.
func (s *slicer) Give(p Piece) {
	w := &s.rows[p.Handle]
	i := uint32(p.Addr.Sub(w.region.Addr) >> s.shift)
	w.free.Add(i)
	w.slabs[i] = none
	w.taken--
	s.loose++
	s.open.Add(p.Handle)
	if w.taken == 0 && s.pool.Vacated(w.region.Size) {
		if err := s.drop(p.Handle); err != nil && s.stuck == nil {
			s.stuck = err
		}
	}
}

// grow takes one more region and returns the number of its row.
func (s *slicer) grow() (n uint32, ok bool) {
	s.next = int32(len(s.rows))
	if len(s.spare) > 0 {
		s.next = s.spare[len(s.spare)-1]
	}
	var r device.Region
	if r, s.err = s.pool.Grow(s.bytes(), s.align, s.next); s.err != nil {
		return 0, false
	}
	s.total.NextRegion = s.pool.NextRegion()
	n = uint32(s.next)
	if len(s.spare) > 0 {
		s.spare = s.spare[:len(s.spare)-1]
	} else {
		s.rows = append(s.rows, row{})
		s.open.Grow(len(s.rows))
	}
	w := &s.rows[n]
	w.region = r
	// Slices are numbered by 32 bits; no region of a policy has more.
	count := int(min(r.Size>>s.shift, math.MaxInt32))
	w.free.Clear()
	w.free.Grow(count)
	w.slabs = w.slabs[:0]
	for i := range count {
		w.free.Add(uint32(i))
		w.slabs = append(w.slabs, none)
	}
	s.loose += count
	s.open.Add(n)
	return n, true
}

// drop gives a region without a slab back to the device. On error, the device's, it stays.
func (s *slicer) drop(n uint32) error {
	w := &s.rows[n]
	if err := s.pool.Drop(w.region.Addr); err != nil {
		return err
	}
	s.loose -= len(w.slabs)
	s.open.Remove(n)
	w.region = device.Region{}
	s.spare = append(s.spare, int32(n))
	return nil
}

// trim gives every region without a slab back to the device. Those that the device does
// not take stay; the error is its first.
func (s *slicer) trim() (first error) {
	for n := range s.rows {
		if w := &s.rows[n]; w.region.Size != 0 && w.taken == 0 {
			if err := s.drop(uint32(n)); err != nil && first == nil {
				first = err
			}
		}
	}
	for i := s.held.Len() - 1; i >= 0; i-- {
		h := s.held.At(i)
		if h.Label != labelDirect && s.rowOf(h) == nil {
			if err := s.held.Release(h.Addr); err != nil && first == nil {
				first = err
			}
		}
	}
	return first
}

// rowOf returns the row of a region, nil if it is none: a single block, or a region that
// the limit had no room for and that the device did not take back.
func (s *slicer) rowOf(h regions.Held) *row {
	if h.Label < 0 || int(h.Label) >= len(s.rows) || s.rows[h.Label].region != h.Region {
		return nil
	}
	return &s.rows[h.Label]
}

// rowBytes is the host memory of a row without what it points to.
const rowBytes = 136

// hostBytes returns the host memory of the slicer.
func (s *slicer) hostBytes() device.Size {
	n := s.held.Bytes() + s.pool.Bytes() + s.open.Bytes() + device.Size(cap(s.rows))*rowBytes + device.Size(cap(s.spare))*4
	for i := range s.rows {
		n += s.rows[i].free.Bytes() + device.Size(cap(s.rows[i].slabs))*4
	}
	return n
}
