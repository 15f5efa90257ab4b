package wrap

import (
	"errors"
	"sync"
	"time"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// DefaultWait is how long TensorFlow's allocator waits for memory before it gives up.
const DefaultWait = 10 * time.Second

// Retrier is a strategy whose Alloc waits for memory; see [Retrying].
type Retrier struct {
	Forwarder
	wait time.Duration
	log  func(alloc.Request, alloc.Block) // nil for none

	mu       sync.Mutex
	returned chan struct{} // closed and replaced whenever memory is returned
	delay    time.Duration // total time spent waiting
}

var (
	_ alloc.Strategy   = (*Retrier)(nil)
	_ power.Concurrent = (*Retrier)(nil)
	_ power.Waiter     = (*Retrier)(nil)
)

// Retrying returns s with TensorFlow's retry. An Alloc that finds no memory waits and tries again
// after each Free, raised frontier, or end or release of a private pool. It waits for at most wait
// after its second failure, and then tries one last time. Only [alloc.ErrOutOfMemory] is retried. A
// failure without other calls costs four tries: the ordinary one, the first of the retry, one when
// the wait ends, and the last. Negative waits count as zero, which leaves three.
//
// It differs from the original in two points, neither of which makes a request fail that the
// original would have served. The wait ends at the deadline itself instead of polling during its
// last millisecond, as in XLA since 2026. A Free between a failed try and the wait is not missed.
//
// s must be safe for concurrent use, because other goroutines free memory: put [Locked] inside
// Retrying, never outside.
func Retrying(s alloc.Strategy, wait time.Duration) (*Retrier, error) {
	if !power.Has(s, power.PowerConcurrent) {
		return nil, errors.New("alloc: Retrying around a strategy that is not safe for concurrent use; put Locked inside")
	}
	return &Retrier{Forwarder: Forward(s, nil), wait: wait, returned: make(chan struct{})}, nil
}

// Attributes are the properties of one request beyond those of [alloc.Request], as TensorFlow's
// AllocationAttributes has them. The zero value waits, is logged, and has the bound of its request.
type Attributes struct {
	// NoRetry fails at once if there is no memory, for a block that the caller can do without, such
	// as optional scratch space.
	NoRetry bool
	// WillBeLogged keeps the block out of [Retrier.LogTo], because the caller logs it in more detail.
	WillBeLogged bool
	// Before, if not nil, is called before each try and returns its [alloc.Request] Before. So a
	// request that waits accepts what was freed and became safe in the meantime. It is called without
	// a lock. TensorFlow calls it freed_by_func.
	Before func() uint64
}

// LogTo passes every granted request to sink, with its block, unless its attributes say that it
// will be logged. It must be called before the first Alloc; sink must be safe for concurrent use.
func (r *Retrier) LogTo(sink func(alloc.Request, alloc.Block)) { r.log = sink }

// Alloc implements [alloc.Allocator]. It may wait.
func (r *Retrier) Alloc(req alloc.Request) (alloc.Block, error) {
	return r.AllocWith(req, Attributes{})
}

// AllocWith is Alloc for a request with attributes.
func (r *Retrier) AllocWith(req alloc.Request, a Attributes) (alloc.Block, error) {
	b, err := r.try(&req, &a)
	if errors.Is(err, alloc.ErrOutOfMemory) && !a.NoRetry {
		b, err = r.retry(&req, &a)
	}
	if err == nil && r.log != nil && !a.WillBeLogged {
		r.log(req, b)
	}
	return b, err
}

// try makes one try.
func (r *Retrier) try(req *alloc.Request, a *Attributes) (alloc.Block, error) {
	if a.Before != nil {
		req.Before = a.Before()
	}
	return r.inner.Alloc(*req)
}

// retry is the slow path: the original's retry helper.
func (r *Retrier) retry(req *alloc.Request, a *Attributes) (alloc.Block, error) {
	var start, deadline time.Time
	for {
		// Take the channel before the try, so that memory returned during the try is not missed.
		returned := r.signal()
		b, err := r.try(req, a)
		if !errors.Is(err, alloc.ErrOutOfMemory) {
			r.waited(start)
			return b, err
		}
		now := time.Now()
		if start.IsZero() {
			start, deadline = now, now.Add(r.wait)
		}
		if !now.Before(deadline) {
			r.waited(start)
			return r.try(req, a)
		}
		timer := time.NewTimer(deadline.Sub(now))
		select {
		case <-returned:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// Free implements [alloc.Allocator]. It wakes every waiting Alloc, even after an error, as the
// original does.
func (r *Retrier) Free(a device.Addr) error {
	err := r.inner.Free(a)
	r.wake()
	return err
}

// FreeRef implements [power.Referenced]. It wakes every waiting Alloc, as Free does.
func (r *Retrier) FreeRef(b alloc.Block) error {
	err := r.freeRef(b)
	r.wake()
	return err
}

// SetFrontier implements [power.Frontier]. It wakes every waiting Alloc.
func (r *Retrier) SetFrontier(count uint64) {
	_ = power.SetFrontier(r.inner, count) // the caller has checked power.Has
	r.wake()
}

// EndPool implements [power.PrivatePools]. It wakes every waiting Alloc.
func (r *Retrier) EndPool(id alloc.PoolID) error {
	err := power.EndPool(r.inner, id)
	r.wake()
	return err
}

// ReleasePool implements [power.PrivatePools]. It wakes every waiting Alloc.
func (r *Retrier) ReleasePool(id alloc.PoolID) error {
	err := power.ReleasePool(r.inner, id)
	r.wake()
	return err
}

// Compact implements [power.Mover]. It wakes every waiting Alloc.
func (r *Retrier) Compact(may func(alloc.Chunk) bool, moved func(from, to alloc.Block)) (device.Size, error) {
	n, err := power.Compact(r.inner, may, moved)
	r.wake()
	return n, err
}

// Close implements [alloc.Strategy]. It wakes every waiting Alloc, which then returns
// [alloc.ErrClosed].
func (r *Retrier) Close() error {
	err := r.inner.Close()
	r.wake()
	return err
}

// Delay returns the total time that calls of Alloc spent between their first wait and
// their return.
func (r *Retrier) Delay() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.delay
}

// Has adds that the wrapper is safe for concurrent use and waits.
func (r *Retrier) Has(p power.Power) bool {
	return p == power.PowerConcurrent || p == power.PowerWaiter || r.Forwarder.Has(p)
}

func (*Retrier) ConcurrencySafe() {}

func (*Retrier) AllocMayWait() {}

// signal returns the channel that is closed when memory is returned.
func (r *Retrier) signal() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.returned
}

// wake closes the channel that waiting calls hold, and replaces it.
func (r *Retrier) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.returned)
	r.returned = make(chan struct{})
}

// waited adds the time since start; the zero time means that there was no wait.
func (r *Retrier) waited(start time.Time) {
	if start.IsZero() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delay += time.Since(start)
}
