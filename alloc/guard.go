package alloc

import "github.com/vramyard/vramyard/device"

// guard is the device below a [Streamed] strategy. Before memory is unmapped it waits for the
// work that may still use it, which the call itself does not, and it tells when all work is known
// to have finished, and when one piece of memory can be had at two addresses.
type guard struct {
	device.Forwarder
	streams device.Streams
	open    bool                       // the strategy knows streams itself: nothing is watched
	dirty   bool                       // something was freed since all work was known to have finished
	mapped  map[device.Handle]struct{} // handles that were mapped since they were made
	aliased bool                       // one was mapped twice
	settled func()                     // called when all work has finished
}

// settle notes that all work has finished.
func (g *guard) settle() {
	g.dirty = false
	g.settled()
}

// Release implements [device.Source]; it waits for all work itself.
func (g *guard) Release(a device.Addr) error {
	err := g.Forwarder.Release(a)
	if err == nil && !g.open {
		g.settle()
	}
	return err
}

// Unmap implements [device.VirtualMemory].
func (g *guard) Unmap(a device.Addr, size device.Size) error {
	if g.dirty && !g.open {
		if err := g.streams.SyncDevice(); err != nil {
			return err
		}
		g.settle()
	}
	return g.Forwarder.Unmap(a, size)
}

// Map implements [device.VirtualMemory]. A handle that is mapped again counts as one with two
// addresses, because which of its mappings are gone is not known: that costs waits, and no more.
func (g *guard) Map(a device.Addr, size device.Size, h device.Handle, offset device.Size) error {
	err := g.Forwarder.Map(a, size, h, offset)
	if err == nil && !g.open && !g.aliased {
		_, g.aliased = g.mapped[h]
		g.mapped[h] = struct{}{}
	}
	return err
}

// ReleaseHandle implements [device.VirtualMemory].
func (g *guard) ReleaseHandle(h device.Handle) error {
	err := g.Forwarder.ReleaseHandle(h)
	if err == nil {
		delete(g.mapped, h)
	}
	return err
}
