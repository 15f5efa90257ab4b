package slab

import (
	"cmp"
	"math"
	"math/bits"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/regions"
	"github.com/vramyard/vramyard/strategies/internal/cells"
)

// labelDirect marks a region that is one block.
const labelDirect = -1

// gradeBits is the number of low bits of a region's label that hold the grade; the other bits hold
// the row.
const gradeBits = 5

// slicer is the parent of the cells. Classes with slabs of one size are a grade, which has regions
// of its own, cut into slices of that size. A slice can become a slab of any class of its grade.
// The slicer is also the source of the pools of the grades, so that their regions are counted in
// the stats of the strategy too.
type slicer struct {
	grades  []grade
	gradeOf []uint8      // by class: its grade
	held    regions.Set  // every region, including single blocks; a label is row and grade, or labelDirect
	total   *alloc.Stats // statistics of the strategy
	kept    kept         // regions of freed large blocks
	most    device.Size  // if regions are kept: the most bytes that were in the others at once
	limit   device.Size  // most bytes to hold in all regions; 0 for no bound
	span    device.Span  // limits with which it would have left room as often
	next    int32        // label of the region that is being reserved
	asked   device.Size  // bytes of the last reservation tried
	err     error        // error of that reservation
	stuck   error        // error of the device for a region that it did not take back since the last Trim
}

type grade struct {
	pool  regions.Pool
	own   alloc.Stats  // statistics of the pool
	shift uint8        // log2 of the bytes of a slice
	align device.Size  // alignment of regions
	rows  []row        // by number
	open  index.BitSet // rows with a free slice
	spare []int32      // unused numbers
	loose int          // free slices
	fresh int          // slices that have never been used; all are in one row, see Take
}

// row is a sliced region.
type row struct {
	region device.Region
	taken  int32        // slices that are slabs
	fresh  uint32       // lowest slice that has never been used; nor has any slice above it
	free   index.BitSet // free slices
	slabs  []int32      // by slice: its slab, or none
}

func newSlicer(src device.Source, c Config, total *alloc.Stats) *slicer {
	s := &slicer{total: total, limit: c.Limit, kept: newKept(c)}
	s.held = regions.NewSet(src, total)
	var slabs []device.Size // by grade
	for _, k := range c.cells().Classes {
		if n := len(slabs); n == 0 || slabs[n-1] != k.Slab {
			slabs = append(slabs, k.Slab)
		}
		s.gradeOf = append(s.gradeOf, uint8(len(slabs)-1))
	}
	s.grades = make([]grade, len(slabs))
	for i, slab := range slabs {
		g := &s.grades[i]
		g.shift = uint8(bits.TrailingZeros64(uint64(slab)))
		g.align = min(c.align(), slab)
		p := c.policy(slab)
		if p.Kind != regions.Whole {
			p.Limit = 0 // the limit is for all regions together; Reserve checks it
		}
		g.pool = regions.NewPool(s, &g.own, p)
	}
	total.Limit = c.Limit
	return s
}

// nextRegion returns the size of the next region, 0 if that depends on the class.
func (s *slicer) nextRegion() device.Size {
	if len(s.grades) > 1 {
		return 0
	}
	return s.grades[0].own.NextRegion
}

// Reserve implements [device.Source] for the pool, within the limit.
func (s *slicer) Reserve(size, align device.Size) (device.Region, error) {
	return s.reserve(size, align, s.next)
}

// reserve reserves a region within the limit. Kept regions are released for it.
func (s *slicer) reserve(size, align device.Size, label int32) (device.Region, error) {
	s.shed(size)
	if !s.within(size) {
		return device.Region{}, regions.ErrLimit
	}
	r, err := s.held.Reserve(size, align, label)
	if err != nil {
		return r, err
	}
	s.lent()
	if !s.within(0) { // the device rounds up
		s.held.Discard(r.Addr)
		return device.Region{}, regions.ErrLimit
	}
	s.shed(0) // for what the device rounded up
	return r, nil
}

