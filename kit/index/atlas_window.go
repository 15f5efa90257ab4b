package index

import (
	"cmp"
	"slices"
)

// Bounds of a window: it has at most perUsed areas for each one in use, and the largest window
// freeAreas more. So an address space of 4 GiB lies in one window, for 16 KiB.
const (
	freeAreas = 1 << 12
	perUsed   = 1 << 5
)

// window is the entries of consecutive areas.
type window struct {
	areas []uint32
	first uint64 // number of the first area
	used  int    // entries that are not zero
}

func (w *window) end() uint64 { return w.first + uint64(len(w.areas)) }

// below returns the number of windows in others that begin below an area.
func (t *Atlas) below(area uint64) int {
	i, _ := slices.BinarySearchFunc(t.others, area, func(w window, area uint64) int { return cmp.Compare(w.first, area) })
	return i
}

// windowOf returns the window in others that has an area, or nil.
func (t *Atlas) windowOf(area uint64) *window {
	if i := t.below(area + 1); i > 0 && area < t.others[i-1].end() {
		return &t.others[i-1]
	}
	return nil
}

// open returns the window of an area. If no window has the area it widens or creates one.
func (t *Atlas) open(area uint64) *window {
	if area-t.first < uint64(len(t.areas)) {
		return &t.window
	}
	if w := t.windowOf(area); w != nil {
		return w
	}
	if t.widen(&t.window, area) {
		return &t.window
	}
	i := t.below(area)
	for j := max(i, 1) - 1; j < min(i+1, len(t.others)); j++ { // any other window would collide with one of these two
		if w := &t.others[j]; t.widen(w, area) {
			if len(w.areas) <= len(t.areas) {
				return w
			}
			t.window, *w = *w, t.window
			slices.SortFunc(t.others, func(v, w window) int { return cmp.Compare(v.first, w.first) })
			return &t.window
		}
	}
	t.others = slices.Insert(t.others, i, window{areas: make([]uint32, 1), first: area})
	return &t.others[i]
}

// widen extends a window to an area and a quarter of its length beyond, so that a growing window
// moves rarely. It returns false and changes nothing if the window would be too long for its used
// areas or collide with another.
func (t *Atlas) widen(w *window, area uint64) bool {
	if len(w.areas) == 0 {
		w.areas, w.first = make([]uint32, 1), area
		return true
	}
	first, end := min(w.first, area), max(w.end(), area+1)
	most := perUsed * w.used
	if w == &t.window {
		most += freeAreas
	}
	if end-first > uint64(most) || !t.clear(w, first, end) {
		return false
	}
	reserve := (end - first) / 4
	if area < w.first {
		if from := first - min(first, reserve); t.clear(w, from, end) {
			first = from
		}
	} else if t.clear(w, first, end+reserve) {
		end += reserve
	}
	areas := make([]uint32, end-first)
	copy(areas[w.first-first:], w.areas)
	w.areas, w.first = areas, first
	return true
}

// clear reports whether no window but w has an area in [first, end).
func (t *Atlas) clear(w *window, first, end uint64) bool {
	if w != &t.window && first < t.end() && t.first < end {
		return false
	}
	for i := max(t.below(first), 1) - 1; i < len(t.others) && t.others[i].first < end; i++ {
		if o := &t.others[i]; o != w && first < o.end() {
			return false
		}
	}
	return true
}

// leave counts an entry of a window that became zero. An empty window is removed, unless it is the
// largest.
func (t *Atlas) leave(w *window) {
	if w.used--; w.used == 0 && w != &t.window {
		i := t.below(w.first)
		t.others = slices.Delete(t.others, i, i+1)
	}
}
