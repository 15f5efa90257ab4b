package compare

import (
	"encoding/json"
	"sync"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
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
	Config    string      `json:"config"` // of the strategy, in JSON; empty: any that ForCapacity gives
	Span      device.Span `json:"span"`   // capacities with the same outcome
	Completes bool        `json:"completes"`
	Events    uint64      `json:"event_count"` // that a probe replays
	Held      device.Size `json:"held_bytes"`  // most bytes held if every reservation was granted, else 0
}

// of returns the outcome for a setup on a device of n bytes, and false if it is not known.
func (k *outcomes) of(s setting.Setup, n device.Size) (outcome, bool) {
	k.lock.Lock()
	defer k.lock.Unlock()
	return find(k.all, s, n)
}

// find returns the outcome for a setup on a device of n bytes, and false if it is not among them.
func find(all []outcome, s setting.Setup, n device.Size) (outcome, bool) {
	config, err := json.Marshal(s.Config)
	for _, o := range all {
		if err == nil && o.Span.Holds(n) && (o.Config == "" || o.Config == string(config)) {
			return o, true
		}
	}
	return outcome{}, false
}

// add stores an outcome; nil is ignored.
func (k *outcomes) add(o *outcome) {
	if o != nil {
		k.lock.Lock()
		defer k.lock.Unlock()
		k.all = append(k.all, *o)
	}
}

// outcomeOf returns the outcome of a replay on a device; res is nil if the strategy could not be
// built. It is nil for a device that does not report which capacities give the same answers, such
// as a GPU. A strategy that is [power.Spanned] reports at which capacities it decides the same.
// Another one has no outcome if it decides by a capacity that the device reported.
func outcomeOf(s setting.Setup, dev device.Device, res *replay.Result) *outcome {
	d, ok := dev.(interface {
		SameFor() (from, below device.Size, asked bool)
	})
	if !ok {
		return nil
	}
	from, below, asked := d.SameFor()
	config, err := json.Marshal(s.Config)
	o := &outcome{Config: string(config), Span: device.Span{From: from, Below: below}, Completes: completed(res)}
	switch {
	case res != nil && res.Span != nil:
		o.Config, o.Span = "", o.Span.Common(*res.Span)
	case err != nil || asked && !s.Unbound():
		return nil
	}
	if res != nil {
		o.Events = uint64(res.Decided)
		if completed(res) && res.CallsByKind.Refused == 0 {
			o.Held = res.Peak.Reserved
		}
	}
	return o
}
