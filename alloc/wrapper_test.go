package alloc_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/bfc"
)

func TestWrappersRejectTheWrongOrder(t *testing.T) {
	s := newToy(1)
	_, err := wrap.Retrying(s, time.Second)
	require.ErrorContains(t, err, "not safe for concurrent use")
	locked, err := wrap.Locked(s)
	require.NoError(t, err)
	again, err := wrap.Locked(locked)
	require.NoError(t, err)
	require.Same(t, locked, again, "one lock is enough")
	retrying, err := wrap.Retrying(locked, time.Second)
	require.NoError(t, err)
	same, err := wrap.Locked(retrying)
	require.NoError(t, err)
	require.Same(t, retrying, same)
	limited, err := wrap.Limited(retrying, 1000)
	require.NoError(t, err)
	require.False(t, power.Has(limited, power.PowerConcurrent), "the check and the call are two steps")
	_, err = wrap.Locked(limited)
	require.ErrorContains(t, err, "put Retrying outside Locked")
	_, err = wrap.Recorded(s, nil)
	require.Error(t, err)
}

func TestLimitedBoundsRequestedBytes(t *testing.T) {
	s, err := wrap.Limited(newToy(10), 500)
	require.NoError(t, err)
	a, err := s.Alloc(alloc.Request{Size: 250})
	require.NoError(t, err)
	_, err = s.Alloc(alloc.Request{Size: 250})
	require.NoError(t, err)
	_, err = s.Alloc(alloc.Request{Size: 1})
	require.ErrorIs(t, err, alloc.ErrOutOfMemory)
	why, ok := power.LastRefusal(s)
	require.True(t, ok)
	require.Equal(t, power.ReasonLimit, why.Reason)
	require.Equal(t, uint64(1), s.Stats().OOMs)
	require.NoError(t, s.Free(a.Addr))
	_, err = s.Alloc(alloc.Request{Size: 250})
	require.NoError(t, err)
	_, err = s.Alloc(alloc.Request{Size: 3, Align: 3})
	require.ErrorIs(t, err, nil, "the toy does not look at small alignments; Limited passes what is malformed on")
	require.NoError(t, s.Close())
	_, err = s.Alloc(alloc.Request{Size: 200})
	require.ErrorIs(t, err, alloc.ErrClosed)
}

func TestRecordedReportsEveryCall(t *testing.T) {
	var ops []wrap.Operation
	inner := &rich{toy: newToy(1)}
	s, err := wrap.Recorded(inner, func(o wrap.Operation) { ops = append(ops, o) })
	require.NoError(t, err)
	b, err := s.Alloc(alloc.Request{Size: 9, Tag: 4})
	require.NoError(t, err)
	_, err = s.Alloc(alloc.Request{Size: 9})
	require.ErrorIs(t, err, alloc.ErrOutOfMemory)
	require.ErrorIs(t, s.Free(1), alloc.ErrInvalidFree)
	require.NoError(t, s.Free(b.Addr))
	_, err = power.Trim(s)
	require.NoError(t, err)
	require.NoError(t, power.SetFrontier(s, 6))
	require.NoError(t, power.ClearStats(s))
	require.ErrorIs(t, power.RecordStream(s, b.Addr, 7), alloc.ErrUnsupported, "a cell has no streams")
	recorded := s.(interface {
		power.StreamRecorder
		power.Poller
	})
	require.ErrorIs(t, recorded.RecordStream(b.Addr, 7), alloc.ErrUnsupported)
	_, err = recorded.Poll()
	require.ErrorIs(t, err, alloc.ErrUnsupported)
	require.NoError(t, power.BeginPool(s, 3, power.AllStreams))
	require.NoError(t, power.EndPool(s, 3))
	require.NoError(t, power.BeginMemPool(s, 5, 2, power.PoolOptions{UseOnOOM: true}))
	require.ErrorIs(t, power.ReleasePool(s, 4), alloc.ErrInvalidPool)
	require.Equal(t, []wrap.Operation{
		{Kind: wrap.OpAlloc, Request: alloc.Request{Size: 9, Tag: 4}, Block: b},
		{Kind: wrap.OpAlloc, Request: alloc.Request{Size: 9}, Err: alloc.ErrOutOfMemory},
		{Kind: wrap.OpFree, Addr: 1, Err: alloc.ErrInvalidFree},
		{Kind: wrap.OpFree, Addr: b.Addr},
		{Kind: wrap.OpTrim},
		{Kind: wrap.OpFrontier, Count: 6},
		{Kind: wrap.OpClear},
		{Kind: wrap.OpUse, Addr: b.Addr, Stream: 7, Err: alloc.ErrUnsupported},
		{Kind: wrap.OpPoll, Err: alloc.ErrUnsupported},
		{Kind: wrap.OpBeginPool, Pool: 3, Stream: power.AllStreams},
		{Kind: wrap.OpEndPool, Pool: 3},
		{Kind: wrap.OpBeginPool, Pool: 5, Stream: 2, Options: power.PoolOptions{UseOnOOM: true}},
		{Kind: wrap.OpReleasePool, Pool: 4, Err: alloc.ErrInvalidPool},
	}, ops)
}

