package alloc

import (
	"sync"

	"github.com/vramyard/vramyard/device"
)

// Forwarder passes every method and every power on to a wrapped strategy. A wrapper
// embeds it and overrides what it changes.
//
// With a lock, every call is made with the lock held.
type Forwarder struct {
	inner Strategy
	lock  sync.Locker // nil for none
}

// Forward returns a forwarder to s that takes lock around every call; nil for no lock.
func Forward(s Strategy, lock sync.Locker) Forwarder { return Forwarder{inner: s, lock: lock} }

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

// Has tells [Has] which powers the wrapped strategy has. Being safe for concurrent use
// is not passed on: a wrapper has to earn it.
func (f *Forwarder) Has(p Power) bool { return p != PowerConcurrent && Has(f.inner, p) }

// Alloc implements [Allocator].
func (f *Forwarder) Alloc(r Request) (Block, error) {
	f.enter()
	defer f.leave()
	return f.inner.Alloc(r)
}

// Free implements [Allocator].
func (f *Forwarder) Free(a device.Addr) error {
	f.enter()
	defer f.leave()
	return f.inner.Free(a)
}

// Stats implements [Inspector].
func (f *Forwarder) Stats() Stats {
	f.enter()
	defer f.leave()
	return f.inner.Stats()
}

// Walk implements [Inspector].
func (f *Forwarder) Walk(yield func(Chunk) bool) {
	f.enter()
	defer f.leave()
	f.inner.Walk(yield)
}

// Check implements [Inspector].
func (f *Forwarder) Check() error {
	f.enter()
	defer f.leave()
	return f.inner.Check()
}

// Close implements [Strategy].
func (f *Forwarder) Close() error {
	f.enter()
	defer f.leave()
	return f.inner.Close()
}

// LargestFree implements [Holes].
func (f *Forwarder) LargestFree() device.Size {
	f.enter()
	defer f.leave()
	return LargestFree(f.inner)
}

// WalkFree implements [FreeWalker].
func (f *Forwarder) WalkFree(yield func(Chunk) bool) {
	f.enter()
	defer f.leave()
	WalkFree(f.inner, yield)
}

// Trim implements [Trimmer].
func (f *Forwarder) Trim() (device.Size, error) {
	f.enter()
	defer f.leave()
	return Trim(f.inner)
}

// SetFrontier implements [Frontier]; without the power it does nothing.
func (f *Forwarder) SetFrontier(count uint64) {
	f.enter()
	defer f.leave()
	_ = SetFrontier(f.inner, count) // the package function asked Has before it came here
}

// QueuedFrees implements [Frontier]; without the power it returns 0.
func (f *Forwarder) QueuedFrees() int {
	f.enter()
	defer f.leave()
	n, _ := QueuedFrees(f.inner) // as above
	return n
}

// MetadataBytes implements [Metered]; without the power it returns 0.
func (f *Forwarder) MetadataBytes() device.Size {
	f.enter()
	defer f.leave()
	n, _ := MetadataBytes(f.inner) // as above
	return n
}

// LastRefusal implements [Failure].
func (f *Forwarder) LastRefusal() (Refusal, bool) {
	f.enter()
	defer f.leave()
	return LastRefusal(f.inner)
}

// MaxRequest implements [Ceiling].
func (f *Forwarder) MaxRequest() device.Size {
	f.enter()
	defer f.leave()
	return MaxRequest(f.inner)
}

// ClearStats implements [Clearer]; without the power it does nothing.
func (f *Forwarder) ClearStats() {
	f.enter()
	defer f.leave()
	_ = ClearStats(f.inner) // as above
}

// AppendReport implements [Reporter]; without the power it appends nothing.
func (f *Forwarder) AppendReport(text []byte, refused Request) []byte {
	f.enter()
	defer f.leave()
	text, _ = AppendReport(f.inner, text, refused) // as above
	return text
}

// RecordStream implements [StreamRecorder].
func (f *Forwarder) RecordStream(a device.Addr, s device.Stream) error {
	f.enter()
	defer f.leave()
	return RecordStream(f.inner, a, s)
}

// Poll implements [Poller].
func (f *Forwarder) Poll() (device.Size, error) {
	f.enter()
	defer f.leave()
	return Poll(f.inner)
}

// BeginPool implements [PrivatePools].
func (f *Forwarder) BeginPool(id PoolID, s device.Stream) error {
	f.enter()
	defer f.leave()
	return BeginPool(f.inner, id, s)
}

// EndPool implements [PrivatePools].
func (f *Forwarder) EndPool(id PoolID) error {
	f.enter()
	defer f.leave()
	return EndPool(f.inner, id)
}

// ReleasePool implements [PrivatePools].
func (f *Forwarder) ReleasePool(id PoolID) error {
	f.enter()
	defer f.leave()
	return ReleasePool(f.inner, id)
}

// Counters implements [Counted]; without the power it yields nothing.
func (f *Forwarder) Counters(yield func(name string, value int64) bool) {
	f.enter()
	defer f.leave()
	_ = Counters(f.inner, yield) // the package function asked Has before it came here
}

// WorkTime implements [SelfTimed]; without the power it returns 0.
func (f *Forwarder) WorkTime() int64 {
	f.enter()
	defer f.leave()
	ns, _ := WorkTime(f.inner) // as above
	return ns
}

// SetHistory implements [Historian]; without the power it does nothing.
func (f *Forwarder) SetHistory(tell func(Action)) {
	f.enter()
	defer f.leave()
	_ = SetHistory(f.inner, tell) // as above
}

// Mark implements [Informed]; without the power it does nothing.
func (f *Forwarder) Mark(text string) {
	f.enter()
	defer f.leave()
	_ = Mark(f.inner, text) // the package function asked Has before it came here
}

// FreeNeighbours implements [Neighbours].
func (f *Forwarder) FreeNeighbours(a device.Addr) (below, above device.Size) {
	f.enter()
	defer f.leave()
	return FreeNeighbours(f.inner, a)
}

// CanPlace implements [Placer].
func (f *Forwarder) CanPlace(r Request, freed []device.Addr) bool {
	f.enter()
	defer f.leave()
	return CanPlace(f.inner, r, freed)
}

// Compact implements [Mover].
func (f *Forwarder) Compact(may func(Chunk) bool, moved func(from, to Block)) (device.Size, error) {
	f.enter()
	defer f.leave()
	return Compact(f.inner, may, moved)
}
