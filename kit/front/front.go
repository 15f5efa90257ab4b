package front

import (
	"errors"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/regions"
)

// Limits are the bounds of the requests that a strategy can grant.
type Limits struct {
	Most  device.Size  // largest request in bytes, at least 1
	Align device.Size  // largest alignment in bytes; 0 for any power of two
	Above power.Reason // reason to refuse a larger request; zero means [power.ReasonTooLarge]
	Null  bool         // a free of address 0 does nothing and succeeds
}

// Front is the state of a strategy at its interface: the counters, the last refusal, whether it is
// closed, and the limits of its requests. It must not be copied; use [Front.Init].
type Front struct {
	most  device.Size // Limits.Most; 0 once closed, so that Accepts rejects every request
	align device.Size // Limits.Align

	Stats alloc.Stats // the counters, which the strategy keeps

	limits  Limits
	closed  bool
	refusal power.Refusal // the last one
	free    func() (largest, bytes device.Size)
}

// Init prepares the front of an open strategy, and returns the [View] that the strategy embeds. A
// refusal calls free for the size of the largest free chunk and the sum of all free bytes.
func (f *Front) Init(l Limits, free func() (largest, bytes device.Size)) View {
	if l.Align == 0 {
		l.Align = ^device.Size(0)
	}
	if l.Above == power.ReasonNone {
		l.Above = power.ReasonTooLarge
	}
	f.most, f.align, f.limits, f.free = l.Most, l.Align, l, free
	return View{f}
}

// Accepts reports whether the strategy is open and can ever grant a request. If not, the caller
// returns [Front.Refuse].
func (f *Front) Accepts(r *alloc.Request) bool {
	return r.Size-1 < f.most && r.Align&(r.Align-1) == 0 && r.Align <= f.align
}

// Refuse records a request that can never be granted and returns the error: [alloc.ErrClosed] or
// [alloc.ErrInvalidRequest]. The reason is the alignment if the size is within the limits.
func (f *Front) Refuse(r *alloc.Request) error {
	if f.closed {
		return alloc.ErrClosed
	}
	why := power.ReasonAlignment
	switch {
	case r.Size == 0:
		why = power.ReasonZero
	case r.Size > f.limits.Most:
		why = f.limits.Above
	}
	f.SetRefusal(power.Refusal{Reason: why, Request: *r})
	return alloc.ErrInvalidRequest
}

// OutOfMemory records a request that found no memory and returns [alloc.ErrOutOfMemory]. rounded is
// the request's size after rounding, asked the size of the last failed reservation, and err its
// error: [regions.ErrTooMany] or [regions.ErrLimit] for the strategy's own bounds, otherwise the
// device's error.
func (f *Front) OutOfMemory(r *alloc.Request, rounded, asked device.Size, err error) error {
	why := power.Refusal{Reason: power.ReasonLimit, Request: *r, Rounded: rounded}
	if !errors.Is(err, regions.ErrTooMany) && !errors.Is(err, regions.ErrLimit) {
		why.Reason, why.Asked, why.Device = power.ReasonDevice, asked, err
	}
	f.Stats.OOMs++
	f.SetRefusal(why)
	return alloc.ErrOutOfMemory
}

// SetRefusal keeps a refusal, completed with the free memory of this moment. It allocates nothing:
// eviction loops are refused thousands of times.
func (f *Front) SetRefusal(why power.Refusal) {
	why.LargestHole, why.Free = f.free()
	f.refusal = why
}

// NoBlock returns the error of a call for an address at which no live block starts:
// [alloc.ErrClosed] or [alloc.ErrInvalidFree].
func (f *Front) NoBlock() error {
	if f.closed {
		return alloc.ErrClosed
	}
	return alloc.ErrInvalidFree
}

// NothingFreed returns the result of a free of an address at which no live block starts: nil for
// address 0 if the limits permit it, otherwise the error of NoBlock.
func (f *Front) NothingFreed(a device.Addr) error {
	if a == 0 && f.limits.Null && !f.closed {
		return nil
	}
	return f.NoBlock()
}

// Closed reports whether the strategy was closed.
func (f *Front) Closed() bool { return f.closed }

// Close closes the strategy: every request is refused, and no block is live.
func (f *Front) Close() {
	f.Stop()
	f.Stats.Emptied()
}

// Stop closes the strategy like Close but leaves the counters: live blocks stay in regions that the
// device does not release.
func (f *Front) Stop() { f.closed, f.most = true, 0 }

// View implements the powers that need only the front. A strategy embeds it, and overrides the
// methods that need more.
type View struct{ front *Front }

var (
	_ power.Failure = View{}
	_ power.Ceiling = View{}
	_ power.Clearer = View{}
)

// Stats implements [alloc.Inspector]. O(1).
func (v View) Stats() alloc.Stats { return v.front.Stats }

func (v View) ClearStats() { v.front.Stats.Clear() }

func (v View) LastRefusal() (power.Refusal, bool) {
	return v.front.refusal, v.front.refusal.Reason != power.ReasonNone
}

func (v View) MaxRequest() device.Size { return v.front.limits.Most }
