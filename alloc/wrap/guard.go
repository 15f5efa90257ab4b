package wrap

import "github.com/vramyard/vramyard/device"

// guard is the device below a [Streamed] strategy. Before memory is unmapped it waits for the work
// that may still use it, because the call itself does not. It reports when all work has finished,
// and when memory is mapped at two addresses.
type guard struct {
	device.Forwarder
	streams device.Streams
	open    bool                       // the strategy handles streams itself: nothing is watched
	dirty   bool                       // something was freed since all work was known to have finished
	mapped  map[device.Handle]struct{} // handles that were mapped since they were made
	aliased bool                       // one was mapped twice
	settled func()                     // called when all work has finished
}

// newGuard returns the guard of a device with streams; settled is called when all work has
// finished.
func newGuard(dev device.Device, streams device.Streams, settled func()) *guard {
	g := &guard{streams: streams, mapped: map[device.Handle]struct{}{}, settled: settled}
	g.Forwarder = device.Hooked(dev, device.Hook{Before: g.before, After: g.after})
	return g
}

// settle records that all work has finished.
func (g *guard) settle() {
	g.dirty = false
	g.settled()
}

// before waits for all work before memory is unmapped.
func (g *guard) before(v *device.Invocation) error {
	if v.Call != device.CallUnmap || !g.dirty || g.open {
		return nil
	}
	if err := g.streams.SyncDevice(); err != nil {
		return err
	}
	g.settle()
	return nil
}

// after records that a release waited for all work. It counts a handle that is mapped again as one
// with two addresses, because its earlier mappings may be gone: that costs waits only.
func (g *guard) after(v *device.Invocation) {
	switch {
	case v.Err != nil:
	case v.Call == device.CallReleaseHandle:
		delete(g.mapped, v.Handle)
	case g.open:
	case v.Call == device.CallRelease:
		g.settle()
	case v.Call == device.CallMap && !g.aliased:
		_, g.aliased = g.mapped[v.Handle]
		g.mapped[v.Handle] = struct{}{}
	}
}
