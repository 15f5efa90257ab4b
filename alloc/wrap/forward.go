package wrap

import (
	"sync"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// Forwarder passes every method on to a wrapped strategy, and is a [power.Wrapper] for its powers.
// A wrapper embeds it and overrides the methods that it changes, including those of powers.
//
// With a lock, every call is made with the lock held.
type Forwarder struct {
	inner alloc.Strategy
	lock  sync.Locker // nil for none
}

// Forward returns a forwarder to s that takes lock around every call; nil for no lock.
func Forward(s alloc.Strategy, lock sync.Locker) Forwarder { return Forwarder{inner: s, lock: lock} }

// enter takes the lock, if there is one.
func (f *Forwarder) enter() {
	if f.lock != nil {
		f.lock.Lock()
	}
}

func (f *Forwarder) leave() {
	if f.lock != nil {
		f.lock.Unlock()
	}
}

// Has reports the powers of the wrapped strategy to [power.Has], except Concurrent: a wrapper must
// add it itself.
func (f *Forwarder) Has(p power.Power) bool {
	return p != power.PowerConcurrent && power.Has(f.inner, p)
}

func (f *Forwarder) Wrapped() (alloc.Inspector, sync.Locker) { return f.inner, f.lock }

func (f *Forwarder) Alloc(r alloc.Request) (alloc.Block, error) {
	f.enter()
	defer f.leave()
	return f.inner.Alloc(r)
}

func (f *Forwarder) Free(a device.Addr) error {
	f.enter()
	defer f.leave()
	return f.inner.Free(a)
}

// freeRef is FreeRef of [power.Referenced] for wrappers that pass it on.
func (f *Forwarder) freeRef(b alloc.Block) error {
	f.enter()
	defer f.leave()
	return power.FreeRef(f.inner, b)
}

func (f *Forwarder) Stats() alloc.Stats {
	f.enter()
	defer f.leave()
	return f.inner.Stats()
}

func (f *Forwarder) Walk(yield func(alloc.Chunk) bool) {
	f.enter()
	defer f.leave()
	f.inner.Walk(yield)
}

func (f *Forwarder) Check() error {
	f.enter()
	defer f.leave()
	return f.inner.Check()
}

func (f *Forwarder) Close() error {
	f.enter()
	defer f.leave()
	return f.inner.Close()
}
