package compare

import (
	"encoding/json"
	"slices"

	"github.com/vramyard/vramyard/device"
)

// followed is what a trial takes from another one that decides alike. It does not change when the
// other trial goes on, so results do not depend on their order.
type followed struct {
	trial   *Trial
	known   []outcome
	row     Run
	charged device.Size
	alike   func(n, held device.Size) bool
}

// Follow makes the trial take the outcomes of another trial's replays so far instead of its own, on
// every device of n bytes for which alike returns true. Alike gets the most bytes that the other
// one held there if the device refused it nothing, else 0.
//
// Precondition: the other trial has the same trace and options, and its last Measure has returned.
// Without one this is a no-op.
func (c *Trial) Follow(other *Trial, alike func(n, held device.Size) bool) {
	if other.measured == nil {
		return
	}
	other.known.lock.Lock()
	defer other.known.lock.Unlock()
	c.followed = &followed{other, slices.Clone(other.known.all), *other.measured, other.charged, alike}
}

// outcome returns the outcome for a device of n bytes, and false if it is not known.
func (f *followed) outcome(n device.Size) (outcome, bool) {
	if f == nil {
		return outcome{}, false
	}
	o, ok := find(f.known, f.trial.setup.ForCapacity(n), n)
	return o, ok && f.alike(n, o.Held)
}

// follow is Measure by the other trial's last one, and false if that decides differently.
func (c *Trial) follow(n device.Size) (Run, bool) {
	f := c.followed
	if f == nil || f.row.Device != n {
		return Run{}, false
	}
	if _, ok := f.outcome(n); !ok {
		return Run{}, false
	}
	row := f.row
	row.Strategy, row.Baseline = c.setup.Name, c.setup.Baseline
	row.Config, _ = json.Marshal(c.setup.ForCapacity(n).Config) // the other trial's encodes, so this one does
	if !f.alike(n, 0) {
		row.MetadataBytes = nil // the same decisions may take other tables
	}
	if row.Starts {
		c.recalled.Add(uint64(row.Events))
	}
	c.charged, c.measured = f.charged, &row
	return row, true
}
