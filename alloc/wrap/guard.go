package wrap

import "github.com/vramyard/vramyard/device"

// guard is the device below a [Streamed] strategy. Before memory is unmapped it waits for the work
// that may still use it, because the call itself does not. It reports when all work has finished,
// and when memory is mapped at two addresses.
type guard struct {
	device.Forwarder
	streams device.Streams
	open    bool                       // the strategy handles streams itself: the guard is a no-op
	dirty   bool                       // memory was freed since all work was known to have finished
	mapped  map[device.Handle]struct{} // handles that were mapped at least once
	aliased bool                       // a handle was mapped twice
	allDone func()                     // called when all work has finished
}

// newGuard returns the guard of a device with streams; allDone is called when all work has
// finished.
func newGuard(dev device.Device, streams device.Streams, allDone func()) *guard {
	g := &guard{streams: streams, mapped: map[device.Handle]struct{}{}, allDone: allDone}
	g.Forwarder = device.Hooked(dev, device.Hook{Before: g.before, After: g.after})
	return g
}

// setAllDone records that all work has finished.
func (g *guard) setAllDone() {
	g.dirty = false
	g.allDone()
}

// before waits for all work before memory is unmapped.
func (g *guard) before(v *device.Invocation) error {
	if v.Call != device.CallUnmap || !g.dirty || g.open {
		return nil
	}
	if err := g.streams.SyncDevice(); err != nil {
		return err
	}
	g.setAllDone()
	return nil
}

// after records that a release waited for all work. It counts a handle that is mapped again as
// mapped at two addresses, even if its earlier mapping is gone: that costs only additional waits.
func (g *guard) after(v *device.Invocation) {
	switch {
	case v.Err != nil:
	case v.Call == device.CallReleaseHandle:
		delete(g.mapped, v.Handle)
	case g.open:
	case v.Call == device.CallRelease:
		g.setAllDone()
	case v.Call == device.CallMap && !g.aliased:
		_, g.aliased = g.mapped[v.Handle]
		g.mapped[v.Handle] = struct{}{}
	}
}
