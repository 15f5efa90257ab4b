package devicetest

import (
	"encoding/json"
	"fmt"

	"github.com/vramyard/vramyard/device"
)

func holdings(u device.Usage) string {
	return fmt.Sprintf("%v (peak %v, charged %v, peak %v) in %d regions and %d handles, %d ranges of %v with %v mapped, "+
		"%d events",
		u.Held, u.PeakHeld, u.Charged, u.PeakCharged, u.Regions, u.Handles, u.Ranges, u.Space, u.Mapped, u.Events)
}

func callCounts(c device.Calls) string {
	b, err := json.Marshal(c)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// requireGrowth fails the test unless the account shows that more is held than before by exactly
// the given amounts. Peaks, calls and times are checked after each call.
func (r *rig) requireGrowth(was, more device.Usage) {
	r.Helper()
	now := r.d.Usage()
	got := device.Usage{
		Held: now.Held - was.Held, Regions: now.Regions - was.Regions, Handles: now.Handles - was.Handles,
		Ranges: now.Ranges - was.Ranges, Space: now.Space - was.Space, Mapped: now.Mapped - was.Mapped,
		Events: now.Events - was.Events,
	}
	if got != more {
		r.Fatalf("the device holds more than before by %s, want %s", holdings(got), holdings(more))
	}
}
