package recall

import "github.com/vramyard/vramyard/device"

// The thresholds of a tide.
const (
	leastFall = 32 // a fall is at least this part of the most live bytes,
	fallShare = 2  // and at least this part of the largest fall
	riseShare = 16 // a rise after a fall is at least this part of the largest fall
	returnsIn = 2  // a return to the low tide, this part of the rise above it, is another low tide
)

// tide follows the live bytes and finds the low tides, at which an iteration ends. The thresholds
// follow the largest fall so far, so that no unit and no program is known in advance.
type tide struct {
	rising     bool
	fell       bool // the low tide followed a fall, not only a return
	low, high  device.Size
	lowAt      int32 // position of the low tide
	fall, rise device.Size
	most       device.Size
}

// see takes the live bytes after the call at a position, and reports whether a low tide has just
// ended.
func (t *tide) see(live device.Size, at int32) bool {
	t.most = max(t.most, live)
	if t.rising {
		t.high = max(t.high, live)
		fell := live+max(t.fall/fallShare, t.most/leastFall) < t.high
		if fell || live < t.low+t.rise/returnsIn {
			t.fell, t.rising, t.low, t.lowAt = fell, false, live, at
		}
		return false
	}
	if live <= t.low {
		t.low, t.lowAt = live, at
	}
	t.fall = max(t.fall, t.high-t.low)
	t.rise = t.fall / riseShare
	if live <= t.low+t.rise {
		return false
	}
	t.rising, t.high = true, live
	return true
}
