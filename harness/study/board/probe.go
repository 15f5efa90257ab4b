package board

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/study/sweep"
	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// ProbeTraces returns the traces of the probes: one with a single stream and one with two.
func ProbeTraces() []string { return []string{"meta_resnet50_b256", "meta_moe_ep_train"} }

// ProbeShares are the capacities of the probes as shares of a trace's lower bound, beside an ample
// device. On the last no strategy can complete the trace, so each does all that it can to find
// memory.
func ProbeShares() []float64 { return []float64{1.2, 1.02, 0.9} }

// Probe replays [ProbeTraces] on the board's device through every entry on traces that may be
// listed and keeps the kinds of device calls that it makes until the end of the trace. An entry
// that cannot be replayed is not listed.
func (b *Board) Probe(ctx context.Context) error {
	if len(b.Traces) == 0 {
		return nil
	}
	on, err := sweep.ParseDevice(b.Device)
	if err != nil {
		return err
	}
	for _, name := range ProbeTraces() {
		t, err := workload.OpenRecording(name)
		if err != nil {
			return err
		}
		p, err := replay.Prepare(ctx, t)
		if err != nil {
			return err
		}
		capacities := []device.Size{compare.Ample(p.LowerBound())}
		for _, share := range ProbeShares() {
			capacities = append(capacities, device.AlignUp(device.Size(share*float64(p.LowerBound())), compare.Grid))
		}
		for _, e := range b.Entries {
			for _, n := range capacities {
				if err := ctx.Err(); err != nil {
					return err
				}
				if e.Unlisted != "" || e.Kind != OnTraces {
					break
				}
				if err := e.probe(p, on.Config, n); err != nil {
					e.Unlisted = fmt.Sprintf("it cannot be probed: %v", err)
				}
			}
		}
	}
	return nil
}

// probe replays a trace on a device of n bytes.
func (e *Entry) probe(p *replay.Prepared, on sim.Config, n device.Size) error {
	on.Capacity = n
	dev, err := sim.New(on)
	if err != nil {
		return err
	}
	r, err := p.Run(e.Setup.ForCapacity(n), dev, replay.Options{})
	if errors.Is(err, device.ErrOutOfMemory) {
		return nil // it reserves more at once
	}
	if err != nil {
		return err
	}
	for kind, count := range r.Calls {
		if count.Done+count.Failed > 0 {
			e.Calls |= device.CallsOf(device.Call(kind))
		}
	}
	return nil
}

// calls returns the entry's calls of some kinds, by name.
func (e *Entry) calls(is func(device.Call) bool) (names []string) {
	for kind := range device.NumCalls {
		if e.Calls.Has(kind) && is(kind) {
			names = append(names, kind.String())
		}
	}
	return names
}

// remaps reports whether calls of a kind place memory behind addresses: of virtual memory, and of
// the driver's pools, which do it in the driver.
func remaps(kind device.Call) bool {
	c, ok := kind.Capability()
	return ok && (c == device.CapVirtualMemory || c == device.CapPools)
}

// returns reports whether calls of a kind take the memory behind an address away from it.
func returns(kind device.Call) bool {
	switch kind {
	case device.CallRelease, device.CallReleaseHandle, device.CallUnmap, device.CallFreeAsync, device.CallTrimPool:
		return true
	}
	return false
}

// CallNames lists the calls that the probes saw and that a track depends on.
func (e *Entry) CallNames() string {
	return strings.Join(e.calls(func(kind device.Call) bool { return remaps(kind) || returns(kind) }), ", ")
}

// forbidden reports whether a rule of the table of compatibility says that the strategy fails with
// one of some features.
func (e *Entry) forbidden(features ...string) bool {
	name, _, _ := strings.Cut(e.Setup.Name, "{")
	name, _, _ = strings.Cut(name, ":")
	for _, r := range whatif.Compatibility().Rules {
		if r.Kind == whatif.Fails && slices.Contains(features, r.Feature) && slices.Contains(r.Settings, "strategy:"+name) {
			return true
		}
	}
	return false
}
