package compare

import (
	"encoding/json"
	"sync"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
)

// outcomes are the results of the probes of a trial, each for all capacities that would have given
// it: a strategy is deterministic, so it repeats its decisions as long as its configuration and the
// answers of the device stay the same. The zero value is empty. It is safe for concurrent use.
type outcomes struct {
	lock sync.Mutex
	all  []outcome
}

// outcome is the result of a probe.
type outcome struct {
	config      string      // of the strategy, in JSON
	from, below device.Size // capacities with the same answers; below 0: all from there on
	completes   bool
	events      uint64 // replayed
}

// of returns the outcome for a setup on a device of n bytes, and false if it is not known.
func (k *outcomes) of(s setting.Setup, n device.Size) (outcome, bool) {
	config, err := json.Marshal(s.Config)
	k.lock.Lock()
	defer k.lock.Unlock()
	for _, o := range k.all {
		if err == nil && o.from <= n && (o.below == 0 || n < o.below) && o.config == string(config) {
			return o, true
		}
	}
	return outcome{}, false
}

// add stores the outcome of a probe on a device. A device that does not report which capacities
// give the same answers, such as a GPU, is left out, as is one that reported its capacity to a
// strategy that decides by it.
func (k *outcomes) add(s setting.Setup, dev device.Device, completes bool, events uint64) {
	d, ok := dev.(interface {
		SameFor() (from, below device.Size, asked bool)
	})
	if !ok {
		return
	}
	from, below, asked := d.SameFor()
	config, err := json.Marshal(s.Config)
	if err != nil || asked && !s.Unbound() {
		return
	}
	k.lock.Lock()
	defer k.lock.Unlock()
	k.all = append(k.all, outcome{string(config), from, below, completes, events})
}