func TestLockedIsRaceFree(t *testing.T) {
	s, err := wrap.Locked(newToy(16))
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				b, err := s.Alloc(alloc.Request{Size: 1})
				if err != nil {
					t.Error(err)
					return
				}
				for range s.Walk { // reads every cell under the lock
				}
				if err := s.Free(b.Addr); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, uint64(4000), s.Stats().Allocs)
	require.Zero(t, s.Stats().Live)
}

// retrier returns a toy inside Locked and Retrying, and the number of tries, which a waiting Alloc
// increments on another goroutine.
func retrier(t *testing.T, cells int, wait time.Duration) (*wrap.Retrier, *atomic.Int64) {
	t.Helper()
	tries := new(atomic.Int64)
	counted, err := wrap.Recorded(newToy(cells), func(o wrap.Operation) {
		if o.Kind == wrap.OpAlloc {
			tries.Add(1)
		}
	})
	require.NoError(t, err)
	locked, err := wrap.Locked(counted)
	require.NoError(t, err)
	r, err := wrap.Retrying(locked, wait)
	require.NoError(t, err)
	return r, tries
}

func TestRetryGivesUpAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, tries := retrier(t, 0, wrap.DefaultWait)
		start := time.Now()
		_, err := r.Alloc(alloc.Request{Size: 1})
		require.ErrorIs(t, err, alloc.ErrOutOfMemory)
		require.Equal(t, 10*time.Second, time.Since(start))
		require.EqualValues(t, 4, tries.Load(), "ordinary, first of the retry, at the deadline, last")
		require.Equal(t, 10*time.Second, r.Delay())
	})
}

func TestRetryWithoutWaitTriesThreeTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, tries := retrier(t, 0, 0)
		_, err := r.Alloc(alloc.Request{Size: 1})
		require.ErrorIs(t, err, alloc.ErrOutOfMemory)
		require.EqualValues(t, 3, tries.Load())
	})
}

func TestRetryWakesOnFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, tries := retrier(t, 1, wrap.DefaultWait)
		b, err := r.Alloc(alloc.Request{Size: 1})
		require.NoError(t, err)
		done := make(chan time.Duration)
		start := time.Now()
		go func() {
			_, err := r.Alloc(alloc.Request{Size: 2})
			if err != nil {
				t.Error(err)
			}
			done <- time.Since(start)
		}()
		time.Sleep(3 * time.Second)
		require.ErrorIs(t, r.Free(99), alloc.ErrInvalidFree) // wakes, in vain
		synctest.Wait()
		require.EqualValues(t, 4, tries.Load())
		time.Sleep(4 * time.Second)
		require.NoError(t, r.Free(b.Addr))
		require.Equal(t, 7*time.Second, <-done)
		require.Equal(t, 7*time.Second, r.Delay())
		require.EqualValues(t, 5, tries.Load())
	})
}

func TestRetryWakesOnCallsThatMayFreeMemory(t *testing.T) {
	for name, wake := range map[string]func(r *wrap.Retrier){
		"frontier": func(r *wrap.Retrier) { r.SetFrontier(1) },
		"end":      func(r *wrap.Retrier) { _ = r.EndPool(1) },
		"release":  func(r *wrap.Retrier) { _ = r.ReleasePool(1) },
		"close":    func(r *wrap.Retrier) { _ = r.Close() },
	} {
		synctest.Test(t, func(t *testing.T) {
			r, tries := retrier(t, 0, wrap.DefaultWait)
			done := make(chan error)
			go func() {
				_, err := r.Alloc(alloc.Request{Size: 1})
				done <- err
			}()
			synctest.Wait()
			require.EqualValues(t, 2, tries.Load(), name)
			wake(r)
			synctest.Wait()
			require.EqualValues(t, 3, tries.Load(), name)
			if name == "close" {
				require.ErrorIs(t, <-done, alloc.ErrClosed)
			} else {
				require.ErrorIs(t, <-done, alloc.ErrOutOfMemory)
			}
		})
	}
}

// TestNoRetryFailsAtOnce checks that Alloc fails after the first try without waiting.
func TestNoRetryFailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, tries := retrier(t, 0, wrap.DefaultWait)
		start := time.Now()
		_, err := r.AllocWith(alloc.Request{Size: 1}, wrap.Attributes{NoRetry: true})
		require.ErrorIs(t, err, alloc.ErrOutOfMemory)
		require.Zero(t, time.Since(start))
		require.Zero(t, r.Delay())
		require.EqualValues(t, 1, tries.Load())
	})
}

