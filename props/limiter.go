package props

import (
	"fmt"
	"iter"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// mostCalls bounds the device calls of one call to a strategy. A backpedal from an exbibyte in
// steps of a tenth takes 400.
const mostCalls = 1 << 16

// runaway is the panic that ends a call which exceeds a bound on its steps.
type runaway string

// bounded returns the chunks of a walk.
func bounded(walk iter.Seq[alloc.Chunk]) (all []alloc.Chunk) {
	for c := range walk {
		if all = append(all, c); len(all) > mostChunks {
			panic(runaway(fmt.Sprintf("a walk showed more than %d chunks", mostChunks)))
		}
	}
	return all
}

// callLimiter stops a strategy that calls its device endlessly. It counts the calls that a fault
// plan counts, and keeps the model of streams up to date.
type callLimiter struct {
	device.Forwarder
	calls int    // in the present call
	total uint64 // so far
	order order

	sizes    map[device.Addr]device.Size // of the regions
	returned []device.Region             // memory released in the present call
}

func newCallLimiter(d device.Device) *callLimiter {
	l := &callLimiter{sizes: map[device.Addr]device.Size{}}
	l.Forwarder = device.Hooked(d, device.Hook{Before: l.count, After: l.track})
	return l
}

func (l *callLimiter) begin() { l.calls, l.returned = 0, l.returned[:0] }

func (l *callLimiter) count(*device.Invocation) error {
	l.total++
	if l.calls++; l.calls > mostCalls {
		panic(runaway("one call made more than 65536 device calls"))
	}
	return nil
}

func (l *callLimiter) track(v *device.Invocation) {
	if v.Err != nil {
		return
	}
	switch v.Call {
	case device.CallReserve:
		l.sizes[v.Region.Addr] = v.Region.Size
	case device.CallRelease:
		l.order.finishAll()
		l.returned = append(l.returned, device.Region{Addr: v.Addr, Size: l.sizes[v.Addr]})
	case device.CallUnmap:
		l.returned = append(l.returned, device.Region{Addr: v.Addr, Size: v.Size})
	case device.CallDestroyEvent:
		delete(l.order.events, v.Event)
	case device.CallRecord:
		l.order.record(v.Event, v.Stream)
	case device.CallWait:
		l.order.wait(v.Stream, v.Event)
	case device.CallSyncEvent:
		l.order.finishEvent(v.Event)
	case device.CallSyncStream:
		l.order.finishStream(v.Stream)
	case device.CallSyncDevice:
		l.order.finishAll()
	}
}

// Drain implements [device.Timeline]. The suite calls it, so it is not counted.
func (l *callLimiter) Drain(s device.Stream) error {
	err := l.Forwarder.Drain(s)
	if err == nil {
		l.order.finishStream(s)
	}
	return err
}
