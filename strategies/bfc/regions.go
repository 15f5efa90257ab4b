package bfc

import (
	"slices"
	"sort"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// region is one block of device memory, or with coalescing several that touch.
type region struct {
	addr  device.Addr
	size  device.Size
	first handle        // chunk at the start; stays, because the left of two merged chunks survives
	last  handle        // chunk at the end, so that growth need not walk there
	live  int           // live chunks
	tail  device.Size   // bytes that the device granted after the region, unused
	more  []device.Addr // starts of the reservations after the first that make up the region
}

func (r *region) end() device.Addr { return r.addr.Add(r.size) }

// regionTable holds every region. A region keeps its row, whose number its chunks record; order
// lists the numbers by address.
type regionTable struct {
	rows  []region
	spare []uint32 // numbers of unused rows
	order []uint32
	// empty is the sum of the sizes of the regions without live chunks, which a collection would
	// release. A failing request thus need not search them.
	empty device.Size
}

// insert adds a region and returns its number. O(log regions), and a move of the entries above.
// Numbers of removed regions are reused, so the table stays as small as the highest number of
// regions.
func (t *regionTable) insert(r region) uint32 {
	var n uint32
	if k := len(t.spare); k > 0 {
		n, t.spare = t.spare[k-1], t.spare[:k-1]
		t.rows[n] = r
	} else {
		t.rows = append(t.rows, r)
		n = uint32(len(t.rows) - 1)
	}
	t.order = slices.Insert(t.order, t.above(r.addr), n)
	return n
}

func (t *regionTable) remove(place int) {
	n := t.order[place]
	t.order = slices.Delete(t.order, place, place+1)
	t.rows[n] = region{}
	t.spare = append(t.spare, n)
}

func (t *regionTable) above(at device.Addr) int {
	return sort.Search(len(t.order), func(i int) bool { return t.rows[t.order[i]].addr > at })
}

func (t *regionTable) endingAt(at device.Addr) (uint32, bool) {
	i := t.above(at)
	if i == 0 || t.rows[t.order[i-1]].end() != at {
		return 0, false
	}
	return t.order[i-1], true
}

// occupy counts one more live chunk in a region. The first takes the region out of empty.
func (t *regionTable) occupy(r *region) {
	if r.live == 0 {
		t.empty -= r.size
	}
	r.live++
}

// vacate counts one live chunk less in a region. The last puts the region back into empty.
func (t *regionTable) vacate(r *region) {
	r.live--
	if r.live == 0 {
		t.empty += r.size
	}
}

func (t *regionTable) bytes() device.Size {
	n := index.BytesOf(t.rows) + index.BytesOf(t.order) + index.BytesOf(t.spare)
	for i := range t.rows {
		n += index.BytesOf(t.rows[i].more)
	}
	return n
}