// single returns a region for a large block and the bytes that were asked for it: a kept region if
// one serves, else a new one.
func (s *slicer) single(size, align device.Size) (at device.Addr, granted device.Size, err error) {
	if s.kept.bytes != 0 {
		if e, ok := s.kept.take(size); ok {
			s.lent()
			return e.Addr, e.Size, nil
		}
	}
	r, err := s.reserve(size, align, labelDirect)
	return r.Addr, size, err
}

// lent updates the most bytes in regions that are not kept.
func (s *slicer) lent() { s.most = max(s.most, s.total.Reserved-s.kept.bytes) }

// shed releases kept regions before a reservation of size bytes, so that the strategy never holds
// more than it needed at once. If the device refuses, what it does not take back counts as needed.
func (s *slicer) shed(size device.Size) {
	most := max(s.most, s.total.Reserved-s.kept.bytes+size)
	for s.kept.bytes != 0 && s.total.Reserved+size > most {
		if s.dropKept(s.total.Reserved+size-most) != nil {
			s.most = s.total.Reserved + size
			return
		}
	}
}

// dropKept releases a kept region, of n bytes if there is one. If the device refuses, it stays.
func (s *slicer) dropKept(n device.Size) error {
	at := s.kept.next(n)
	if err := s.held.Release(s.kept.bySize.Entry(at).Addr); err != nil {
		return err
	}
	s.kept.remove(at)
	return nil
}

// within reports whether the limit leaves room for n more bytes.
func (s *slicer) within(n device.Size) bool {
	return s.limit == 0 || s.span.Fits(s.total.Reserved+n, s.limit)
}

// capacitySpan returns the limits with which the regions so far would have been the same.
func (s *slicer) capacitySpan() device.Span {
	span := s.span
	for i := range s.grades {
		span = span.Common(s.grades[i].pool.CapacitySpan())
	}
	return span
}

// Release implements [device.Source] for the pool.
func (s *slicer) Release(a device.Addr) error { return s.held.Release(a) }

// Take implements [cells.Parent]: the lowest free slice of the lowest row, or of a new region. So
// the never used slices of a row are at its end, and only one row of a grade has any.
func (s *slicer) Take(class int, slab int32, more bool) (cells.Piece, bool) {
	at := s.gradeOf[class]
	g := &s.grades[at]
	n, ok := g.open.Min()
	if !ok {
		if !more {
			return cells.Piece{}, false
		}
		if n, ok = s.grow(at); !ok {
			return cells.Piece{}, false
		}
	}
	w := &g.rows[n]
	i, _ := w.free.Min()
	w.free.Remove(i)
	w.slabs[i] = slab
	if i == w.fresh {
		w.fresh++
		g.fresh--
	}
	if w.taken == 0 {
		g.pool.Occupied(w.region.Size)
	}
	w.taken++
	g.loose--
	if w.free.Len() == 0 {
		g.open.Remove(n)
	}
	return cells.Piece{Addr: w.region.Addr.Add(device.Size(i) << g.shift), Handle: n<<gradeBits | uint32(at)}, true
}

// Give implements [cells.Parent]. A region without a slab is released if the policy says so. If the
// device refuses, it stays.
func (s *slicer) Give(_ int, p cells.Piece) {
	g, n := s.find(int32(p.Handle))
	w := &g.rows[n]
	i := uint32(p.Addr.Sub(w.region.Addr) >> g.shift)
	w.free.Add(i)
	w.slabs[i] = cells.None
	w.taken--
	g.loose++
	g.open.Add(n)
	if w.taken == 0 && g.pool.Vacated(w.region.Size) {
		if err := g.drop(n); err != nil && s.stuck == nil {
			s.stuck = err
		}
	}
}

// find returns the grade and the number of the row of a label.
func (s *slicer) find(label int32) (*grade, uint32) {
	return &s.grades[label&(1<<gradeBits-1)], uint32(label) >> gradeBits
}

