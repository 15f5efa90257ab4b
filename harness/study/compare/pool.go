package compare

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
)

// Pool bounds how many replays run at once, and the memory that they take together. A job that
// waits for its replays holds no place in it.
type Pool struct {
	free   chan struct{}
	memory device.Size // 0 is without bound

	lock    sync.Mutex
	ended   *sync.Cond
	running int
	taken   device.Size // memory of the running replays
}

// NewPool returns a pool for a number of concurrent replays; 0 is one for each core. Together they
// take at most memory bytes, 0 for no bound, unless a single one takes more.
func NewPool(workers int, memory device.Size) *Pool {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	p := &Pool{free: make(chan struct{}, workers), memory: memory}
	p.ended = sync.NewCond(&p.lock)
	return p
}

// Each calls f for 0 … n-1 at once, as far as the pool allows, and waits for all. Each call is
// one replay of t. The error is the first in the order of the calls. A panic of a call panics here.
func (p *Pool) Each(n int, t *replay.Prepared, f func(i int) error) error {
	shared, takes := t.Memory()
	errs := make([]error, n)
	panics := make([]*replayPanic, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			p.enter(shared, takes)
			defer p.leave(takes)
			defer func() {
				if v := recover(); v != nil {
					panics[i] = &replayPanic{v, debug.Stack()}
				}
			}()
			errs[i] = f(i)
		})
	}
	wg.Wait()
	for _, v := range panics {
		if v != nil {
			panic(v)
		}
	}
	return cmp.Or(errs...)
}

// replayPanic is a panic of a replay, in the goroutine that waits for it.
type replayPanic struct {
	value any
	stack []byte // of the replay
}

// String returns the value, and the stack for the one who reads the crash.
func (p *replayPanic) String() string { return fmt.Sprintf("%v\n\n%s", p.value, p.stack) }

// enter waits for a place and for memory, beside the memory that replays share.
func (p *Pool) enter(shared, takes device.Size) {
	p.free <- struct{}{}
	p.lock.Lock()
	defer p.lock.Unlock()
	for p.memory > 0 && p.running > 0 && shared+p.taken+takes > p.memory {
		p.ended.Wait()
	}
	p.running++
	p.taken += takes
}

func (p *Pool) leave(takes device.Size) {
	p.lock.Lock()
	p.running--
	p.taken -= takes
	p.lock.Unlock()
	p.ended.Broadcast()
	<-p.free
}
