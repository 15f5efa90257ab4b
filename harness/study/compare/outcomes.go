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
	config    string // of the strategy, in JSON; empty: that for each capacity
	span      device.Span
	completes bool
	events    uint64      // that a probe replays
	held      device.Size // most bytes held if every reservation was granted, else 0
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
		if err == nil && o.span.Holds(n) && (o.config == "" || o.config == string(config)) {
			return o, true
		}
	}
	return outcome{}, false
}

// add stores the outcome of a replay on a device, nil if the strategy could not be built. A device
// that does not report which capacities give the same answers, such as a GPU, is left out. A
// strategy that is [power.Spanned] reports at which capacities it decides the same. Another one is
// left out if it decides by a capacity that the device reported.
func (k *outcomes) add(s setting.Setup, dev device.Device, res *replay.Result) {
	d, ok := dev.(interface {
		SameFor() (from, below device.Size, asked bool)
	})
	if !ok {
		return
	}
	from, below, asked := d.SameFor()
	config, err := json.Marshal(s.Config)
	o := outcome{config: string(config), span: device.Span{From: from, Below: below}, completes: completed(res)}
	switch {
	case res != nil && res.Span != nil:
		o.config, o.span = "", o.span.Common(*res.Span)
	case err != nil || asked && !s.Unbound():
		return
	}
	if res != nil {
		o.events = uint64(res.Decided)
		if completed(res) && res.CallsByKind.Refused == 0 {
			o.held = res.Peak.Reserved
		}
	}
	k.lock.Lock()
	defer k.lock.Unlock()
	k.all = append(k.all, o)
}