// grow reserves a region for a grade and returns the number of its row.
func (s *slicer) grow(at uint8) (n uint32, ok bool) {
	g := &s.grades[at]
	n = uint32(len(g.rows))
	if len(g.spare) > 0 {
		n = uint32(g.spare[len(g.spare)-1])
	}
	s.next = int32(n<<gradeBits | uint32(at))
	r, err := g.pool.Grow(1<<g.shift, g.align, s.next)
	if s.asked, s.err = g.pool.Asked(), err; err != nil {
		return 0, false
	}
	if len(g.spare) > 0 {
		g.spare = g.spare[:len(g.spare)-1]
	} else {
		g.rows = append(g.rows, row{})
		g.open.Grow(len(g.rows))
	}
	w := &g.rows[n]
	w.region, w.fresh = r, 0
	// Slices are numbered by 32 bits; no region of a policy has more.
	count := int(min(r.Size>>g.shift, math.MaxInt32))
	w.free.Clear()
	w.free.Grow(count)
	w.slabs = w.slabs[:0]
	for i := range count {
		w.free.Add(uint32(i))
		w.slabs = append(w.slabs, cells.None)
	}
	g.loose += count
	g.fresh += count
	g.open.Add(n)
	return n, true
}

// drop releases a region without a slab. If the device refuses, it stays.
func (g *grade) drop(n uint32) error {
	w := &g.rows[n]
	if err := g.pool.Drop(w.region.Addr); err != nil {
		return err
	}
	g.loose -= len(w.slabs)
	g.fresh -= len(w.slabs) - int(w.fresh)
	g.open.Remove(n)
	w.region = device.Region{}
	g.spare = append(g.spare, int32(n))
	return nil
}

// trim releases every region without a slab, the kept regions up to one that the device refuses,
// and every stale one. The error is the first refusal.
func (s *slicer) trim() (first error) {
	for i := range s.grades {
		g := &s.grades[i]
		for n := range g.rows {
			if w := &g.rows[n]; w.region.Size != 0 && w.taken == 0 {
				if err := g.drop(uint32(n)); err != nil && first == nil {
					first = err
				}
			}
		}
	}
	for refused := error(nil); s.kept.bytes != 0 && refused == nil; {
		refused = s.dropKept(0)
		first = cmp.Or(first, refused)
	}
	return cmp.Or(first, s.held.Retry())
}

// empty returns the bytes of regions without a slab or a block.
func (s *slicer) empty() device.Size {
	n := s.kept.bytes
	for i := range s.grades {
		n += s.grades[i].pool.Empty()
	}
	return n
}

// freeBytes returns the bytes of free slices and kept regions, and their largest chunk. The slices
// of a row that have never been used are one chunk.
func (s *slicer) freeBytes() (all, largest device.Size) {
	all, largest = s.kept.bytes, s.kept.bySize.Largest()
	for i := range s.grades {
		if g := &s.grades[i]; g.loose > 0 {
			all += device.Size(g.loose) << g.shift
			largest = max(largest, device.Size(max(g.fresh, 1))<<g.shift)
		}
	}
	return all, largest
}

// rowOf returns the row of a region, nil if it is a single block or stale.
func (s *slicer) rowOf(h regions.Held) *row {
	if h.Label < 0 {
		return nil
	}
	g, n := s.find(h.Label)
	if int(n) >= len(g.rows) || g.rows[n].region != h.Region {
		return nil
	}
	return &g.rows[n]
}

// Host memory of a grade and a row without what they point to, in bytes.
const (
	gradeBytes = 728
	rowBytes   = 224
)

func (s *slicer) hostBytes() device.Size {
	n := s.held.Bytes() + s.kept.bySize.Bytes() + index.BytesOf(s.kept.order)
	n += device.Size(cap(s.grades))*gradeBytes + device.Size(cap(s.gradeOf))
	for i := range s.grades {
		g := &s.grades[i]
		n += g.pool.Bytes() + g.open.Bytes() + device.Size(cap(g.rows))*rowBytes + device.Size(cap(g.spare))*4
		for j := range g.rows {
			n += g.rows[j].free.Bytes() + device.Size(cap(g.rows[j].slabs))*4
		}
	}
	return n
}
