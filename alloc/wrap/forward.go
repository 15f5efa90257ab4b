package wrap

import (
	"sync"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// Forwarder passes every method and every power on to a wrapped strategy. A wrapper
// embeds it and overrides what it changes.
//
// With a lock, every call is made with the lock held.
type Forwarder struct {
	inner alloc.Strategy
	lock  sync.Locker // nil for none
}

// Forward returns a forwarder to s that takes lock around every call; nil for no lock.
func Forward(s alloc.Strategy, lock sync.Locker) Forwarder { return Forwarder{inner: s, lock: lock} }

// enter takes the lock, if there is one, and returns what releases it.
func (f *Forwarder) enter() {
	if f.lock != nil {
		f.lock.Lock()
	}
}

// leave ends what enter began.
func (f *Forwarder) leave() {
	if f.lock != nil {
		f.lock.Unlock()
	}
}

// Has tells [power.Has] which powers the wrapped strategy has. Being safe for concurrent use
// is not passed on: a wrapper has to earn it.
func (f *Forwarder) Has(p power.Power) bool {
	return p != power.PowerConcurrent && power.Has(f.inner, p)
}

// Alloc implements [alloc.Allocator].
func (f *Forwarder) Alloc(r alloc.Request) (alloc.Block, error) {
	f.enter()
	defer f.leave()
	return f.inner.Alloc(r)
}

// Free implements [alloc.Allocator].
func (f *Forwarder) Free(a device.Addr) error {
	f.enter()
	defer f.leave()
	return f.inner.Free(a)
}

// Stats implements [alloc.Inspector].
func (f *Forwarder) Stats() alloc.Stats {
	f.enter()
	defer f.leave()
	return f.inner.Stats()
}

// Walk implements [alloc.Inspector].
func (f *Forwarder) Walk(yield func(alloc.Chunk) bool) {
	f.enter()
	defer f.leave()
	f.inner.Walk(yield)
}

// Check implements [alloc.Inspector].
func (f *Forwarder) Check() error {
	f.enter()
	defer f.leave()
	return f.inner.Check()
}

// Close implements [alloc.Strategy].
func (f *Forwarder) Close() error {
	f.enter()
	defer f.leave()
	return f.inner.Close()
}

// LargestFree implements [power.Holes].
func (f *Forwarder) LargestFree() device.Size {
	f.enter()
	defer f.leave()
	return power.LargestFree(f.inner)
}

// WalkFree implements [power.FreeWalker].
func (f *Forwarder) WalkFree(yield func(alloc.Chunk) bool) {
	f.enter()
	defer f.leave()
	power.WalkFree(f.inner, yield)
}

// Trim implements [power.Trimmer].
func (f *Forwarder) Trim() (device.Size, error) {
	f.enter()
	defer f.leave()
	return power.Trim(f.inner)
}

// SetFrontier implements [power.Frontier]; without the power it does nothing.
func (f *Forwarder) SetFrontier(count uint64) {
	f.enter()
	defer f.leave()
	_ = power.SetFrontier(f.inner, count) // the package function asked Has before it came here
}

// QueuedFrees implements [power.Frontier]; without the power it returns 0.
func (f *Forwarder) QueuedFrees() int {
	f.enter()
	defer f.leave()
	n, _ := power.QueuedFrees(f.inner) // as above
	return n
}

// MetadataBytes implements [power.Metered]; without the power it returns 0.
func (f *Forwarder) MetadataBytes() device.Size {
	f.enter()
	defer f.leave()
	n, _ := power.MetadataBytes(f.inner) // as above
	return n
}

// LastRefusal implements [power.Failure].
func (f *Forwarder) LastRefusal() (power.Refusal, bool) {
	f.enter()
	defer f.leave()
	return power.LastRefusal(f.inner)
}

// MaxRequest implements [power.Ceiling].
func (f *Forwarder) MaxRequest() device.Size {
	f.enter()
	defer f.leave()
	return power.MaxRequest(f.inner)
}

// ClearStats implements [power.Clearer]; without the power it does nothing.
func (f *Forwarder) ClearStats() {
	f.enter()
	defer f.leave()
	_ = power.ClearStats(f.inner) // as above
}

// AppendReport implements [power.Reporter]; without the power it appends nothing.
func (f *Forwarder) AppendReport(text []byte, refused alloc.Request) []byte {
	f.enter()
	defer f.leave()
	text, _ = power.AppendReport(f.inner, text, refused) // as above
	return text
}

// RecordStream implements [power.StreamRecorder].
func (f *Forwarder) RecordStream(a device.Addr, s device.Stream) error {
	f.enter()
	defer f.leave()
	return power.RecordStream(f.inner, a, s)
}

// Poll implements [power.Poller].
func (f *Forwarder) Poll() (device.Size, error) {
	f.enter()
	defer f.leave()
	return power.Poll(f.inner)
}

// BeginPool implements [power.PrivatePools].
func (f *Forwarder) BeginPool(id alloc.PoolID, s device.Stream) error {
	f.enter()
	defer f.leave()
	return power.BeginPool(f.inner, id, s)
}

// EndPool implements [power.PrivatePools].
func (f *Forwarder) EndPool(id alloc.PoolID) error {
	f.enter()
	defer f.leave()
	return power.EndPool(f.inner, id)
}

// ReleasePool implements [power.PrivatePools].
func (f *Forwarder) ReleasePool(id alloc.PoolID) error {
	f.enter()
	defer f.leave()
	return power.ReleasePool(f.inner, id)
}

// Counters implements [power.Counted]; without the power it yields nothing.
func (f *Forwarder) Counters(yield func(name string, value int64) bool) {
	f.enter()
	defer f.leave()
	_ = power.Counters(f.inner, yield) // the package function asked Has before it came here
}

// WorkTime implements [power.SelfTimed]; without the power it returns 0.
func (f *Forwarder) WorkTime() int64 {
	f.enter()
	defer f.leave()
	ns, _ := power.WorkTime(f.inner) // as above
	return ns
}

// SetHistory implements [power.Historian]; without the power it does nothing.
func (f *Forwarder) SetHistory(tell func(power.Action)) {
	f.enter()
	defer f.leave()
	_ = power.SetHistory(f.inner, tell) // as above
}

// Mark implements [power.Informed]; without the power it does nothing.
func (f *Forwarder) Mark(text string) {
	f.enter()
	defer f.leave()
	_ = power.Mark(f.inner, text) // the package function asked Has before it came here
}

// FreeNeighbours implements [power.Neighbours].
func (f *Forwarder) FreeNeighbours(a device.Addr) (below, above device.Size) {
	f.enter()
	defer f.leave()
	return power.FreeNeighbours(f.inner, a)
}

// CanPlace implements [power.Placer].
func (f *Forwarder) CanPlace(r alloc.Request, freed []device.Addr) bool {
	f.enter()
	defer f.leave()
	return power.CanPlace(f.inner, r, freed)
}

// Compact implements [power.Mover].
func (f *Forwarder) Compact(may func(alloc.Chunk) bool, moved func(from, to alloc.Block)) (device.Size, error) {
	f.enter()
	defer f.leave()
	return power.Compact(f.inner, may, moved)
}
