package alloc_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

func TestWrappersRefuseTheWrongOrder(t *testing.T) {
	s := newToy(1)
	_, err := alloc.Retrying(s, time.Second)
	require.ErrorContains(t, err, "not safe for concurrent use")
	locked, err := alloc.Locked(s)
	require.NoError(t, err)
	again, err := alloc.Locked(locked)
	require.NoError(t, err)
	require.Same(t, locked, again, "one lock is enough")
	retrying, err := alloc.Retrying(locked, time.Second)
	require.NoError(t, err)
	same, err := alloc.Locked(retrying)
	require.NoError(t, err)
	require.Same(t, retrying, same)
	limited, err := alloc.Limited(retrying, 1000)
	require.NoError(t, err)
	require.False(t, alloc.Has(limited, alloc.PowerConcurrent), "the check and the call are two steps")
	_, err = alloc.Locked(limited)
	require.ErrorContains(t, err, "put Retrying outside Locked")
	_, err = alloc.Recorded(s, nil)
	require.Error(t, err)
}

func TestLimitedBoundsRequestedBytes(t *testing.T) {
	s, err := alloc.Limited(newToy(10), 500)
	require.NoError(t, err)
	a, err := s.Alloc(alloc.Request{Size: 250})
	require.NoError(t, err)
	_, err = s.Alloc(alloc.Request{Size: 250})
	require.NoError(t, err)
	_, err = s.Alloc(alloc.Request{Size: 1})
	require.ErrorIs(t, err, alloc.ErrOutOfMemory)
	why, ok := alloc.LastRefusal(s)
	require.True(t, ok)
	require.Equal(t, alloc.ReasonLimit, why.Reason)
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
	var ops []alloc.Operation
	inner := &rich{toy: newToy(1)}
	s, err := alloc.Recorded(inner, func(o alloc.Operation) { ops = append(ops, o) })
	require.NoError(t, err)
	b, err := s.Alloc(alloc.Request{Size: 9, Tag: 4})
	require.NoError(t, err)
	_, err = s.Alloc(alloc.Request{Size: 9})
	require.ErrorIs(t, err, alloc.ErrOutOfMemory)
	require.ErrorIs(t, s.Free(1), alloc.ErrInvalidFree)
	require.NoError(t, s.Free(b.Addr))
	_, err = alloc.Trim(s)
	require.NoError(t, err)
	require.NoError(t, alloc.SetFrontier(s, 6))
	require.NoError(t, alloc.ClearStats(s))
	require.ErrorIs(t, alloc.RecordStream(s, b.Addr, 7), alloc.ErrUnsupported, "a cell has no streams")
	recorded := s.(interface {
		alloc.StreamRecorder
		alloc.Poller
	})
	require.ErrorIs(t, recorded.RecordStream(b.Addr, 7), alloc.ErrUnsupported)
	_, err = recorded.Poll()
	require.ErrorIs(t, err, alloc.ErrUnsupported)
	require.NoError(t, alloc.BeginPool(s, 3, alloc.AllStreams))
	require.NoError(t, alloc.EndPool(s, 3))
	require.ErrorIs(t, alloc.ReleasePool(s, 4), alloc.ErrInvalidPool)
	require.Equal(t, []alloc.Operation{
		{Kind: alloc.OpAlloc, Request: alloc.Request{Size: 9, Tag: 4}, Block: b},
		{Kind: alloc.OpAlloc, Request: alloc.Request{Size: 9}, Err: alloc.ErrOutOfMemory},
		{Kind: alloc.OpFree, Addr: 1, Err: alloc.ErrInvalidFree},
		{Kind: alloc.OpFree, Addr: b.Addr},
		{Kind: alloc.OpTrim},
		{Kind: alloc.OpFrontier, Count: 6},
		{Kind: alloc.OpClear},
		{Kind: alloc.OpUse, Addr: b.Addr, Stream: 7, Err: alloc.ErrUnsupported},
		{Kind: alloc.OpPoll, Err: alloc.ErrUnsupported},
		{Kind: alloc.OpBeginPool, Pool: 3, Stream: alloc.AllStreams},
		{Kind: alloc.OpEndPool, Pool: 3},
		{Kind: alloc.OpReleasePool, Pool: 4, Err: alloc.ErrInvalidPool},
	}, ops)
}

func TestLockedIsRaceFree(t *testing.T) {
	s, err := alloc.Locked(newToy(16))
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

// retrier returns a toy of some cells behind Locked and Retrying, and the count of tries, which
// a waiting Alloc raises on a goroutine of its own.
func retrier(t *testing.T, cells int, wait time.Duration) (*alloc.Retrier, *atomic.Int64) {
	t.Helper()
	tries := new(atomic.Int64)
	counted, err := alloc.Recorded(newToy(cells), func(o alloc.Operation) {
		if o.Kind == alloc.OpAlloc {
			tries.Add(1)
		}
	})
	require.NoError(t, err)
	locked, err := alloc.Locked(counted)
	require.NoError(t, err)
	r, err := alloc.Retrying(locked, wait)
	require.NoError(t, err)
	return r, tries
}

func TestRetryGivesUpAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, tries := retrier(t, 0, alloc.DefaultWait)
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
		r, tries := retrier(t, 1, alloc.DefaultWait)
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

func TestRetryWakesOnWhatMayBringMemory(t *testing.T) {
	for name, wake := range map[string]func(r *alloc.Retrier){
		"frontier": func(r *alloc.Retrier) { r.SetFrontier(1) },
		"end":      func(r *alloc.Retrier) { _ = r.EndPool(1) },
		"release":  func(r *alloc.Retrier) { _ = r.ReleasePool(1) },
		"close":    func(r *alloc.Retrier) { _ = r.Close() },
	} {
		synctest.Test(t, func(t *testing.T) {
			r, tries := retrier(t, 0, alloc.DefaultWait)
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

func TestOnlyOutOfMemoryIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, tries := retrier(t, 0, alloc.DefaultWait)
		_, err := r.Alloc(alloc.Request{})
		require.ErrorIs(t, err, alloc.ErrInvalidRequest)
		require.EqualValues(t, 1, tries.Load())
		require.Zero(t, r.Delay())
	})
}

// TestRetryAsTensorFlowTestsIt runs three goroutines over memory for two blocks. Each
// takes its blocks, holds them a moment, and gives them back, many times.
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

// hold takes n blocks one after the other, keeps them for a while and frees them. It
// reports whether it got them all.
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
