package props_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/props"
)

// pooledSubject returns the test strategy with private pools, with a bug, on a small device.
func pooledSubject(b bug) props.Subject {
	return props.SubjectOf("pooled", newPooled, b, sim.Config{Capacity: 32 * device.KiB, Align: pooledSegment},
		promise.Set{
			Quantum:    pooledQuantum,
			Honours:    func(r alloc.Request) bool { return r.Align <= pooledQuantum },
			MustMerge:  promise.MergeAll,
			Boundaries: []device.Size{pooledSmall, pooledSegment},
		})
}

func TestVerifyPassesStrategyWithPools(t *testing.T) {
	subject := pooledSubject(none)
	r, err := props.Verify(subject, props.Options{Sequences: 500})
	require.NoError(t, err)
	t.Log(r)
	_, err = props.VerifyFaults(subject, props.Options{Sequences: 30})
	require.NoError(t, err)
	_, err = props.Metamorphic(subject, props.Options{Sequences: 200})
	require.NoError(t, err)
	subject.Device.Clock = sim.Timed
	_, err = props.Verify(subject, props.Options{Sequences: 50})
	require.NoError(t, err, "a device on which work finishes by itself")
}

// TestVerifyFindsBugsOfPools plants each bug.
func TestVerifyFindsBugsOfPools(t *testing.T) {
	requireFound(t, map[bug]props.Number{
		lastDecides:      props.IRedirected,
		ignoresFilter:    props.IRedirected,
		endsLast:         props.IRedirected,
		sharesMemory:     props.IRedirected,
		takesOver:        props.IApart,
		losesPool:        props.IApart,
		trimsUsed:        props.IKept,
		trimSparesPools:  props.IGone,
		evictsOther:      props.IKept,
		acceptsDefault:   props.IPoolAnswer,
		endsNothing:      props.IPoolAnswer,
		releasesUnknown:  props.IPoolAnswer,
		uncountedUser:    props.IPoolAnswer,
		endFreesBlock:    props.IShown,
		freesCaptured:    props.IPending,
		settlesCaptured:  props.IUnwaiting,
		opensClosedPools: props.IClosed,
	})
}

// TestVerifyFindsBugsOfCounters plants each bug.
func TestVerifyFindsBugsOfCounters(t *testing.T) {
	requireFound(t, map[bug]props.Number{
		countsPending:     props.ICounted,
		countsWholePieces: props.ICounted,
		countsTail:        props.ICounted,
		countsSmallTwice:  props.ICounted,
		forgetsAllocated:  props.ICounted,
		peakStays:         props.ICounted,
		peakFallsBack:     props.ICounted,
		oomsNotCounted:    props.ICounted,
		namesChange:       props.ICounted,
		leftBehind:        props.IChunk,
	})
	for _, b := range []bug{namesMissing, namesTwice} {
		_, err := props.Verify(pooledSubject(b), props.Options{Sequences: 1})
		requireBroken(t, props.ICounted, err)
	}
}

// TestVerifyFindsBugsOfHistory plants each bug.
func TestVerifyFindsBugsOfHistory(t *testing.T) {
	requireFound(t, map[bug]props.Number{
		allocUnreported:     props.IHistory,
		freeUnreported:      props.IHistory,
		freeTooLong:         props.IHistory,
		allocTwice:          props.IHistory,
		completedUnreported: props.IHistory,
		completedTwice:      props.IHistory,
		wrongStreamReported: props.IHistory,
		oomUnreported:       props.IHistory,
		oomLies:             props.IHistory,
	})
}

// requireFound plants each bug and requires that it breaks its invariant, in a sequence that a
// person can follow.
func requireFound(t *testing.T, bugs map[bug]props.Number) {
	t.Helper()
	for b, want := range bugs {
		t.Run(string(b), func(t *testing.T) {
			_, err := props.Verify(pooledSubject(b), props.Options{Sequences: 300, Seed: 1, Tries: 1000})
			f := requireFailure(t, err)
			assert.Equal(t, want, f.Violation.Number, "%v", f)
			assert.LessOrEqual(t, len(f.Sequence), 8, "%v", f)
			requireRepeats(t, f)
		})
	}
}

// TestJudgeRepeatsFailuresOfPools replays counterexamples from their text.
func TestJudgeRepeatsFailuresOfPools(t *testing.T) {
	for _, b := range []bug{lastDecides, takesOver, losesPool, trimsUsed, trimSparesPools, acceptsDefault, endsNothing,
		freesCaptured} {
		t.Run(string(b), func(t *testing.T) {
			subject := pooledSubject(b)
			_, err := props.Verify(subject, props.Options{Sequences: 300, Seed: 1, Tries: 500})
			f := requireFailure(t, err)
			var again *props.Violation
			require.ErrorAs(t, judged(t, subject, throughText(t, f)), &again)
			assert.Equal(t, f.Violation.Number, again.Number, "%v", again)
		})
	}
}

// TestJudgeLetsPoolsPass judges what sequences with pools, legal calls and mistakes, were recorded
// as.
func TestJudgeLetsPoolsPass(t *testing.T) {
	subject := pooledSubject(none)
	p := props.Profile{
		Operations: 100, Quantum: pooledQuantum, Max: 4 * pooledSegment, Room: 32 * device.KiB, Streams: true, Poller: true,
		Pools: true,
	}
	kinds := map[trace.Kind]int{}
	for seed := range int64(50) {
		recorded, err := props.TraceOf(subject, draw(t, p, seed))
		require.NoError(t, err)
		for _, e := range recorded.Events {
			kinds[e.Kind]++
		}
		require.NoError(t, judged(t, subject, recorded), "seed %d", seed)
	}
	for _, k := range []trace.Kind{trace.PoolBegin, trace.PoolEnd, trace.PoolRelease} {
		require.Greater(t, kinds[k], 100, k)
	}
}

// TestMetamorphicRedirects gives an instance other names for the pools, and redirects nothing
// meanwhile in another.
func TestMetamorphicRedirects(t *testing.T) {
	for b, want := range map[bug]props.Number{
		placesByPool: props.IIndifference,
		beginMoves:   props.IIdle,
	} {
		_, err := props.Metamorphic(pooledSubject(b), props.Options{Sequences: 300, Seed: 1})
		assert.Equal(t, want, requireFailure(t, err).Violation.Number)
	}
}