// TestLogOmitsBlocksThatTheCallerLogs logs the grants of every kind of call.
func TestLogOmitsBlocksThatTheCallerLogs(t *testing.T) {
	r, _ := retrier(t, 3, 0)
	var logged []uint64
	r.LogTo(func(req alloc.Request, b alloc.Block) {
		require.NotZero(t, b.Size)
		logged = append(logged, req.Tag)
	})
	for tag, a := range []wrap.Attributes{{}, {WillBeLogged: true}, {NoRetry: true}, {NoRetry: true}} {
		_, err := r.AllocWith(alloc.Request{Size: 1, Tag: uint64(tag)}, a)
		require.Equal(t, tag == 3, err != nil, "the fourth finds no memory")
	}
	require.Equal(t, []uint64{0, 2}, logged)
}

// TestAWaitingRequestSeesTheFrontierMove uses BFC with timestamps, which has room for the request
// only in a chunk freed at count 2. A request with the fixed bound of 1 fails. A request whose
// Before function returns the current bound is granted once the bound has moved, not earlier.
func TestAWaitingRequestSeesTheFrontierMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gpu, err := sim.New(sim.Config{})
		require.NoError(t, err)
		s, err := bfc.New(gpu, bfc.Config{Limit: 1024, Timing: true})
		require.NoError(t, err)
		locked, err := wrap.Locked(s)
		require.NoError(t, err)
		r, err := wrap.Retrying(locked, wrap.DefaultWait)
		require.NoError(t, err)
		var blocks [2]alloc.Block
		for i := range blocks {
			blocks[i], err = r.Alloc(alloc.Request{Size: 512 - 256*device.Size(i%2)})
			require.NoError(t, err)
		}
		_, err = r.Alloc(alloc.Request{Size: 256})
		require.NoError(t, err)
		require.NoError(t, r.Free(blocks[1].Addr)) // count 1, 256 bytes
		require.NoError(t, r.Free(blocks[0].Addr)) // count 2, 512 bytes
		_, err = r.AllocWith(alloc.Request{Size: 512, Before: 1}, wrap.Attributes{NoRetry: true})
		require.ErrorIs(t, err, alloc.ErrOutOfMemory)

		var bound, asked atomic.Uint64
		bound.Store(1)
		done := make(chan alloc.Block)
		go func() {
			b, err := r.AllocWith(alloc.Request{Size: 512}, wrap.Attributes{Before: func() uint64 {
				asked.Add(1)
				return bound.Load()
			}})
			if err != nil {
				t.Error(err)
			}
			done <- b
		}()
		synctest.Wait()
		require.EqualValues(t, 2, asked.Load(), "the ordinary try, and the first of the retry")
		r.SetFrontier(1) // wakes, in vain
		synctest.Wait()
		require.EqualValues(t, 3, asked.Load())
		bound.Store(2)
		r.SetFrontier(2)
		require.Equal(t, blocks[0].Addr, (<-done).Addr)
		require.EqualValues(t, 4, asked.Load())
		require.Zero(t, r.Delay(), "the clock of the test did not move")
	})
}

func TestOnlyOutOfMemoryIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, tries := retrier(t, 0, wrap.DefaultWait)
		_, err := r.Alloc(alloc.Request{})
		require.ErrorIs(t, err, alloc.ErrInvalidRequest)
		require.EqualValues(t, 1, tries.Load())
		require.Zero(t, r.Delay())
	})
}

// TestRetryAsTensorFlowTestsIt runs three goroutines over memory for two blocks. Each
// allocates its blocks, holds them for a moment and frees them, many times.
func TestRetryAsTensorFlowTestsIt(t *testing.T) {
	for _, c := range []struct {
		name      string
		wait      time.Duration
		blocks    int
		wantFails bool
	}{
		{"one block each, with waiting", time.Second, 1, false},
		{"one block each, without waiting", 0, 1, true},
		{"two blocks each, with waiting", time.Second, 2, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _ := retrier(t, 2, c.wait)
				var mu sync.Mutex
				failed, passed := 0, 0
				var wg sync.WaitGroup
				for range 3 {
					wg.Go(func() {
						for range 50 {
							ok := hold(r, c.blocks)
							mu.Lock()
							if ok {
								passed++
							} else {
								failed++
							}
							mu.Unlock()
						}
					})
				}
				wg.Wait()
				require.Equal(t, c.wantFails, failed > 0)
				require.Equal(t, 150, failed+passed)
				require.Zero(t, r.Stats().Live)
			})
		})
	}
}

// hold allocates n blocks, keeps them for a while and frees them. It reports whether all were
// granted.
func hold(s alloc.Strategy, n int) bool {
	var held []device.Addr
	for range n {
		b, err := s.Alloc(alloc.Request{Size: 1})
		if err != nil {
			break
		}
		held = append(held, b.Addr)
		time.Sleep(time.Millisecond)
	}
	for _, a := range held {
		_ = s.Free(a) // a live block: the test counts what is left at the end
	}
	return len(held) == n
}
