package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/mirror"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/internal/units"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/check"
)

// checkCard is the GPU that a check runs beside the simulated devices of its subjects.
type checkCard struct {
	place replay.Target
	// held stays open for the whole check, because the driver takes long to make a context.
	held replay.Device
	free device.Size // bytes available to an instance
}

// errGranularity means that a driver returned an invalid page size.
var errGranularity = errors.New("want a power of two of at least 4KiB")

// openCard opens a GPU with a limit in bytes, 0 for all of it.
func openCard(p replay.Target, limit device.Size) (*checkCard, error) {
	p.Capacity = limit
	d, err := p.Open()
	if err != nil {
		return nil, err
	}
	c := &checkCard{place: p, held: d}
	if info, ok := device.MemoryInfoOf(d); ok {
		c.free, _, err = info.MemoryInfo()
	}
	if vm, ok := device.VirtualMemoryOf(d); ok && err == nil {
		if g := vm.Granularity(); !device.IsPowerOfTwo(g) || g < 4*device.KiB {
			err = fmt.Errorf("%v: the granularity is %d bytes: %w", p.GPU, uint64(g), errGranularity)
		}
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return c, nil
}

// like returns a simulated device with the properties of the card, except its capacity.
func (c *checkCard) like() sim.Config {
	const round = 512 // bytes: the unit of device/cuda and the alignment of the driver
	s := sim.Config{Align: round, Round: round}
	if vm, ok := device.VirtualMemoryOf(c.held); ok {
		s.Granularity = vm.Granularity()
	}
	return s
}

// fits returns an error if a subject needs a device with more memory than the card has.
func (c *checkCard) fits(s props.Subject) error {
	if s.Device.Capacity <= c.free {
		return nil
	}
	return fmt.Errorf("%s is checked on a device of %v, and cuda:%d has %v free", s.Name, s.Device.Capacity,
		c.place.GPU.Ordinal, c.free)
}

// card returns the device that the suite opens for each instance, nil without a GPU.
func (c *checkCard) card() *props.Card {
	if c == nil {
		return nil
	}
	return &props.Card{Name: c.place.GPU.String(), Free: c.free, Open: func(capacity device.Size) (mirror.Card, error) {
		p := c.place
		p.Capacity = capacity
		return p.Open()
	}}
}

func (c *checkCard) close() error {
	if c == nil {
		return nil
	}
	return c.held.Close()
}

// callKinds names the kinds of device calls for a report.
var callKinds = []struct {
	name  string
	calls device.CallSet
}{
	{"of regions", device.CallsOf(device.CallReserve, device.CallRelease)},
	{"of virtual memory", device.CallsOf(device.CallReserveRange, device.CallReleaseRange, device.CallCreateHandle,
		device.CallReleaseHandle,
		device.CallMap, device.CallSetAccess, device.CallUnmap)},
	{"of streams and events", device.CallsOf(device.CallNewEvent, device.CallDestroyEvent, device.CallRecord,
		device.CallDone, device.CallWait,
		device.CallSyncEvent, device.CallSyncStream, device.CallSyncDevice)},
	{"of pools", device.CallsOf(device.CallNewPool, device.CallDestroyPool, device.CallAllocAsync, device.CallFreeAsync,
		device.CallTrimPool,
		device.CallPoolAttribute, device.CallSetPoolAttribute)},
	{"of memory information", device.CallsOf(device.CallMemoryInfo)},
	{"of contents", device.CallsOf(device.CallFill, device.CallCompare)},
}

// coverage describes the parts of a check that ran on the card, and the other parts.
func (c *checkCard) coverage(r check.Report) (on, not string) {
	var sum props.CardTally
	for _, s := range r.Subjects {
		sum.Add(s.Result.Card)
	}
	var parts []string
	for _, k := range callKinds {
		n := uint64(0)
		for call, count := range sum.Calls {
			if k.calls.Has(device.Call(call)) {
				n += count.Done + count.Failed
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, k.name))
		}
	}
	on = fmt.Sprintf("each device call of the checked instance, with answers compared: %d calls, %s; %v written to "+
		"blocks, %v read back",
		sum.Calls.Total(), strings.Join(parts, ", "), units.Bytes(sum.Traffic.Written), units.Bytes(sum.Traffic.Read))
	not = "addresses, time and the order of work, because a card has no timeline; the second instance, with which the " +
		"first is compared"
	for lack := range device.Capabilities {
		if lack != device.CapTimeline && !device.Has(c.held, lack) {
			not += fmt.Sprintf("; %v, which the card or its driver lacks", lack)
		}
	}
	return on, not
}
