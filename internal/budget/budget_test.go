package budget_test

import (
	"errors"
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/internal/budget"
)

func TestTakeStopsAtTheLimit(t *testing.T) {
	b := budget.New(100)
	require.NoError(t, b.Take(60))
	err := b.Take(41)
	require.EqualError(t, err, "takes more than 100B of memory")
	require.Error(t, b.Take(math.MaxInt64))
	require.EqualValues(t, 40, b.Left(), "a refusal takes nothing")
	require.NoError(t, b.Take(40))
	b.Give(60)
	require.EqualValues(t, 60, b.Left())
	_, ok := errors.AsType[*budget.Error](err)
	require.True(t, ok)
	require.EqualValues(t, budget.Default, budget.New(0).Left())
}

func TestShareIsGivenBackAtOnce(t *testing.T) {
	b := budget.New(100)
	s := b.Share()
	require.NoError(t, s.Take(60))
	require.NoError(t, b.Take(40))
	require.EqualError(t, s.Take(1), "takes more than 100B of memory")
	s.Close()
	require.EqualValues(t, 60, b.Left())
	require.Nil(t, (*budget.Budget)(nil).Share())
}

func TestNilIsWithoutBound(t *testing.T) {
	var b *budget.Budget
	require.NoError(t, b.Take(1<<61))
	b.Give(1)
	list, err := budget.Append(b, nil, 1)
	require.NoError(t, err)
	require.Equal(t, []int{1}, list)
}

// TestSlicesAreCountedWhileTheyGrow holds the old array of a slice and the new one against the
// budget.
func TestSlicesAreCountedWhileTheyGrow(t *testing.T) {
	b := budget.New(1 << 20)
	var list []uint64
	var err error
	for n := uint64(0); err == nil; n++ {
		list, err = budget.Append(b, list, n)
	}
	require.EqualError(t, err, "takes more than 1MiB of memory")
	require.Greater(t, len(list), 1<<17*4/9-1000)
	require.Less(t, len(list), 1<<17)
	for n, v := range list {
		require.EqualValues(t, n, v)
	}
	budget.Release(b, list)
	require.EqualValues(t, 1<<20, b.Left())
}

// TestMapsTakeNoMoreThanIsCounted compares the count of entries with the heap.
func TestMapsTakeNoMoreThanIsCounted(t *testing.T) {
	const limit = 8 << 20
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b, m := budget.New(limit), map[uint64][2]uint64{}
	var err error
	for n := uint64(0); err == nil; n++ {
		err = budget.Put(b, m, n, [2]uint64{n})
		require.NoError(t, budget.Put(b, m, n, [2]uint64{}), "is counted once")
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.LessOrEqual(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(limit+limit/8))
	require.Greater(t, len(m), 100_000)
	runtime.KeepAlive(m)
}

func TestCheckTakesNothing(t *testing.T) {
	b := budget.New(100)
	require.NoError(t, b.Check(100))
	require.EqualError(t, b.Check(101), "takes more than 100B of memory")
	require.EqualValues(t, 100, b.Left())
	require.NoError(t, (*budget.Budget)(nil).Check(math.MaxInt32))
}
