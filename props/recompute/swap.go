package recompute

import (
	"math"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
)

// copies is the account of copies to the host and back. Its times are the earliest possible ones:
// they leave out that operators wait for memory.
type copies struct {
	now        float64   // nanoseconds since the start
	out, back  float64   // when the engine of each direction has copied everything
	end        []float64 // by storage: when its copy ends, back if it was copied back
	backBytes  int64     // bytes copied back
	keptBytes  int64     // bytes that kept their memory
	goneBytes  int64     // bytes given up away from memory
	mostOnHost device.Size
}

// setting returns the value of a setting after the name of the heuristic.
func (a *audit) setting(name string) string {
	for one := range strings.SplitSeq(a.c.Heuristic, ":") {
		if value, ok := strings.CutPrefix(one, name+"="); ok {
			return value
		}
	}
	return ""
}

// copyTime returns the nanoseconds to copy a storage, 0 over the default link.
func (a *audit) copyTime(storage int32) float64 {
	link, err := strconv.ParseFloat(a.setting("link"), 64) // bytes per nanosecond
	if err != nil {
		return 0
	}
	return math.Ceil(float64(a.s.Storages[storage].Size) / link)
}

// copyAllowance returns the time that a run may wait for copies.
func (a *audit) copyAllowance() (sum int64) {
	for s := range a.s.Storages {
		sum += 100 * int64(a.copyTime(int32(s)))
	}
	return sum
}

// swapOut judges a copy to the host that begins.
func (a *audit) swapOut(storage int32) {
	switch {
	case !a.resident[storage] || a.away[storage]:
		a.breaks(MCounts, "storage %d is swapped out and was not in memory", storage)
	case a.memory.held < a.sum():
		a.breaks(MBytes, "the memory of storage %d is free before it was copied", storage)
	}
	a.away[storage] = true
	c := &a.copies
	c.out = max(c.out, c.now) + a.copyTime(storage)
	c.end[storage] = c.out
	away := a.awayBytes()
	c.mostOnHost = max(c.mostOnHost, away)
	if most, err := device.ParseSize(a.setting("host")); err == nil && away > most {
		a.breaks(MHost, "the host holds %d bytes of %d", away, most)
	}
}

// awayBytes returns the bytes of swapped storages.
func (a *audit) awayBytes() (n device.Size) {
	for s, is := range a.away {
		if is {
			n += a.s.Storages[s].Size
		}
	}
	return n
}

// OnReturn implements remat.Observer.
func (a *audit) OnReturn(storage int32, copied bool) {
	if a.found != nil {
		return
	}
	a.events = append(a.events, event{"returned", storage})
	if !a.away[storage] {
		a.breaks(MCounts, "storage %d returns and was not swapped out", storage)
	}
	a.away[storage] = false
	c, size := &a.copies, int64(a.s.Storages[storage].Size)
	if !copied {
		c.keptBytes += size
		c.end[storage] = 0
		return
	}
	c.backBytes += size
	c.back = max(c.back, c.now, c.end[storage]) + a.copyTime(storage)
	c.end[storage] = c.back
}

// judgeSwaps compares the account with the swaps of the result.
func (a *audit) judgeSwaps(res remat.Result) {
	s, c := res.Swaps, &a.copies
	want := remat.Swaps{Possible: s.Possible, Out: res.Evictions[remat.Swapped], OutBytes: a.swapped(), Back: s.Back,
		BackBytes: c.backBytes, KeptBytes: c.keptBytes, DiscardedBytes: c.goneBytes, EndBytes: int64(a.awayBytes()),
		Stall: s.Stall, HostPeak: max(s.HostPeak, c.mostOnHost)}
	switch {
	case s != want || s.OutBytes != s.BackBytes+s.KeptBytes+s.DiscardedBytes+s.EndBytes:
		a.breaks(MSwapped, "the events count %+v, the result has %+v", want, s)
	case a.setting("link") == "inf" && s.Stall > 0:
		a.breaks(MLink, "operators wait %d ns for a link that takes no time", s.Stall)
	case c.now > float64(res.Clock-1):
		a.breaks(MLink, "operators and the copies that they need take %g ns, the run %d", c.now, res.Clock-1)
	case a.setting("evict") == "swap" && a.c.Ladder == "" && res.RematTime > 0 && !a.keeps() && !a.drops():
		a.breaks(MSwapOnly, "%d ns are recomputed", res.RematTime)
	}
}

// drops reports whether a step evicts a tensor that may be read again.
func (a *audit) drops() bool {
	for _, s := range a.s.Steps {
		if s.Kind == remat.Drop {
			return true
		}
	}
	return false
}
